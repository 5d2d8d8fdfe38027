"""The water level: how far a basin fills that is given a volume of water (SBP12 section 3.3)."""

from __future__ import annotations

from numba import njit

# Newton's method ends within a few passes from a level of the iteration before. This many bound
# the worst case, which the selection below then solves in linear expected time.
_MAX_PASSES = 24


@njit(cache=True, error_model="numpy")
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

    Notes
    -----
    Expected time O(n), memory O(1), O(n) in the rare case that Newton's method takes long. The
    volumes are measured from the lowest height: a volume of 1e-11 in a basin at height 1e3 is not
    lost to rounding.
    """
    base = heights.min()
    if volume <= 0.0:
        return base
    level = guess - base
    covered_before = -1
    for _ in range(_MAX_PASSES):
        covered, total = _covered_below(heights, base, level)
        if covered == covered_before:
            return base + level
        if covered == 0:
            # Above the answer for sure: all the water over the lowest point alone.
            level = volume
            covered_before = -1
            continue
        # Newton's step on the convex, piecewise linear volume.
        level = (volume + total) / covered
        covered_before = covered
    return base + _level_by_selection(heights - base, volume)


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _covered_below(heights, base, level):
    """Number and sum of the heights over ``base`` that lie below the level."""
    covered, total = 0, 0.0
    for i in range(len(heights)):
        height = heights[i] - base
        below = height < level
        covered += below
        total += height if below else 0.0
    return covered, total


@njit(cache=True, error_model="numpy")
def _level_by_selection(heights, volume):
    """The level for heights >= 0 with minimum 0, which are permuted; expected O(n).

    A quickselect: the pivot is covered exactly if filling up to it takes less than the volume.
    """
    low, high = 0, len(heights)
    covered, total = 0, 0.0
    random = 1
    while low < high:
        # A scrambled position: no order of the heights makes all pivots bad. The result does not
        # depend on it.
        random = (1103515245 * random + 12345) % 2147483648
        pivot = heights[low + random % (high - low)]
        below, above, part = low, high, 0.0
        at = low
        while at < above:
            height = heights[at]
            if height < pivot:
                part += height
                heights[at], heights[below] = heights[below], height
                below += 1
                at += 1
            elif height > pivot:
                above -= 1
                heights[at], heights[above] = heights[above], height
            else:
                at += 1
        if (covered + below - low) * pivot - (total + part) < volume:
            covered += above - low
            total += part + (above - below) * pivot
            low = above
        else:
            high = below
    return (volume + total) / covered
