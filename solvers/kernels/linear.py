"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..numeric.matrices import matmul, squared_norms
from ..registration import register_kernel
from .base import Points, rounding_unit
from .products import ProductKernel

# Points are turned into float64 so many at a time.
_ROWS = 1024


@register_kernel("linear")
@dataclass(frozen=True)
class Linear(ProductKernel):
    """k(x, z) = <x, z>."""

    words = "linear kernel"

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        return rounding_unit(dtype) * float(squared_norms(points.values).max(initial=0.0))

    def weights(self, B: Points, coef: np.ndarray) -> np.ndarray:
        if sparse.issparse(B.values):
            return np.ascontiguousarray((B.values.T @ coef.T).T)
        found = np.zeros((len(coef), B.values.shape[1]))
        for start in range(0, len(B), _ROWS):
            part = slice(start, start + _ROWS)
            found += matmul(coef[:, part], B.values[part].astype(np.float64))
        return found

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        return inner

    def _bound(self, product: float) -> float:
        return product
