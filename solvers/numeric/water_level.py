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

    For volume 0 it is the lowest height, and it is never below that. Newton's method begins at the
    ``guess``, any finite number: from the level of an iteration before it takes some three passes,
    time O(n) and memory O(1); in the rare case that it takes long, a sort finds the level. Volumes
    are sums of depths, so that one of 1e-11 in a basin at height 1e3 is not lost to rounding.
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
    total, covered = 0.0, 0
    # Point after point from the lowest on.
    for height in np.sort(heights - base):
        if covered * height - total >= volume:
            break
        total += height
        covered += 1
    return base + (volume + total) / covered


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
