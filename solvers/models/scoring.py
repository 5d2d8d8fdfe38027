"""Scores of expansions and of linear predictors, block by block, with float64 sums."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from marginbench.solvers.kernels import Kernel, Points
from marginbench.solvers.numeric.compiling import njit
from marginbench.solvers.numeric.matrices import Matrix, matmul
from marginbench.solvers.numeric.threads import in_parts

# Blocks of entries are about this large: they stay in a cache of the processor between the steps
# of their computation, and memory does not grow with the number of points.
_BLOCK_BYTES = 4 * 2**20
_FEWEST_ROWS = 64
# BLAS works on tiles of so many rows, and sums what is left over in another order, as einsum does
# for a single row. With whole tiles a score does not depend on those that are asked for with it,
# except that BLAS may take another order for large products.
_TILE = 16
# Sums of so many columns stay in the smallest cache while rows pass by.
_SUMMED_COLUMNS = 1024


def expansion_scores(
    kernel: Kernel, points: Points, coef: np.ndarray, Z: Matrix, dtype: str
) -> np.ndarray:
    """sum_j coef_j k(x_j, z) for each row z of Z, float64, shape (len(Z),) or (len(Z), n_outputs).

    Parameters
    ----------
    kernel : Kernel
    points : Points
        The x_j, prepared.
    coef : ndarray, shape (len(points),) or (n_outputs, len(points))
    Z : ndarray or csr_matrix, shape (n_points, n_features)
    dtype : {"float32", "float64"}
        Type of the kernel entries.
    """
    rows_of_coef = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
    n_outputs, n_support = rows_of_coef.shape
    scores = np.zeros((n_outputs, Z.shape[0]))
    if n_support:
        step = max(_FEWEST_ROWS, _BLOCK_BYTES // (n_support * np.dtype(dtype).itemsize))
        step -= step % _TILE
        entries = np.empty((min(step, Z.shape[0] + _TILE - 1), n_support), dtype=dtype)
        for start in range(0, Z.shape[0], step):
            wanted, rows = scores[:, start : start + step], Z[start : start + step]
            if kernel.by_products and not sparse.issparse(points.values):
                rows = _whole_tiles(rows)
            part = kernel.prepare(rows, dtype, like=points)
            block = kernel.block(part, points, entries[: len(part)])
            for own, sums in zip(rows_of_coef, wanted, strict=True):
                in_parts(_weighted_sums, len(sums), block, own, sums)
    return scores[0] if coef.ndim == 1 else scores.T


def _whole_tiles(rows: Matrix) -> Matrix:
    """The rows, the last one repeated until they fill whole tiles."""
    n = rows.shape[0]
    return rows if n % _TILE == 0 else rows[np.minimum(np.arange(n + -n % _TILE), n - 1)]


def linear_scores(Z: Matrix, weights: np.ndarray) -> np.ndarray:
    """<weights, z> for each row z of Z, float64, shape (len(Z),)."""
    if sparse.issparse(Z):
        return np.asarray(Z @ weights, dtype=np.float64)
    return _float64_product(Z, weights)


@njit(error_model="numpy", fastmath={"reassoc", "contract"}, nogil=True)
def _weighted_sums(block, coef, sums, start, stop):
    """sums_i = sum_j coef_j block_ij for the rows from start to stop, with float64 sums."""
    for i in range(start, stop):
        row, total = block[i], 0.0
        for j in range(len(row)):
            total += coef[j] * row[j]
        sums[i] = total


@njit(error_model="numpy", fastmath={"contract"}, nogil=True)
def sum_of_rows(block, rows, coef, sums, start, stop):
    """sums_i = sum_j coef_j block[rows_j, i] for the columns from start to stop, float64.

    Parameters
    ----------
    block : ndarray, shape (n_rows, n_columns)
    rows : ndarray of int
    coef : ndarray of float64, shape (len(rows),)
    sums : ndarray of float64, shape (n_columns,)
        Is overwritten.
    start, stop : int
    """
    for left in range(start, stop, _SUMMED_COLUMNS):
        right = min(left + _SUMMED_COLUMNS, stop)
        sums[left:right] = 0.0
        j = 0
        # Four rows at a time: the sums are loaded and stored a fourth as often.
        while j + 4 <= len(rows):
            a, b, c, d = block[rows[j]], block[rows[j + 1]], block[rows[j + 2]], block[rows[j + 3]]
            of_a, of_b, of_c, of_d = coef[j], coef[j + 1], coef[j + 2], coef[j + 3]
            for i in range(left, right):
                sums[i] += (of_a * a[i] + of_b * b[i]) + (of_c * c[i] + of_d * d[i])
            j += 4
        for k in range(j, len(rows)):
            row, own = block[rows[k]], coef[k]
            for i in range(left, right):
                sums[i] += own * row[i]


def _float64_product(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """block @ coef with float64 sums, whatever the block's type, without a full float64 copy."""
    if block.dtype == np.float64:
        return matmul(block, coef)
    scores = np.zeros(len(block))
    for start in range(0, block.shape[1], 1024):
        columns = slice(start, start + 1024)
        scores += matmul(block[:, columns].astype(np.float64), coef[columns])
    return scores
