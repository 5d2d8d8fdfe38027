"""Kernels that are functions of inner products: the linear and the polynomial kernel."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from ..numeric.matrices import Matrix, for_products, matmul, products, squared_norms, stored
from ..registration import register_kernel
from .base import (
    Kernel,
    Points,
    check_range,
    in_row_parts,
    kept_dense,
    placed,
    products_are_steady,
    rounding_unit,
)
from .parameters import count, finite, parameter, width

# Points are turned into float64 so many at a time.
_ROWS = 1024


class ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    by_products = True

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        values = stored(X, dtype, dense=kept_dense(X, dtype, like))
        norms = squared_norms(values)
        # By Cauchy-Schwarz the norms bound every product.
        check_range(self, self._bound(norms.max(initial=0.0)), norms, dtype)
        return Points(values if scipy.sparse.issparse(values) else for_products(values))

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        return placed(self._finish(products(A.values, B.values, out)), out)

    def diag(self, A: Points) -> np.ndarray:
        return self._finish(squared_norms(A.values))

    def same_in_every_block(self, points: Points, dtype: Any) -> bool:
        return products_are_steady(points, dtype)

    @abstractmethod
    def _finish(self, inner: np.ndarray) -> np.ndarray:
        """The kernel of these inner products, in place."""

    @abstractmethod
    def _bound(self, product: float) -> float:
        """The largest entry, and the largest number on the way to it, for products up to this."""


@register_kernel("linear")
@dataclass(frozen=True)
class Linear(ProductKernel):
    """k(x, z) = <x, z>."""

    words = "linear kernel"

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        return rounding_unit(dtype) * float(squared_norms(points.values).max(initial=0.0))

    def weights(self, B: Points, coef: np.ndarray) -> np.ndarray:
        if scipy.sparse.issparse(B.values):
            return np.ascontiguousarray((B.values.T @ coef.T).T)
        weights = np.zeros((len(coef), B.values.shape[1]))
        for start in range(0, len(B), _ROWS):
            part = slice(start, start + _ROWS)
            weights += matmul(coef[:, part], B.values[part].astype(np.float64))
        return weights

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        return inner

    def _bound(self, product: float) -> float:
        return product


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

    degree: int = parameter(count, default=3)
    gamma: float = parameter(width, default=1.0)
    coef0: float = parameter(finite, default=0.0)

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        # The power passes the error of the inner product on by its derivative.
        largest = float(squared_norms(points.values).max(initial=0.0))
        reach = abs(self.gamma) * largest + abs(self.coef0)
        return rounding_unit(dtype) * self.degree * float(reach**self.degree)

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        from .sums import powers

        of_type, rows = inner.dtype.type, np.atleast_2d(inner)
        gamma, coef0 = of_type(self.gamma), of_type(self.coef0)
        in_row_parts(powers, len(rows), rows, gamma, coef0, self.degree)
        return inner

    def _bound(self, product: float) -> float:
        base = max(self.gamma * product + abs(self.coef0), 1.0)
        with np.errstate(over="ignore"):
            return float(np.power(np.float64(base), self.degree))
