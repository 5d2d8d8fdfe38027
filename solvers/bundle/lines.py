"""Convex piecewise quadratic functions of one number: their pieces along a line, their minimum."""

from __future__ import annotations

import numpy as np

from ..numeric.compiling import njit

# So few breakpoints are sorted; before, those on one side of a pivot are dropped, so often at most:
# then the rest is sorted, whatever is left of it.
_FEW = 32
_MOST_ROUNDS = 64


@njit(error_model="numpy")
def pieces_along(kinks, left, weights, scores, change, breakpoints, jumps):
    """Slope of a weighted mean of piecewise linear losses along ``scores + t change``, t > 0."""
    slope, count = 0.0, 0
    for i in range(len(scores)):
        step = change[i]
        if step == 0.0:
            continue
        passed = 0.0
        for j in range(kinks.shape[1]):
            way = kinks[i, j] - scores[i]
            passed += 1.0 if way < 0.0 or (way == 0.0 and step > 0.0) else 0.0
            ahead = way / step
            # Stored in any case: a branch that nothing predicts would cost more.
            breakpoints[count] = ahead
            jumps[count] = weights[i] * abs(step)
            count += 1 if ahead > 0.0 else 0
        slope += weights[i] * step * (left[i] + passed)
    return slope, count


@njit(error_model="numpy")
def zero_of_slope(slope, growth, breakpoints, jumps):
    """The least t >= 0 at which ``slope + growth t``, plus the jumps up to t, is not negative.

    The minimum of the convex function that has this derivative (FS09 section 3). Selection in place
    of a sort: half of the breakpoints left are dropped at a time, so that it takes expected time
    O(n), and O(n log n) at worst.
    """
    count, rounds, least = len(breakpoints), 0, 0.0
    while slope < 0.0 and count > _FEW and rounds < _MOST_ROUNDS:
        rounds += 1
        pivot = _median(breakpoints[0], breakpoints[count // 2], breakpoints[count - 1])
        below, equal = 0.0, 0.0
        for k in range(count):
            below += jumps[k] if breakpoints[k] < pivot else 0.0
            equal += jumps[k] if breakpoints[k] == pivot else 0.0
        reached = slope + growth * pivot + below
        if reached < 0.0 <= reached + equal:
            return pivot
        to_the_right, kept = reached < 0.0, 0
        for k in range(count):
            t, jump = breakpoints[k], jumps[k]
            breakpoints[kept], jumps[kept] = t, jump
            kept += 1 if (t > pivot if to_the_right else t < pivot) else 0
        count = kept
        if to_the_right:
            slope, least = slope + below + equal, pivot
    return _zero_by_sorting(slope, growth, breakpoints[:count], jumps[:count], least)


@njit(error_model="numpy")
def _zero_by_sorting(slope, growth, breakpoints, jumps, least):
    """The same, from ``least`` on, by a look at the breakpoints in their order."""
    order = np.argsort(breakpoints)
    for k in order:
        t = breakpoints[k]
        if slope + growth * t >= 0.0:
            break
        least = t
        slope += jumps[k]
        if slope + growth * t >= 0.0:
            return t
    return max(-slope / growth, least)


@njit(error_model="numpy")
def _median(a, b, c):
    """The middle one of three numbers."""
    return max(min(a, b), min(max(a, b), c))
