"""The space R^m with the columns of A: elements are vectors of m numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..numeric.counters import FeasibilityCounters
from ..numeric.matrices import matmul
from .checking import (
    lower_bound,
    rounding_of_lower_bound,
    upper_bound,
)
from .passes import MirrorStep, SimplexSide, mirror, smooth
from .problem import FeasibilityProblem
from .products import block_width
from .spaces import ElementSpace

_SPARSE_WIDTH = 256
# Errors of the bounds from running sums, which come from products in A's own type.
_NOISE = {"float64": 1e-12, "float32": 1e-6}


class ColumnSpace(ElementSpace):
    """Products with A, in the storage in which the user gave it; each is counted."""

    def __init__(self, problem: FeasibilityProblem) -> None:
        self.problem: FeasibilityProblem = problem
        self.A = problem.data
        self.m, self.n = problem.m, problem.n
        self.size = self.m
        self.counters = FeasibilityCounters()
        self.noise = _NOISE[self.A.dtype.name]
        if sparse.issparse(self.A):
            self._type, self._width = np.dtype(np.float64), _SPARSE_WIDTH
            self._stored: Any = (self.A.data, self.A.indices, self.A.indptr)
        else:
            rows = self.A.flags.c_contiguous
            self._type, self._stored = self.A.dtype, self.A
            self._width = block_width(self.m, self.A.itemsize, rows=rows)

    def image(self, x: np.ndarray) -> np.ndarray:
        self.charge(1)
        return self.product(x)

    def product(self, x: np.ndarray) -> np.ndarray:
        """A x, not counted."""
        if sparse.issparse(self.A):
            return np.asarray(self.A @ x, dtype=np.float64)
        return matmul(self.A, x.astype(self._type, copy=False)).astype(np.float64)

    def responses(self, y: np.ndarray) -> np.ndarray:
        self.charge(1)
        if sparse.issparse(self.A):
            return np.asarray(self.A.T @ y, dtype=np.float64)
        return matmul(y.astype(self._type, copy=False), self.A)

    def inner(self, y: np.ndarray, z: np.ndarray) -> float:
        return float(matmul(y, z))

    def column(self, j: int) -> np.ndarray:
        if sparse.issparse(self.A):
            return self.A[:, [j]].toarray().ravel().astype(np.float64)
        return self.A[:, j].astype(np.float64)

    def coefficients(self, y: np.ndarray) -> np.ndarray:
        return y

    def normal_product(self, v: np.ndarray) -> np.ndarray:
        return self.image(self.responses(v))

    def smooth(self, y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
        self.charge(2)
        image = np.empty(self.m)
        vector = y.astype(self._type, copy=False)
        low = smooth(self._stored, vector, mu, weights, image, self._width)
        return float(low), image

    def mirror(
        self,
        y: np.ndarray,
        y_lead: np.ndarray,
        step: MirrorStep,
        side: SimplexSide,
        image: np.ndarray,
        w_image: np.ndarray,
    ) -> tuple[float, float, float, float]:
        """Four products in one pass, not counted (:func:`.passes.mirror`)."""
        y, y_lead = y.astype(self._type, copy=False), y_lead.astype(self._type, copy=False)
        return mirror(self._stored, y, y_lead, step, side, image, w_image, self._width)

    def separates(self, y: np.ndarray, low: float) -> bool:
        return lower_bound(self.problem, y) > rounding_of_lower_bound(self.problem, y)

    def bounds(self, y: np.ndarray, x: np.ndarray, low: float, up: float) -> tuple[float, float]:
        return lower_bound(self.problem, y), upper_bound(self.problem, x)

    def charge(self, matvecs: int) -> None:
        """Count products with A or A'."""
        self.matvecs += matvecs
        self.counters.inner_products += matvecs * self.n
