"""The water level with an unregularised bias: two basins that share the water (SBP12 section 3.6).

The bias raises the heights of one class and lowers the other's. For one more point of each class to
be covered, the levels that the two classes see must rise by their gaps together; so the best level
is half that of a single basin whose k-th lowest point is the sum of both classes' k-th lowest.

Selection finds the levels of any heights; those of heights that have changed little are looked for
in narrow windows around the levels before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit

# Windows with so many points are seldom missed and quickly sorted.
_FEW = 128
# Among so few points selection is faster.
_SMALL = 1024

#: What changes from one filling to the next: the fields of Levels, the width of the windows, how
#: many points of either class they hold, and how often selection had to find the levels.
STANDING = np.dtype(
    [
        ("positive", np.float64),
        ("negative", np.float64),
        ("rank", np.int64),
        ("last_positive", np.float64),
        ("last_negative", np.float64),
        ("tied_positive", np.bool_),
        ("tied_negative", np.bool_),
        ("width", np.float64),
        ("n_up", np.int64),
        ("n_down", np.int64),
        ("n_selections", np.int64),
    ]
)


class Levels(NamedTuple):
    """Where the water stands in two basins."""

    # The level less the bias, as the positives' heights see it, and the level plus the bias. If
    # several biases are optimal it is the middle one
    positive: float
    negative: float
    rank: int  # How many points of each class are covered, k; 1 if there is no water
    last_positive: float  # The k-th lowest height of each class
    last_negative: float
    tied_positive: bool  # Whether the next height of the class is the same
    tied_negative: bool

    @property
    def level(self) -> float:
        """The least sum of response, biased by the class, and slack."""
        return (self.positive + self.negative) / 2

    @property
    def bias(self) -> float:
        """The bias at which this level is reached."""
        return (self.negative - self.positive) / 2


def two_basin_level(positives: np.ndarray, negatives: np.ndarray, volume: float) -> Levels:
    """Maximise (u + v) / 2 over levels u and v of two basins that share the water.

    Notes
    -----
    Expected time and memory O(n). SBP12 Algorithm 3 moves a pivot in one class at a time, in a
    direction whose sign is printed two ways; with rank-wise sums there is no direction to choose.
    """
    return Levels(*levels_by_selection(positives.copy(), negatives.copy(), volume, 0))


@njit(error_model="numpy")
def levels_by_selection(positives, negatives, volume, hint):
    """The fields of Levels by bisection on the rank, from ``hint`` on; permutes the heights.

    The positions below ``low - 1`` hold the covered points before the k-th; ranks above ``high``
    are ruled out. Heights are summed up over the lowest of their class.
    """
    base_positive, base_negative = positives.min(), negatives.min()
    end_positive, end_negative = len(positives), len(negatives)
    low, high = 1, min(end_positive, end_negative)
    total = 0.0
    while low < high:
        rank = hint if low < hint < high else (low + high + 1) // 2
        hint = 0
        _select(positives, low - 1, end_positive, rank - 1)
        _select(negatives, low - 1, end_negative, rank - 1)
        part = 0.0
        for i in range(low - 1, rank - 1):
            part += (positives[i] - base_positive) + (negatives[i] - base_negative)
        height = (positives[rank - 1] - base_positive) + (negatives[rank - 1] - base_negative)
        if (rank - 1) * height - (total + part) < volume:
            low = rank
            total += part
        else:
            high = rank - 1
            end_positive = end_negative = high
    _select(positives, low - 1, end_positive, low - 1)
    _select(negatives, low - 1, end_negative, low - 1)
    last_positive, last_negative = positives[low - 1], negatives[low - 1]
    height = (last_positive - base_positive) + (last_negative - base_negative)
    left = volume - ((low - 1) * height - total)
    gap_positive = positives[low:].min() - last_positive if low < len(positives) else np.inf
    gap_negative = negatives[low:].min() - last_negative if low < len(negatives) else np.inf
    return stand(low, left, last_positive, last_negative, gap_positive, gap_negative)


@njit(error_model="numpy")
def stand(rank, left, last_positive, last_negative, gap_positive, gap_negative):
    """The fields of Levels from the k-th heights, the gaps to the next, and the water left."""
    depth = left / rank
    room_positive, room_negative = min(depth, gap_positive), min(depth, gap_negative)
    lead = (room_positive - room_negative) / 2
    return (
        last_positive + depth / 2 + lead,
        last_negative + depth / 2 - lead,
        rank,
        last_positive,
        last_negative,
        gap_positive == 0.0,
        gap_negative == 0.0,
    )


@njit(error_model="numpy")
def _select(values, low, high, rank):
    """Permute values[low:high] so that position ``rank`` holds what sorting would put there.

    What is before it is no larger, what is behind it no smaller.
    """
    random = 1
    while low < high:
        # Scrambled positions: no order of the values makes all pivots bad.
        random = (1103515245 * random + 12345) % 2147483648
        pivot = values[low + random % (high - low)]
        below = low
        # Always swapping is faster than a branch that cannot be predicted.
        for at in range(low, high):
            value = values[at]
            values[at] = values[below]
            values[below] = value
            below += value < pivot
        if rank < below:
            high = below
        elif below > low:
            low = below
        else:
            # The pivot is the smallest: set all of its equals aside.
            for at in range(low, high):
                value = values[at]
                values[at] = values[below]
                values[below] = value
                below += value == pivot
            if rank < below:
                return
            low = below


class BasinState(NamedTuple):
    """Two basins and the windows around their levels; compiled code changes it."""

    positive: np.ndarray  # bool, shape (n,): The points of the positive class
    members: np.ndarray  # int64: The positions of the positive and of the negative points
    others: np.ndarray
    volume: float
    with_bias: bool  # Otherwise both classes are one basin
    strict: bool  # Whether that covers what lies under the level alone
    # uint8, shape (n,), rounded up: Marks of points, padded so that they can be read as whole words
    marks: np.ndarray
    words: np.ndarray  # uint64: The same memory
    # int64, shape (2, n): The points collected in the windows of the positives and of the negatives
    collected: np.ndarray
    heights: np.ndarray  # float64, shape (2, n): Their heights
    standing: np.void  # record: See :data:`STANDING`; the rank is 0 before the first filling


def basin_state(
    positive: np.ndarray, volume: float, *, with_bias: bool = True, strict: bool = False
) -> BasinState:
    """Basins that have not been filled yet."""
    n = len(positive)
    marks = np.zeros(-(-n // 8) * 8, dtype=np.uint8)
    return BasinState(
        positive=positive,
        members=np.flatnonzero(positive),
        others=np.flatnonzero(~positive),
        volume=float(volume),
        with_bias=with_bias,
        strict=strict,
        marks=marks,
        words=marks.view(np.uint64),
        collected=np.empty((2, n), dtype=np.int64),
        heights=np.empty((2, n)),
        standing=np.zeros(1, dtype=STANDING)[0],
    )


@njit(error_model="numpy")
def fill(basins, heights):
    """Bring the levels of the basins up to date."""
    standing = basins.standing
    n = len(heights)
    if standing.rank == 0 or n <= _SMALL:
        _fill_by_selection(basins, heights)
        return
    index, before = basins.collected, basins.heights
    positive = standing.last_positive + _mean_change(heights, index[0], before[0], standing.n_up)
    negative = standing.last_negative + _mean_change(heights, index[1], before[1], standing.n_down)
    skip_up, skip_down, poured = _collect(basins, heights, positive, negative)
    size = standing.n_up + standing.n_down
    # To sort more than this is no faster than to select.
    many = size > max(1024, n // 4)
    found = False
    if not many:
        found, levels = _levels_in_windows(
            np.sort(before[0, : standing.n_up]),
            np.sort(before[1, : standing.n_down]),
            positive - standing.width,
            negative - standing.width,
            2 * standing.width,
            skip_up,
            skip_down,
            poured,
            len(basins.members),
            len(basins.others),
            basins.volume,
        )
        if found:
            _note(standing, levels)
    if not found:
        _fill_by_selection(basins, heights)
    error = max(abs(standing.last_positive - positive), abs(standing.last_negative - negative))
    if not found:
        standing.width = max(4 * error, standing.width * (0.5 if many else 2.0))
        _collect(basins, heights, standing.last_positive, standing.last_negative)
    elif size < _FEW:
        standing.width *= 1.1
    else:
        standing.width = max(5 * error, 0.97 * standing.width)


@njit(error_model="numpy")
def _fill_by_selection(basins, heights):
    standing = basins.standing
    # The rank has hardly changed: with a little more to begin with, few points remain.
    hint = 0 if standing.rank == 0 else standing.rank * 5 // 4 + 1
    up, down = heights[basins.members], heights[basins.others]
    standing.n_selections += 1
    _note(standing, levels_by_selection(up, down, basins.volume, hint))


@njit(error_model="numpy")
def _note(standing, levels):
    """The fields of Levels as they are now."""
    standing.positive, standing.negative, standing.rank = levels[0], levels[1], levels[2]
    standing.last_positive, standing.last_negative = levels[3], levels[4]
    standing.tied_positive, standing.tied_negative = levels[5], levels[6]


@njit(error_model="numpy")
def _levels_in_windows(
    up,
    down,
    low_positive,
    low_negative,
    width,
    skip_up,
    skip_down,
    poured,
    n_positive,
    n_negative,
    volume,
):
    """Whether the answer lies in the windows, and the fields of Levels.

    ``up`` and ``down`` are the sorted heights of the positives and the negatives there; the skipped
    ones lie below and take the volume ``poured`` up to the windows.
    """
    nothing = (0.0, 0.0, 0, 0.0, 0.0, False, False)
    if len(up) == 0 or len(down) == 0:
        return False, nothing
    # Heights are summed up over the first in a window: a tiny volume is not lost to rounding.
    base_up, base_down = up[0], down[0]
    poured += skip_up * (base_up - low_positive) + skip_down * (base_down - low_negative)
    first = max(skip_up, skip_down) + 1
    total = (up[: first - 1 - skip_up] - base_up).sum()
    total += (down[: first - 1 - skip_down] - base_down).sum()
    rank, left = 0, 0.0
    for k in range(first, min(skip_up + len(up), skip_down + len(down)) + 1):
        # up[k - skip_up - 1] is the k-th height of the positives.
        height = (up[k - skip_up - 1] - base_up) + (down[k - skip_down - 1] - base_down)
        filled = poured + ((k - 1) * height - total)
        if filled >= volume:
            break
        rank, left = k, volume - filled
        total += height
    if rank == 0:
        return False, nothing
    gap_up, known_up = _gap(up, rank - skip_up, n_positive - skip_up, low_positive + width)
    gap_down, known_down = _gap(
        down, rank - skip_down, n_negative - skip_down, low_negative + width
    )
    # What lies above a window must not matter: neither for the rank nor for the bias.
    depth = left / rank
    if not (known_up or gap_up > depth) or not (known_down or gap_down > depth):
        return False, nothing
    last_up, last_down = up[rank - skip_up - 1], down[rank - skip_down - 1]
    return True, stand(rank, left, last_up, last_down, gap_up, gap_down)


@njit(error_model="numpy")
def _gap(window, position, remaining, end):
    """From the sorted window's height before ``position`` to the next, and whether that is known.

    Of the next height it may be known only that it is at least ``end``.
    """
    if position < len(window):
        return window[position] - window[position - 1], True
    if position == remaining:
        return np.inf, True
    return end - window[position - 1], False


@njit(error_model="numpy")
def _collect(basins, heights, positive, negative):
    """Collect the points around these heights, by class. What lies below them.

    Returns how many positives and negatives are below the windows, and their volume up to those.
    """
    standing = basins.standing
    is_positive, marks, words = basins.positive, basins.marks, basins.words
    index, found = basins.collected, basins.heights
    low_positive, low_negative = positive - standing.width, negative - standing.width
    below, below_positive, poured = _mark(
        heights, is_positive, low_positive, low_negative, 2 * standing.width, marks
    )
    n_up, n_down = 0, 0
    for word in range(len(words)):
        # Eight marks at once, almost always none of them set.
        if words[word] != 0:
            for i in range(8 * word, 8 * word + 8):
                if marks[i] != 0:
                    if is_positive[i]:
                        index[0, n_up], found[0, n_up] = i, heights[i]
                        n_up += 1
                    else:
                        index[1, n_down], found[1, n_down] = i, heights[i]
                        n_down += 1
    standing.n_up, standing.n_down = n_up, n_down
    return below_positive, below - below_positive, poured


@njit(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _mark(heights, positive, low_positive, low_negative, width, marks):
    """Mark the points in the windows; number, positives and volume of the points below them."""
    below, below_positive, poured = 0, 0, 0.0
    for i in range(len(heights)):
        depth = (low_positive if positive[i] else low_negative) - heights[i]
        under = depth > 0.0
        below += under
        below_positive += under & positive[i]
        poured += depth if under else 0.0
        marks[i] = (depth <= 0.0) & (depth > -width)
    return below, below_positive, poured


@njit(error_model="numpy")
def _mean_change(heights, index, before, size):
    """How far these points have moved on average, at most the first 256; 0 if there are none."""
    size = min(size, 256)
    change = 0.0
    for p in range(size):
        change += heights[index[p]] - before[p]
    return change / size if size > 0 else 0.0
