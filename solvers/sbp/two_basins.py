"""The water level with an unregularised bias: two basins that share the water (SBP12 section 3.6).

The bias raises the heights of one class and lowers the other's. For one more point of each class to
be covered, the levels that the two classes see must rise by their gaps together; so the best level
is half that of a single basin whose k-th lowest point is the sum of both classes' k-th lowest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit


class Levels(NamedTuple):
    """Where the water stands in two basins.

    Attributes
    ----------
    positive, negative : float
        The level less the bias, as the positives' heights see it, and the level plus the bias. If
        several biases are optimal it is the middle one.
    rank : int
        How many points of each class are covered, k; 1 if there is no water.
    last_positive, last_negative : float
        The k-th lowest height of each class.
    tied_positive, tied_negative : bool
        Whether the next height of the class is the same.
    """

    positive: float
    negative: float
    rank: int
    last_positive: float
    last_negative: float
    tied_positive: bool
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
