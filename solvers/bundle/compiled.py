"""Compiled passes over the scores, for the most common losses."""

from __future__ import annotations

import math

from marginbench.solvers.numeric.compiling import njit

_SUMS = {"error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"}}
# 2 to this power is finite.
_LARGEST_PRODUCT = 1000


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
