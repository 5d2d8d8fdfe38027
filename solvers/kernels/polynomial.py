"""The polynomial kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbench.solvers.kernels.base import Points, rounding_unit
from marginbench.solvers.kernels.parameters import FiniteNumber, WholeNumber, Width, parameter
from marginbench.solvers.kernels.products import ProductKernel
from marginbench.solvers.numeric.matrices import squared_norms
from marginbench.solvers.registration import register_kernel


@register_kernel("poly")
@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """k(x, z) = (gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : int >= 1
    gamma : float > 0
    coef0 : float
    """

    words = "polynomial kernel"

    degree: int = parameter(WholeNumber(at_least=1), default=3)
    gamma: float = parameter(Width(), default=1.0)
    coef0: float = parameter(FiniteNumber(), default=0.0)

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        # The power passes the error of the inner product on by its derivative.
        largest = float(squared_norms(points.values).max(initial=0.0))
        reach = abs(self.gamma) * largest + abs(self.coef0)
        return rounding_unit(dtype) * self.degree * float(reach**self.degree)

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        inner *= self.gamma
        inner += self.coef0
        return np.power(inner, self.degree, out=inner)

    def _bound(self, product: float) -> float:
        base = max(self.gamma * product + abs(self.coef0), 1.0)
        with np.errstate(over="ignore"):
            return float(np.power(np.float64(base), self.degree))
