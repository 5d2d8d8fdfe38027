"""The water level with an unregularised bias: two basins that share the water.

SBP12 section 3.6 and Appendix B; ``two_basin_level`` returns what its Algorithm 3 does, ``fill``
finds k, the number of points that the water covers in each basin, from one iteration to the next.

The bias raises the heights of one class and lowers the other's. For one more point of each class to
be covered, the levels that the two classes see must rise by their gaps together; so the best level
is half that of a single basin whose k-th lowest point is the sum of both classes' k-th lowest.

Selection finds the levels of any heights; those of heights that have changed little are looked for
in narrow windows around the levels before: by selection alone a fit takes 1.3 to 1.9 times as long
(adult, ijcnn1, d = 10).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.compiling import ZERO, njit
from ..numeric.water_level import covered_by_selection, lowest

# Windows with so many points are seldom missed and quickly sorted.
_FEW = 128
# Among so few points selection is faster.
_SMALL = 1024

#: What changes from one filling to the next: the k of the water that covers k points of each class,
#: the k-th lowest heights and whether the next is the same, the width of the windows, how many
#: points of either class they hold, and how often selection had to find the levels.
STANDING = np.dtype(
    [
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
    """Where the water stands in two basins; gamma and b as SBP12 Algorithm 3 line 43 has them."""

    # The level less the bias, as the positives' heights see it, and the level plus the bias. If
    # several biases are optimal it is the middle one
    positive: float
    negative: float
    rank: int  # How many points of each class are covered, k; 1 if there is no water

    @property
    def level(self) -> float:
        """gamma, the least sum of response, biased by the class, and slack."""
        return (self.positive + self.negative) / 2

    @property
    def bias(self) -> float:
        """b, the bias at which this level is reached."""
        return (self.negative - self.positive) / 2


def two_basin_level(positives: np.ndarray, negatives: np.ndarray, volume: float) -> Levels:
    """Maximise (u + v) / 2 over levels u and v of two basins that share the water.

    Expected time and memory O(n). SBP12 Algorithm 3 moves a pivot in one class at a time, in a
    direction whose sign is printed two ways; with rank-wise sums there is no direction to choose.
    """
    rank, left, last_up, last_down, next_up, next_down = covered_by_selection(
        positives.copy(), negatives.copy(), ZERO, ZERO, 0.0, volume, ZERO
    )
    # Lines 39 to 42: the depth is Delta gamma, that of a class at most the room to its next point.
    depth = left / rank
    lead = (min(depth, next_up - last_up) - min(depth, next_down - last_down)) / 2
    return Levels(last_up + depth / 2 + lead, last_down + depth / 2 - lead, rank)


class BasinState(NamedTuple):
    """Two basins and the windows around their levels; compiled code changes it."""

    positive: np.ndarray  # bool, shape (n,): The points of the positive class
    n_positive: int
    volume: float
    # uint8, shape (n,), rounded up: Marks of points, padded so that they can be read as whole words
    marks: np.ndarray
    words: np.ndarray  # uint64: The same memory
    # int64, shape (2, n): The points collected in the windows of the positives and of the negatives
    collected: np.ndarray
    heights: np.ndarray  # float64, shape (2, n): Their heights
    standing: np.void  # record: See :data:`STANDING`; the rank is 0 before the first filling


def basin_state(positive: np.ndarray, volume: float) -> BasinState:
    """Basins that have not been filled yet."""
    n = len(positive)
    marks = np.zeros(-(-n // 8) * 8, dtype=np.uint8)
    return BasinState(
        positive=positive,
        n_positive=int(positive.sum()),
        volume=float(volume),
        marks=marks,
        words=marks.view(np.uint64),
        collected=np.empty((2, n), dtype=np.int64),
        heights=np.empty((2, n)),
        standing=np.zeros(1, dtype=STANDING)[0],
    )


@njit(error_model="numpy")
def fill(basins, heights):
    """Bring up to date which points the water covers."""
    standing, n = basins.standing, len(heights)
    if standing.rank == 0 or n <= _SMALL:
        _fill_by_selection(basins, heights)
        return
    index, before = basins.collected, basins.heights
    positive = standing.last_positive + _mean_change(heights, index[0], before[0], standing.n_up)
    negative = standing.last_negative + _mean_change(heights, index[1], before[1], standing.n_down)
    skip_up, skip_down, poured = _collect(basins, heights, positive, negative)
    size, end_up, end_down = standing.n_up + standing.n_down, standing.n_up, standing.n_down
    # To sort more than this is no faster than to select.
    many, found = size > max(1024, n // 4), False
    if not many and max(skip_up, skip_down) < min(skip_up + end_up, skip_down + end_down):
        up, down = before[0, :end_up].copy(), before[1, :end_down].copy()
        # Heights are summed up over the first in a window: a tiny volume is not lost to rounding.
        poured += skip_up * (lowest(up, ZERO) - (positive - standing.width))
        poured += skip_down * (lowest(down, ZERO) - (negative - standing.width))
        found = _ends_among(basins, up, down, skip_up, skip_down, poured, standing.rank)
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
    standing, up, down = basins.standing, basins.heights[0], basins.heights[1]
    n_up, n_down = 0, 0
    for i in range(len(heights)):
        if basins.positive[i]:
            up[n_up] = heights[i]
            n_up += 1
        else:
            down[n_down] = heights[i]
            n_down += 1
    standing.n_selections += 1
    # The rank has hardly changed: with a little more to begin with, few points remain.
    hint = 0 if standing.rank == 0 else standing.rank * 5 // 4 + 1
    _ends_among(basins, up[:n_up], down[:n_down], ZERO, ZERO, 0.0, hint)


@njit(error_model="numpy")
def _ends_among(basins, up, down, skip_up, skip_down, poured, hint):
    """Whether the water ends among these heights of both classes: then it is noted where.

    The skipped points lie below these and take the volume ``poured`` up to them.
    """
    rank, left, last_up, last_down, next_up, next_down = covered_by_selection(
        up, down, skip_up, skip_down, poured, basins.volume, hint
    )
    # What lies above a window must not matter.
    more_up = next_up == np.inf and skip_up + len(up) < basins.n_positive
    n_negative = len(basins.positive) - basins.n_positive
    more_down = next_down == np.inf and skip_down + len(down) < n_negative
    if more_up or more_down or (left <= 0.0 and skip_up + skip_down > 0):
        return False
    standing = basins.standing
    standing.rank, standing.last_positive, standing.last_negative = rank, last_up, last_down
    standing.tied_positive, standing.tied_negative = next_up == last_up, next_down == last_down
    return True


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
