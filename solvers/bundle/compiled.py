"""Compiled passes over the scores, for the most common losses."""

from __future__ import annotations

import math

import numpy as np

from marginbench.solvers.numeric.compiling import njit

_SUMS = {"error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"}}
# 2 to this power is finite.
_LARGEST_PRODUCT = 1000
# A sample of this many points brackets the best offset.
_SAMPLE = 512


@njit(**_SUMS)
def hinge_pass(scores, y, weights, subgradient):
    """Weighted sum of max(0, 1 - y s); the subgradient in place."""
    total = 0.0
    for i in range(len(scores)):
        slack = 1.0 - y[i] * scores[i]
        active = 1.0 if slack > 0.0 else 0.0
        total += weights[i] * slack * active
        subgradient[i] = -active * y[i] * weights[i]
    return total


@njit(**_SUMS)
def squared_hinge_pass(scores, y, weights, gradient):
    """Weighted sum of 1/2 max(0, 1 - y s)^2; the gradient in place."""
    total = 0.0
    for i in range(len(scores)):
        slack = max(0.0, 1.0 - y[i] * scores[i])
        total += 0.5 * weights[i] * slack * slack
        gradient[i] = -y[i] * weights[i] * slack
    return total


@njit(error_model="numpy")
def logistic_pass(scores, y, weights, small, gradient):
    """Weighted sum of log(1 + exp(-y s)), with ``small = exp(-|s|)``; the gradient in place.

    The logarithm of a product stands for the sum of those of points with equal weights.
    """
    total, product, count, weight = 0.0, 1.0, 0, 0.0
    for i in range(len(scores)):
        if weights[i] != weight or count == _LARGEST_PRODUCT:
            total += weight * math.log(product)
            product, count, weight = 1.0, 0, weights[i]
        margin = y[i] * scores[i]
        rest = 1.0 + small[i]
        product *= rest
        count += 1
        wrong = small[i] if margin > 0.0 else 1.0
        total -= weights[i] * min(margin, 0.0)
        gradient[i] = -y[i] * weights[i] * wrong / rest
    return total + weight * math.log(product)


@njit(error_model="numpy")
def weighted_quantile(values, weights, target):
    """The smallest value at which the running sum of the weights, by rising value, is the target.

    A sample gives a bracket, and only what lies in it is sorted.
    """
    n = len(values)
    low, high = -np.inf, np.inf
    if n > 4 * _SAMPLE:
        step = n // _SAMPLE
        picked = np.argsort(values[::step])
        share = target / weights.sum() * weights[::step].sum()
        reached, middle = 0.0, len(picked) - 1
        for k in range(len(picked)):
            reached += weights[::step][picked[k]]
            if reached >= share:
                middle = k
                break
        # Some four standard deviations of a rank in the sample, to each side.
        spread = 2 * int(math.sqrt(len(picked))) + 1
        if middle >= spread:
            low = values[::step][picked[middle - spread]]
        if middle + spread < len(picked):
            high = values[::step][picked[middle + spread]]
    below, inside = 0.0, 0.0
    near = np.empty(n, dtype=np.int64)
    count = 0
    for i in range(n):
        if values[i] < low:
            below += weights[i]
        elif values[i] <= high:
            inside += weights[i]
            near[count] = i
            count += 1
    if below >= target or below + inside < target or count == 0:
        below, count = 0.0, n
        near = np.arange(n)
    candidates = near[:count]
    order = np.argsort(values[candidates])
    for k in range(count):
        below += weights[candidates[order[k]]]
        if below >= target:
            return values[candidates[order[k]]]
    return values[candidates[order[count - 1]]]


@njit(**_SUMS)
def balanced_hinge_pass(scores, y, weights, breakpoints, b, subgradient):
    """Weighted sum of the hinge losses of scores + b; a subgradient of sum 0 in place.

    b is one of the breakpoints y - s. Points there may have any part of their weight: what balances
    the others.
    """
    total, excess, tied_positive, tied_negative = 0.0, 0.0, 0.0, 0.0
    for i in range(len(scores)):
        # Positive points have loss below their breakpoint, negative ones above.
        distance = y[i] * (breakpoints[i] - b)
        active = 1.0 if distance > 0.0 else 0.0
        total += weights[i] * distance * active
        subgradient[i] = -active * y[i] * weights[i]
        excess += subgradient[i]
        if distance == 0.0:
            if y[i] > 0.0:
                tied_positive += weights[i]
            else:
                tied_negative += weights[i]
    tied = tied_positive if excess > 0.0 else tied_negative
    if tied > 0.0 and excess != 0.0:
        share = min(1.0, abs(excess) / tied)
        for i in range(len(scores)):
            if breakpoints[i] == b and y[i] * excess > 0.0:
                subgradient[i] = -y[i] * weights[i] * share
    return total
