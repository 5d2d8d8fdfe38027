"""Scores of expansions and of linear predictors, block by block, with float64 sums."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..numeric.compiling import njit
from ..numeric.matrices import Matrix
from . import Kernel, Points
from .base import TILE, in_row_parts
from .sums import weighted_sums

# Points are prepared so many bytes at a time.
_BYTES = 16 * 2**20
# Sums of so many columns stay in the smallest cache while rows pass by.
_SUMMED_COLUMNS = 1024


class LinearScorer:
    """Computes the scores ``<w_k, z>`` of points z, again and again."""

    def __init__(self, weights: np.ndarray) -> None:
        self._weights = weights

    def __call__(self, Z: Matrix) -> np.ndarray:
        """The scores of the rows of Z, float64, shape (len(Z), n_outputs)."""
        if sparse.issparse(Z):
            return np.asarray(Z @ self._weights.T)
        scores = np.empty((len(self._weights), len(Z)))
        in_row_parts(weighted_sums, np.ascontiguousarray(Z), self._weights, scores)
        return scores.T


class EntryScorer:
    """Computes ``sum_j coef_kj k(x_j, z)`` for points z from kernel entries, again and again."""

    def __init__(self, kernel: Kernel, points: Points, coef: np.ndarray, dtype: str) -> None:
        self._kernel = kernel
        self._points = points
        self._coef = np.ascontiguousarray(coef, dtype=np.float64)
        self._dtype = np.dtype(dtype)

    def __call__(self, Z: Matrix) -> np.ndarray:
        """As :meth:`LinearScorer.__call__`."""
        scores = np.zeros((len(self._coef), Z.shape[0]))
        if len(self._points):
            self._sum(Z, scores)
        return scores.T

    def _sum(self, Z: Matrix, scores: np.ndarray) -> None:
        kernel, points = self._kernel, self._points
        step = max(TILE, _BYTES // max(1, Z.shape[1] * self._dtype.itemsize))
        step -= step % TILE
        for start in range(0, Z.shape[0], step):
            rows = Z[start : start + step]
            if kernel.by_products and not sparse.issparse(points.values):
                rows = _whole_tiles(rows)
            part = kernel.prepare(rows, self._dtype, like=points)
            kernel.weighted_sums(part, points, self._coef, scores[:, start : start + step])


def expansion_scorer(
    kernel: Kernel, points: Points, coef: np.ndarray, dtype: str
) -> LinearScorer | EntryScorer:
    """What computes scores of expansions the fastest; parameters as of :class:`EntryScorer`."""
    weights = kernel.weights(points, np.asarray(coef, dtype=np.float64))
    return EntryScorer(kernel, points, coef, dtype) if weights is None else LinearScorer(weights)


def expansion_scores(
    kernel: Kernel, points: Points, coef: np.ndarray, Z: Matrix, dtype: str
) -> np.ndarray:
    """Scores from kernel entries, float64, shape (len(Z),) or (len(Z), n_outputs)."""
    scores = EntryScorer(kernel, points, np.atleast_2d(coef), dtype)(Z)
    return scores[:, 0] if coef.ndim == 1 else scores


def _whole_tiles(rows: Matrix) -> Matrix:
    """The rows, the last one repeated until they fill whole tiles."""
    n = rows.shape[0]
    return rows if n % TILE == 0 else rows[np.minimum(np.arange(n + -n % TILE), n - 1)]


def linear_scores(Z: Matrix, weights: np.ndarray) -> np.ndarray:
    """<weights, z> for each row z of Z, float64, shape (len(Z),)."""
    return LinearScorer(np.atleast_2d(weights).astype(np.float64, copy=False))(Z)[:, 0]


@njit(error_model="numpy", fastmath={"contract"}, nogil=True)
def sum_of_rows(block, rows, coef, sums, start, stop):
    """sums_i = sum_j coef_j block[rows_j, i] for the columns from start to stop, float64."""
    for left in range(start, stop, _SUMMED_COLUMNS):
        right = min(left + _SUMMED_COLUMNS, stop)
        # Slices, whose loops begin at 0: otherwise an index may be one from the end, and no loop
        # takes several columns at a time.
        own = sums[left:right]
        own[:] = 0.0
        j = 0
        # Four rows at a time: the sums are loaded and stored a fourth as often.
        while j + 4 <= len(rows):
            a, b = block[rows[j], left:right], block[rows[j + 1], left:right]
            c, d = block[rows[j + 2], left:right], block[rows[j + 3], left:right]
            of_a, of_b, of_c, of_d = coef[j], coef[j + 1], coef[j + 2], coef[j + 3]
            for i in range(len(own)):
                own[i] += (of_a * a[i] + of_b * b[i]) + (of_c * c[i] + of_d * d[i])
            j += 4
        for k in range(j, len(rows)):
            row, of_row = block[rows[k], left:right], coef[k]
            for i in range(len(own)):
                own[i] += of_row * row[i]
