"""Independent draws of points."""

from __future__ import annotations

import numpy as np


def draw_by_weight(
    rng: np.random.Generator, weights: np.ndarray, shape: int | tuple[int, ...]
) -> np.ndarray:
    """Points drawn with probability proportional to their weights, with replacement."""
    if (weights == weights[0]).all():
        return rng.integers(len(weights), size=shape)
    reached = np.cumsum(weights)
    draws = rng.random(shape) * reached[-1]
    return np.searchsorted(reached, draws, side="right")
