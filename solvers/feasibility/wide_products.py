"""Products with A in float64, however it is stored: for bounds and proofs, not for iterations."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..numeric.matrices import Matrix, matmul

# float32 data are widened in blocks of about this many bytes.
_BLOCK_BYTES = 16 * 2**20


def transposed_product(A: Matrix, y: np.ndarray) -> np.ndarray:
    """A'y in float64."""
    if sparse.issparse(A):
        return np.asarray(A.T @ y, dtype=np.float64)
    if A.dtype == np.float64:
        return matmul(y, A)
    step = max(1, _BLOCK_BYTES // (8 * A.shape[0]))
    parts = [
        matmul(y, A[:, lo : lo + step].astype(np.float64)) for lo in range(0, A.shape[1], step)
    ]
    return np.concatenate(parts)


def product(A: Matrix, x: np.ndarray) -> np.ndarray:
    """A x in float64."""
    if sparse.issparse(A):
        return np.asarray(A @ x, dtype=np.float64)
    if A.dtype == np.float64:
        return matmul(A, x)
    total = np.zeros(A.shape[0])
    step = max(1, _BLOCK_BYTES // (8 * A.shape[0]))
    for lo in range(0, A.shape[1], step):
        total += matmul(A[:, lo : lo + step].astype(np.float64), x[lo : lo + step])
    return total
