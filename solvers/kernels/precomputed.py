"""A Gram matrix given by the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numeric.matrices import Matrix, stored
from ..registration import register_kernel
from .base import Kernel, Points, placed, rounding_unit


@register_kernel("precomputed")
@dataclass(frozen=True)
class Precomputed(Kernel):
    """Entries given by the user: X holds k(x_i, x_j) for the training points j."""

    words = "precomputed kernel"
    evaluates = False

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        # The entries are rounded to their type, no more.
        return rounding_unit(dtype) * float(np.abs(points.values).max(initial=0.0))

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        values = stored(X, dtype, dense=True)
        if not np.isfinite(values).all():
            raise ValueError(f"the precomputed kernel has entries that overflow {np.dtype(dtype)}")
        if like is not None:
            return Points(values)
        if values.shape[0] != values.shape[1]:
            raise ValueError(
                f"a precomputed kernel matrix must be square, got shape {values.shape}"
            )
        return Points(values, columns=np.arange(len(values)))

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        assert B.columns is not None
        return placed(np.ascontiguousarray(A.values[:, B.columns]), out)

    def diag(self, A: Points) -> np.ndarray:
        assert A.columns is not None
        return A.values[np.arange(len(A)), A.columns].astype(np.float64)
