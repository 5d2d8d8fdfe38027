"""The two products of an iteration with all points: scores X w, and the combination X'g."""

from __future__ import annotations

import math

import numpy as np
from numba import get_num_threads
from scipy import sparse

from ..kernels.scoring import linear_scores
from ..numeric.compiling import njit
from ..numeric.matrices import Matrix, matmul
from ..numeric.rows import finite_squared_norms
from ..numeric.threads import in_parts

# Rows of single precision are brought to double precision so many at a time.
_BLOCK = 1024
# A thread with fewer stored numbers than this costs more than it saves.
_NUMBERS_PER_THREAD = 2**16

# Points with a factor are looked for among so many at a time: their list stays in cache.
_LISTED = 1024

# The square of a norm up to this is finite.
_SURELY_FINITE = 1e154

_SUMS = {"error_model": "numpy", "nogil": True, "fastmath": {"reassoc", "nsz", "contract"}}


def check_norms(X: Matrix) -> None:
    """Raise ValueError if a squared norm overflows; quick where no number is large."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if not largest * math.sqrt(X.shape[1]) < _SURELY_FINITE:
        finite_squared_norms(X)


def scores_of(X: Matrix, w: np.ndarray) -> np.ndarray:
    """X w with float64 sums, shape (n,), or (n, n_outputs) for a matrix w."""
    if not sparse.issparse(X):
        if w.ndim == 1:
            return linear_scores(X, w)
        return np.column_stack([linear_scores(X, np.ascontiguousarray(v)) for v in w.T])
    if w.ndim == 2:
        return np.asarray(X @ w, dtype=np.float64)
    scores = np.empty(X.shape[0])
    smallest = max(1, _NUMBERS_PER_THREAD * X.shape[0] // max(1, X.nnz))
    in_parts(
        _row_scores, X.shape[0], X.data, X.indices, X.indptr, w, scores, smallest=smallest
    )  # fmt: skip
    return scores


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
    in_parts(_add_rows, parts, X.data, X.indices, X.indptr, g, sums, smallest=1)
    return sums[0] if parts == 1 else sums.sum(axis=0)


@njit(**_SUMS)
def _row_scores(data, indices, indptr, w, scores, start, stop):
    """scores_i = <x_i, w> for the rows from start to stop."""
    one = np.uint64(1)
    for i in range(start, stop):
        p, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        # Two sums side by side: wider ones pay in long rows alone.
        even, odd = 0.0, 0.0
        if (last - p) & one:
            even += data[p] * w[np.uint64(indices[p])]
            p += one
        while p < last:
            even += data[p] * w[np.uint64(indices[p])]
            odd += data[p + one] * w[np.uint64(indices[p + one])]
            p += one + one
        scores[i] = even + odd


@njit(**_SUMS)
def _add_rows(data, indices, indptr, g, sums, start, stop):
    """sums[part] = sum of g_i x_i over a part of the rows; points without loss cost nothing."""
    n, parts = len(g), len(sums)
    for part in range(start, stop):
        first, last = n * part // parts, n * (part + 1) // parts
        for block in range(first, last, _LISTED):
            end = min(block + _LISTED, last)
            _add_block(data, indices, indptr, g, sums[part], block, end)


@njit(**_SUMS)
def _add_block(data, indices, indptr, g, total, start, stop):
    """total += the sum of g_i x_i over at most ``_LISTED`` rows."""
    count = 0
    for i in range(start, stop):
        count += g[i] != 0.0
    if count == stop - start:
        for i in range(np.uint64(start), np.uint64(stop)):
            _add_row(data, indices, indptr, i, g[i], total)
        return
    # Listed beforehand: a branch that nothing predicts would cost as much as a short row.
    listed, count = np.empty(_LISTED, dtype=np.uint64), 0
    for i in range(start, stop):
        listed[count] = i
        count += g[i] != 0.0
    for k in range(count):
        i = listed[k]
        _add_row(data, indices, indptr, i, g[i], total)


@njit(**_SUMS)
def _add_row(data, indices, indptr, i, factor, total):
    """total += factor x_i."""
    one = np.uint64(1)
    p, last = np.uint64(indptr[i]), np.uint64(indptr[i + one])
    if (last - p) & one:
        total[np.uint64(indices[p])] += factor * data[p]
        p += one
    # No feature is twice in a row: both sums are read before the first is written.
    while p < last:
        even, odd = np.uint64(indices[p]), np.uint64(indices[p + one])
        sum_even = total[even] + factor * data[p]
        sum_odd = total[odd] + factor * data[p + one]
        total[even], total[odd] = sum_even, sum_odd
        p += one + one
