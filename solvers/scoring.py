"""Scores of expansions and of linear predictors, block by block, with float64 sums."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solvers.kernels import Kernel, Points
from solvers.matrices import Matrix, matmul

# Blocks of entries are at most this large, so that memory does not grow with the number of points.
_BLOCK_BYTES = 32 * 2**20


def expansion_scores(
    kernel: Kernel, points: Points, coef: np.ndarray, Z: Matrix, dtype: str
) -> np.ndarray:
    """sum_j coef_j k(x_j, z) for each row z of Z, float64, shape (len(Z),).

    Parameters
    ----------
    kernel : Kernel
    points : Points
        The x_j, prepared.
    coef : ndarray, shape (len(points),)
    Z : ndarray or csr_matrix, shape (n_points, n_features)
    dtype : {"float32", "float64"}
        Type of the kernel entries.
    """
    scores = np.zeros(Z.shape[0])
    if len(coef) == 0:
        return scores
    step = max(1, _BLOCK_BYTES // (len(coef) * np.dtype(dtype).itemsize))
    for start in range(0, Z.shape[0], step):
        part = kernel.prepare(Z[start : start + step], dtype, like=points)
        scores[start : start + step] = _float64_product(kernel.block(part, points), coef)
    return scores


def linear_scores(Z: Matrix, weights: np.ndarray) -> np.ndarray:
    """<weights, z> for each row z of Z, float64, shape (len(Z),)."""
    if sparse.issparse(Z):
        return np.asarray(Z @ weights, dtype=np.float64)
    return _float64_product(Z, weights)


def _float64_product(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """block @ coef with float64 sums, whatever the block's type, without a full float64 copy."""
    if block.dtype == np.float64:
        return matmul(block, coef)
    scores = np.zeros(len(block))
    for start in range(0, block.shape[1], 1024):
        columns = slice(start, start + 1024)
        scores += matmul(block[:, columns].astype(np.float64), coef[columns])
    return scores
