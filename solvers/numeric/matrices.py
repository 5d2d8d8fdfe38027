"""Matrices of points, dense or CSR: how they are stored for work, memory, norms and products."""

from __future__ import annotations

import math
import mmap
from typing import Any, TypeAlias

import numpy as np
import scipy

# An ndarray or a scipy.sparse.csr_matrix, which carries no types of its own.
Matrix: TypeAlias = Any

# A CSR matrix at least this dense is faster as a dense one (a BLAS product against an indexed
# loop), as long as the dense copy stays small.
_DENSE_FROM_DENSITY = 0.05
_DENSE_UP_TO_BYTES = 512 * 2**20
# Of more, points are gathered too slowly that stand feature by feature.
_FEW_FEATURES = 128
# numpy advises huge pages for arrays from this size on.
_LARGE = 2**22


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array for intermediate results, of any content, without advice for huge pages.

    numpy gives that advice for large arrays. A virtual machine whose host finds memory only when
    it is touched pays for each huge page several times what its small pages cost, in the kernel:
    more than half of the time of a first fit.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(shape, dtype)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    except OSError as error:
        raise MemoryError(f"no room for an array of {size / 2**20:.0f} MiB: {error}") from None
    return np.frombuffer(pages, dtype).reshape(shape)


def better_dense(X: Matrix, dtype: Any) -> bool:
    """Whether these points are better worked on as a dense array."""
    if not scipy.sparse.issparse(X):
        return True
    cells = X.shape[0] * X.shape[1]
    return bool(
        X.nnz >= _DENSE_FROM_DENSITY * cells
        and cells * np.dtype(dtype).itemsize <= _DENSE_UP_TO_BYTES
    )


def canonical(X: Matrix) -> Matrix:
    """CSR with sorted indices, no duplicates and 32-bit indices where they suffice."""
    X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def stored(X: Matrix, dtype: Any, *, dense: bool) -> Matrix:
    """The points as a C-contiguous array or as canonical CSR, of this type."""
    with np.errstate(over="ignore"):
        if not dense:
            return canonical(scipy.sparse.csr_matrix(X)).astype(dtype, copy=False)
        return np.ascontiguousarray(as_dense(X), dtype=dtype)


def for_products(points: np.ndarray) -> np.ndarray:
    """Dense points as products with them are fastest: of few features, feature by feature.

    A row of entries then takes a quarter to a third of the time, methods that go row by row .8.
    """
    if points.shape[1] > _FEW_FEATURES:
        return points
    columns = scratch(points.shape[::-1], points.dtype)
    columns[...] = points.T
    return columns.T


def as_dense(X: Matrix) -> np.ndarray:
    """The points as a dense array, of their own type."""
    return X.toarray() if scipy.sparse.issparse(X) else X


def squared_norms(values: Matrix) -> np.ndarray:
    """Squared row norms in float64, shape (n_points,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        if scipy.sparse.issparse(values):
            squares = values.astype(np.float64)
            squares.data **= 2
            return np.asarray(squares.sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", values, values, dtype=np.float64)


def matmul(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """A @ B for dense arrays, without numpy's look at the floating-point flags.

    BLAS kernels work on whole vector registers; what stands in their unused lanes may raise a flag
    although every number of the result is right. Callers know that their numbers are in range.
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(A, B, out=out))


def products(A: Matrix, B: Matrix, out: np.ndarray | None = None) -> np.ndarray:
    """Inner products of all rows, both dense or both CSR, C-contiguous, shape (len(A), len(B))."""
    if not scipy.sparse.issparse(B):
        return matmul(A, B.T, out)
    if A.shape[0] == 1:
        return (B @ A.toarray()[0])[None, :]
    # Here, since numba takes long to import, and kernels are also there for their names.
    from .sparse_products import multiply_sparse

    entries = np.empty((A.shape[0], B.shape[0]), dtype=B.dtype) if out is None else out
    multiply_sparse(A, B, entries)
    return entries


def variance(X: Matrix, weights: np.ndarray | None = None) -> float:
    """Variance of all entries together; infinite or NaN if it overflows."""
    if weights is not None and weights.min() != weights.max():
        counted = weights > 0
        if not counted.all():  # as if the others had never been there
            return variance(X[counted], weights[counted])
        return _weighted_variance(X, weights)
    with np.errstate(over="ignore", invalid="ignore"):
        if not scipy.sparse.issparse(X):
            return float(np.var(X, dtype=np.float64))
        size = X.shape[0] * X.shape[1]
        mean = X.data.sum(dtype=np.float64) / size
        return float(np.square(X.data, dtype=np.float64).sum() / size - mean**2)


def _weighted_variance(X: Matrix, weights: np.ndarray) -> float:
    """The variance where each point counts as often as its weight, > 0, says."""
    shares = weights / weights.sum() / X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if not scipy.sparse.issparse(X):
            # Shifted by one entry, so that the variance of a constant is 0.
            deviations = np.subtract(X, X[0, 0], dtype=np.float64)
            deviations -= matmul(shares, deviations.sum(axis=1))
            return float(matmul(shares, squared_norms(deviations)))
        of_entries = np.repeat(shares, np.diff(X.indptr))
        mean = matmul(of_entries, X.data.astype(np.float64))
        return float(matmul(of_entries, np.square(X.data, dtype=np.float64)) - mean**2)
