"""Compiled passes over the scores, for the most common losses."""

from __future__ import annotations

from ..numeric.compiling import njit
from ..numeric.exponentials import exponential, log_of_one_plus

_SUMS = {"error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"}}


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


@njit(**_SUMS)
def logistic_pass(scores, y, weights, gradient):
    """Weighted sum of log(1 + exp(-y s)); the gradient in place. No exponential overflows."""
    total = 0.0
    for i in range(len(scores)):
        margin = y[i] * scores[i]
        small = exponential(-abs(margin))
        total += weights[i] * (max(-margin, 0.0) + log_of_one_plus(small))
        wrong = small if margin > 0.0 else 1.0
        gradient[i] = -y[i] * weights[i] * wrong / (1.0 + small)
    return total
