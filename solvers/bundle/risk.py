"""The risk R of a linear predictor (BMRM07 eq. 1): value, planes, products with all points."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numba import get_num_threads
from scipy import sparse

from ..kernels.scoring import linear_scores
from ..numeric.compiling import njit
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix, matmul
from ..numeric.rows import add, finite_squared_norms, row_arrays
from ..numeric.threads import in_parts
from .losses import Loss, PiecewiseLinearLoss, PointwiseLoss

# Rows of single precision are brought to double precision so many at a time.
_BLOCK = 1024
# A thread with fewer stored numbers than this costs more than it saves.
_NUMBERS_PER_THREAD = 2**16

# The square of a norm up to this is finite.
_SURELY_FINITE = 1e154


class Risk:
    """The risk of a linear predictor, as a function of w, and its planes."""

    def __init__(
        self,
        X: Matrix,
        y: np.ndarray,
        loss: Loss,
        weights: np.ndarray,
        offset: str | None,
        counters: Counters,
    ) -> None:
        if offset == "eliminated" and not isinstance(loss, PointwiseLoss):
            raise ValueError(
                f"the offset of {type(loss).__name__} cannot be eliminated: take offset='feature' "
                "or none"
            )
        check_norms(X)
        self._X, self._y, self._loss = X, y, loss
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not math.isfinite(total):
            raise ValueError("the sum of the weights overflows float64: scale them")
        self._weights = weights / total
        loss.check(y, self._weights)
        self._offset = offset
        self._counters = counters
        self._n_outputs = loss.n_outputs(y)
        #: Of the scores, at the last point.
        self.subgradient = np.zeros(0)
        self.value = 0.0
        #: The eliminated offset at the last w.
        self.minimizer = 0.0

    @property
    def dimension(self) -> int:
        """Length of w."""
        return (self._X.shape[1] + (self._offset == "feature")) * self._n_outputs

    def evaluate(self, w: np.ndarray) -> float:
        """The risk at w, from now on the point of :meth:`plane`."""
        return self.at(self.scores(w))

    def at(self, scores: np.ndarray) -> float:
        """The risk where the scores are these."""
        if self._offset == "eliminated":
            self.value, self.subgradient, self.minimizer = self._loss.without_offset(  # type: ignore[attr-defined]
                scores, self._y, self._weights, self.minimizer
            )
        else:
            self.value, self.subgradient = self._loss.evaluate(scores, self._y, self._weights)
        return self.value

    def plane(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """a, b of the plane ``<a, .> + b`` that touches the risk at w, the last point (eq. 3)."""
        a = combination_of(self._X, self.subgradient)
        if self._offset == "feature":
            a = np.concatenate([a, self.subgradient.sum(axis=0, keepdims=True)])
        a = a.ravel()
        self._counters.inner_products += 1
        return a, self.value - float(matmul(a, w))

    @cached_property
    def kinks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Kinks, slopes before them and weights of the points, if they say what the risk is."""
        if self._offset == "eliminated" or not isinstance(self._loss, PiecewiseLinearLoss):
            return None
        return *self._loss.kinks(self._y), self._weights

    def split(self, w: np.ndarray, minimizer: float) -> tuple[np.ndarray, Any]:
        """Weights and intercept of the predictor that w stands for."""
        weights, intercept = self._parts(w)
        if self._offset == "feature":
            return weights.copy(), intercept.copy()
        return weights.copy(), np.zeros(self._n_outputs) if self._n_outputs > 1 else minimizer

    def _parts(self, w: np.ndarray) -> tuple[np.ndarray, Any]:
        """Views of the weights of the features and of that of the constant one."""
        n_features = self._X.shape[1]
        weights = w.reshape(-1, self._n_outputs) if self._n_outputs > 1 else w
        return weights[:n_features], weights[n_features] if len(weights) > n_features else 0.0

    def scores(self, w: np.ndarray) -> np.ndarray:
        """The scores of the points."""
        weights, intercept = self._parts(w)
        if not w.any():
            return np.zeros((self._X.shape[0], *weights.shape[1:]))
        self._counters.inner_products += self._X.shape[0] * self._n_outputs
        scores = linear_scores(self._X, weights.T)
        return scores + intercept if self._offset == "feature" else scores


def check_norms(X: Matrix) -> None:
    """Raise ValueError if a squared norm overflows; quick where no number is large."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if not largest * math.sqrt(X.shape[1]) < _SURELY_FINITE:
        finite_squared_norms(X)


def combination_of(X: Matrix, g: np.ndarray) -> np.ndarray:
    """X'g with float64 sums, shape (n_features,), or (n_features, n_outputs) for a matrix g.

    No row of a CSR matrix has a feature twice.
    """
    if not sparse.issparse(X):
        if X.dtype == np.float64:
            return matmul(X.T, g)
        total = np.zeros((X.shape[1], *g.shape[1:]))
        for start in range(0, X.shape[0], _BLOCK):
            block = slice(start, start + _BLOCK)
            total += matmul(X[block].T.astype(np.float64), g[block])
        return total
    if g.ndim == 2:
        return np.asarray(X.T @ g, dtype=np.float64)
    parts = min(get_num_threads(), max(1, X.nnz // _NUMBERS_PER_THREAD))
    sums = np.zeros((parts, X.shape[1]))
    in_parts(_add_rows, parts, row_arrays(X), g, sums, smallest=1)
    return sums[0] if parts == 1 else sums.sum(axis=0)


@njit(error_model="numpy", nogil=True)
def _add_rows(rows, g, sums, start, stop):
    """sums[part] = sum of g_i x_i over a part of the rows; points without loss cost nothing."""
    n, parts = len(g), len(sums)
    for part in range(start, stop):
        for i in range(n * part // parts, n * (part + 1) // parts):
            if g[i] != 0.0:
                add(rows, i, g[i], sums[part])
