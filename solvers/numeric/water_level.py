"""The water level: how far a basin fills that is given a volume of water (SBP12 section 3.3)."""

from __future__ import annotations

import numpy as np

from .compiling import njit

# Newton's method ends within a few passes from a level of the iteration before. This many bound
# the worst case, which a sort then solves.
_MAX_PASSES = 24


@njit(error_model="numpy")
def water_level(heights, volume, guess):
    """The level g with ``sum_i max(0, g - heights_i) = volume``; SBP12 eq. 3.6, Algorithm 2.

    Parameters
    ----------
    heights : ndarray of float64, shape (n,), n >= 1
    volume : float >= 0
        For volume 0 the level is the lowest height.
    guess : float
        Where to start, such as the last level; any finite number will do.

    Returns
    -------
    float
        Never below the lowest height.

    Notes
    -----
    Time O(n) and memory O(1); O(n log n) and O(n) in the rare case that Newton's method takes long.
    From the level of an iteration before it takes some three passes. Volumes are sums of depths, so
    that a volume of 1e-11 in a basin at height 1e3 is not lost to rounding.
    """
    if volume <= 0.0:
        return heights.min()
    level, covered_before, restarted = guess, -1, False
    for _ in range(_MAX_PASSES):
        covered, poured = volume_below(heights, level)
        if covered == 0:
            lowest = heights.min()
            if restarted or lowest + volume == lowest:
                # Rounding alone leads below the lowest point: the level cannot be told from it.
                return lowest
            # Above the answer for sure: all the water over the lowest point alone.
            level, restarted = lowest + volume, True
            continue
        # Newton's step on the convex, piecewise linear volume. A step larger than the mean depth
        # of the water carries too much rounding to be the last.
        step = (volume - poured) / covered
        level += step
        if covered == covered_before and abs(step) <= volume / covered:
            return level
        covered_before = covered
    base = heights.min()
    return base + _level_by_sorting(heights - base, volume)


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
def _level_by_sorting(heights, volume):
    """The level for heights with minimum 0, point after point from the lowest on."""
    total, covered = 0.0, 0
    for height in np.sort(heights):
        if covered * height - total >= volume:
            break
        total += height
        covered += 1
    return (volume + total) / covered
