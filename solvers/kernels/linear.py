"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbench.solvers.kernels.base import Points, rounding_unit
from marginbench.solvers.kernels.products import ProductKernel
from marginbench.solvers.numeric.matrices import squared_norms
from marginbench.solvers.registration import register_kernel


@register_kernel("linear")
@dataclass(frozen=True)
class Linear(ProductKernel):
    """k(x, z) = <x, z>."""

    words = "linear kernel"

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        return rounding_unit(dtype) * float(squared_norms(points.values).max(initial=0.0))

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        return inner

    def _bound(self, product: float) -> float:
        return product
