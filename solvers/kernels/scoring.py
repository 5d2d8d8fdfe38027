"""Scores of expansions and of linear predictors, block by block, with float64 sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from ..numeric.matrices import Matrix
from ..numeric.rows import row_arrays, weighted_sums
from ..numeric.threads import in_parts
from . import Kernel, Points
from .base import TILE
from .sums import rows_added

# Points are prepared so many bytes at a time.
_BYTES = 16 * 2**20
# A thread with fewer stored numbers than this costs more than it saves.
_NUMBERS_PER_THREAD = 2**16


def linear_scores(Z: Matrix, weights: np.ndarray) -> np.ndarray:
    """<w, z> for each row z of Z, float64, for one w or a row for each output.

    Of shape (len(Z),) or (len(Z), n_outputs).
    """
    Z = sparse.csr_matrix(Z) if sparse.issparse(Z) else np.ascontiguousarray(Z)
    rows = np.ascontiguousarray(np.atleast_2d(weights), dtype=np.float64)
    n, sums = Z.shape[0], np.empty((len(rows), Z.shape[0]))
    smallest = max(1, _NUMBERS_PER_THREAD * n // max(1, Z.nnz if sparse.issparse(Z) else Z.size))
    in_parts(weighted_sums, n, row_arrays(Z), rows, sums, smallest=smallest)
    return sums[0] if weights.ndim == 1 else sums.T


def expansion_scores(
    kernel: Kernel, points: Points, coef: np.ndarray, Z: Matrix, dtype: str
) -> np.ndarray:
    """``sum_j coef_kj k(x_j, z)`` for each row z of Z from entries of this type, float64.

    Of shape (len(Z),) or (len(Z), n_outputs), as the coefficients have one row or several.
    """
    rows = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
    scores = np.zeros((len(rows), Z.shape[0]))
    n, d = Z.shape
    # Sparse points become dense where those of the model are.
    stays_sparse = sparse.issparse(Z) and sparse.issparse(points.values)
    n_bytes = (Z.nnz if stays_sparse else n * d) * np.dtype(dtype).itemsize
    step = max(TILE, _BYTES * n // max(1, n_bytes))
    step -= step % TILE
    for start in range(0, Z.shape[0] if len(points) else 0, step):
        part = Z[start : start + step]
        if kernel.by_products and not sparse.issparse(points.values):
            part = _whole_tiles(part)
        prepared = kernel.prepare(part, np.dtype(dtype), like=points)
        kernel.weighted_sums(prepared, points, rows, scores[:, start : start + step])
    return scores.T[:, 0] if coef.ndim == 1 else scores.T


def expansion_scorer(
    kernel: Kernel, points: Points, coef: np.ndarray, dtype: str
) -> Callable[[Matrix], np.ndarray]:
    """What computes these scores again and again: by the weights w of a linear kernel, if it is."""
    weights = kernel.weights(points, np.atleast_2d(coef).astype(np.float64, copy=False))
    if weights is None:
        return lambda Z: expansion_scores(kernel, points, coef, Z, dtype)
    return lambda Z: linear_scores(Z, weights[0] if coef.ndim == 1 else weights)


def add_rows(storage: np.ndarray, slots: np.ndarray, coef: np.ndarray, sums: np.ndarray) -> None:
    """``sums_ki += sum_p coef_kp storage_{slots_p, i}``, p ascending, with float64 sums."""
    in_parts(rows_added, sums.shape[1], storage, slots, coef, sums, smallest=1024)


def _whole_tiles(rows: Matrix) -> Matrix:
    """The rows, the last one repeated until they fill whole tiles."""
    n = rows.shape[0]
    return rows if n % TILE == 0 else rows[np.minimum(np.arange(n + -n % TILE), n - 1)]
