"""The base class of kernels that are functions of inner products."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ..numeric.matrices import Matrix, products, squared_norms, stored
from .base import (
    Kernel,
    Points,
    check_range,
    kept_dense,
    placed,
    products_are_steady,
)


class ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    by_products = True

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        values = stored(X, dtype, dense=kept_dense(X, dtype, like))
        norms = squared_norms(values)
        # By Cauchy-Schwarz the norms bound every product.
        check_range(self, self._bound(norms.max(initial=0.0)), norms, dtype)
        return Points(values)

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
