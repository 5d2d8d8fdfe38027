"""The polynomial kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numeric.matrices import products, squared_norms
from ..registration import register_kernel
from .base import Points, in_row_parts, rounding_unit, row_blocks
from .parameters import FiniteNumber, WholeNumber, Width, parameter
from .products import ProductKernel


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

    def weighted_sums(self, A: Points, B: Points, coef: np.ndarray, sums: np.ndarray) -> None:
        from .sums import power_sums, short_power_sums

        of_type = B.values.dtype.type
        power = of_type(self.gamma), of_type(self.coef0), self.degree
        if B.chunks is not None:
            in_row_parts(short_power_sums, A.values, B.chunks, *power, coef, sums)
            return
        for part, own, room in row_blocks(A, B, sums):
            inner = products(part.values, B.values, room)
            in_row_parts(power_sums, inner, *power, coef, own)

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        inner *= self.gamma
        inner += self.coef0
        return np.power(inner, self.degree, out=inner)

    def _bound(self, product: float) -> float:
        base = max(self.gamma * product + abs(self.coef0), 1.0)
        with np.errstate(over="ignore"):
            return float(np.power(np.float64(base), self.degree))
