"""Independent draws of points."""

from __future__ import annotations

import numpy as np


def draw_by_weight(
    rng: np.random.Generator, weights: np.ndarray, shape: int | tuple[int, ...]
) -> np.ndarray:
    """Points drawn with probability proportional to their weights, with replacement.

    Parameters
    ----------
    rng : numpy.random.Generator
    weights : ndarray of float64, shape (n,)
        Not negative, not all zero.
    shape : int or tuple of int

    Returns
    -------
    ndarray of int64, shape ``shape``
        The same as ``rng.integers`` where all weights are equal.
    """
    if (weights == weights[0]).all():
        return rng.integers(len(weights), size=shape)
    reached = np.cumsum(weights)
    draws = rng.random(shape) * reached[-1]
    return np.searchsorted(reached, draws, side="right")
