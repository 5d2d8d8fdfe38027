"""The water level: how far basins fill that are given a volume of water (SBP12 section 3.2).

Two basins that share the water fill like a single one whose k-th lowest point is the sum of both
basins' k-th lowest (section 3.6).
"""

from __future__ import annotations

import numpy as np

from .compiling import ZERO, njit

# Newton's method ends within a few passes from a level of the iteration before. This many bound
# the worst case, which selection then solves.
_MAX_PASSES = 24


@njit(error_model="numpy")
def water_level(heights, volume, guess):
    """The level g with ``sum_i max(0, g - heights_i) = volume``, in place of SBP12 Algorithm 2.

    For volume 0 it is the lowest height, and it is never below that. Newton's method begins at the
    ``guess``, any finite number: from the level of an iteration before it takes some three passes,
    time O(n) and memory O(1); in the rare case that it takes long, selection finds the level.
    Volumes are sums of depths, so that one of 1e-11 in a basin at height 1e3 is not lost to
    rounding.
    """
    if volume <= 0.0:
        return lowest(heights, ZERO)
    level, covered_before, restarted = guess, -1, False
    for _ in range(_MAX_PASSES):
        covered, poured = volume_below(heights, level)
        if covered == 0:
            bottom = lowest(heights, ZERO)
            if restarted or bottom + volume == bottom:
                # Rounding alone leads below the lowest point: the level cannot be told from it.
                return bottom
            # Above the answer for sure: all the water over the lowest point alone.
            level, restarted = bottom + volume, True
            continue
        # Newton's step on the convex, piecewise linear volume. A step larger than the mean depth
        # of the water carries too much rounding to be the last.
        step = (volume - poured) / covered
        level += step
        if covered == covered_before and abs(step) <= volume / covered:
            return level
        covered_before = covered
    flat = np.zeros(len(heights))
    rank, left, last = covered_by_selection(heights.copy(), flat, ZERO, ZERO, 0.0, volume, covered)[
        :3
    ]
    return last + left / rank  # SBP12 Algorithm 2 line 12


@njit(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def volume_below(heights, level):
    """How many heights lie below the level, and the volume of water that reaches it."""
    covered, volume = 0, 0.0
    for i in range(len(heights)):
        depth = level - heights[i]
        below = depth > 0.0
        covered += below
        volume += depth if below else 0.0
    return covered, volume


@njit(error_model="numpy")
def covered_by_selection(up, down, skipped_up, skipped_down, poured, volume, hint):
    """How many points k of each of two basins the water covers, by bisection from ``hint`` on.

    ``up`` and ``down`` are the heights of the points above those that are skipped, in any order,
    and are permuted; the skipped ones are covered, and take the volume ``poured`` up to the lowest
    of ``up`` and ``down``. Returns k, the water that is left above the k-th points, the k-th lowest
    heights of both basins, and the next ones, infinite of none. If the water does not reach these
    points, what is left is not positive.

    It is SBP12 Algorithm 2, whose lines the comments name, on the rank-wise sums of both basins;
    for a single one ``down`` is flat. The positions below ``low - 1`` hold the covered points
    before the k-th; ranks above ``high`` are ruled out. Heights are summed up over the lowest of
    their basin.
    """
    base_up, base_down = lowest(up, ZERO), lowest(down, ZERO)
    end_up, end_down = len(up), len(down)
    low = max(skipped_up, skipped_down) + 1
    high = min(skipped_up + end_up, skipped_down + end_down)
    total = _sum_of_lowest(up, ZERO, end_up, low - 1 - skipped_up, base_up)
    total += _sum_of_lowest(down, ZERO, end_down, low - 1 - skipped_down, base_down)
    while low < high:
        rank = hint if low < hint < high else (low + high + 1) // 2
        hint = 0
        i, j = rank - 1 - skipped_up, rank - 1 - skipped_down
        # Lines 5 to 7: the partition, middle_max and what it adds to middle_sum.
        part = _sum_of_lowest(up, low - 1 - skipped_up, end_up, i, base_up)
        part += _sum_of_lowest(down, low - 1 - skipped_down, end_down, j, base_down)
        height = (up[i] - base_up) + (down[j] - base_down)
        if poured + ((rank - 1) * height - (total + part)) < volume:  # line 8, the other way
            low = rank  # line 11
            total += part
        else:
            high = rank - 1  # line 9
            end_up, end_down = i, j
    i, j = low - 1 - skipped_up, low - 1 - skipped_down
    select(up, i, end_up, i)
    select(down, j, end_down, j)
    height = (up[i] - base_up) + (down[j] - base_down)
    left = volume - (poured + ((low - 1) * height - total))
    return low, left, up[i], down[j], lowest(up, i + 1), lowest(down, j + 1)


@njit(error_model="numpy")
def _sum_of_lowest(values, start, end, stop, base):
    """Select values[start:end] up to position ``stop``; the sum of values[start:stop] over base."""
    total = 0.0
    if stop > start:
        select(values, start, end, stop)
        for i in range(start, stop):
            total += values[i] - base
    return total


@njit(error_model="numpy")
def lowest(values, start):
    """The lowest of values[start:]; infinite if there are none."""
    least = np.inf
    for i in range(start, len(values)):
        least = min(least, values[i])
    return least


@njit(error_model="numpy")
def select(values, low, high, rank):
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
