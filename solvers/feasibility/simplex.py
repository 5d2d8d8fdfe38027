"""Points of the simplex: softmax, Euclidean projection, and averages in place."""

from __future__ import annotations

import math

import numpy as np

from ..numeric.compiling import njit
from ..numeric.matrices import matmul


def softmax(exponents: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """exp(exponents) divided by its sum; the largest exponent is taken off first."""
    out = np.subtract(exponents, exponents.max(), out=out)
    # Below -700 the weight is next to the smallest number there is, whatever the exponent.
    np.maximum(out, -700.0, out=out)
    np.exp(out, out=out)
    out /= out.sum()
    return out


@njit(error_model="numpy")
def project_to_simplex(point):
    """The nearest point of the simplex, in place.

    The threshold of Michelot's algorithm, started from a lower bound: no entry that is 1 or more
    below the largest one stays positive.
    """
    top = -np.inf
    for value in point:
        top = max(top, value)
    threshold, kept = -1.0, len(point) + 1
    while True:
        total, count = 0.0, 0
        for value in point:
            if value - top > threshold:
                total += value - top
                count += 1
        # Fewer are kept each time; rounding may bring some back, and again and again.
        if count >= kept:
            break
        kept = count
        threshold = (total - 1.0) / count
    for i in range(len(point)):
        point[i] = max(point[i] - top - threshold, 0.0)


@njit(error_model="numpy")
def blend(x, w, weight):
    """x = (1 - weight) x + weight w, in place."""
    for i in range(len(x)):
        x[i] += weight * (w[i] - x[i])


def into_ball(y: np.ndarray) -> np.ndarray:
    """The nearest point of the unit ball, in place."""
    norm = math.sqrt(float(matmul(y, y)))
    if norm > 1.0:
        y /= norm
    return y
