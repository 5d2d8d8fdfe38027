"""The levels of two basins whose heights change slowly, found in narrow windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit
from .two_basins import Levels, levels_by_selection, stand

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


class BasinState(NamedTuple):
    """Two basins and the windows around their levels; compiled code changes it.

    Attributes
    ----------
    positive : ndarray of bool, shape (n,)
        The points of the positive class.
    members, others : ndarray of int64
        The positions of the positive and of the negative points.
    volume : float
    marks : ndarray of uint8, shape (n,), rounded up
        Marks of points, padded so that they can be read as whole words.
    words : ndarray of uint64
        The same memory.
    collected : ndarray of int64, shape (2, n)
        The points collected in the windows of the positives and of the negatives.
    heights : ndarray of float64, shape (2, n)
        Their heights.
    standing : record
        See :data:`STANDING`; the rank is 0 before the first filling.
    """

    positive: np.ndarray
    members: np.ndarray
    others: np.ndarray
    volume: float
    marks: np.ndarray
    words: np.ndarray
    collected: np.ndarray
    heights: np.ndarray
    standing: np.void


class TwoBasins:
    """Levels of slowly changing heights; the results are those of :func:`two_basin_level`.

    One pass sums up what lies below two narrow windows around the expected k-th heights, and
    collects what lies in them, which is then sorted. If the answer is not there, selection finds
    it. A k-th height is expected to move as far as the points collected around it do on average.
    """

    def __init__(self, positive: np.ndarray, volume: float) -> None:
        n = len(positive)
        marks = np.zeros(-(-n // 8) * 8, dtype=np.uint8)
        self.state = BasinState(
            positive=positive,
            members=np.flatnonzero(positive),
            others=np.flatnonzero(~positive),
            volume=float(volume),
            marks=marks,
            words=marks.view(np.uint64),
            collected=np.empty((2, n), dtype=np.int64),
            heights=np.empty((2, n)),
            standing=np.zeros(1, dtype=STANDING)[0],
        )

    @property
    def n_selections(self) -> int:
        """How often selection had to find the levels."""
        return int(self.state.standing["n_selections"])

    def fill(self, heights: np.ndarray) -> Levels:
        """The levels for these heights, float64, shape (n,)."""
        fill(self.state, heights)
        return Levels(*self.state.standing.item()[: len(Levels._fields)])


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
