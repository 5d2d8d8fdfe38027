"""Compiled products of CSR matrices with dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import njit
from .threads import in_parts

# Rows that are dense for a while: at most so many, in at most so many bytes of each thread.
_WIDEST, _BUFFER_BYTES = 64, 16 * 2**20
# Rows of the other matrix that are multiplied before their sums are written.
_GROUP = 16


def multiply_sparse(B: Any, A: np.ndarray, entries: np.ndarray) -> None:
    """``entries = A @ B.T``; every sum in the order of the stored numbers of B."""
    columns = np.ascontiguousarray(A.T, dtype=B.dtype)
    smallest = max(64, 2**16 // max(1, len(A)))
    arrays = B.data, B.indices, B.indptr, columns, entries
    in_parts(_sparse_rows, B.shape[0], *arrays, smallest=smallest)


def multiply_sparse_pair(A: Any, B: Any, entries: np.ndarray) -> None:
    """``entries = A @ B.T`` for CSR matrices; every sum in the order of the features.

    A few rows of A at a time are made dense, feature by feature, in one buffer for each thread.
    """
    width = int(np.clip(_BUFFER_BYTES // (A.shape[1] * B.dtype.itemsize), 8, _WIDEST))
    arrays = A.data, A.indices, A.indptr, B.data, B.indices, B.indptr
    in_parts(_pairs_of_rows, A.shape[0], *arrays, A.shape[1], width, entries, smallest=_WIDEST)


@njit(error_model="numpy", nogil=True)
def _pairs_of_rows(
    data, indices, indptr, others, other_indices, other_indptr, d, width, entries, start, stop
):
    """Rows start to stop of ``entries``."""
    # Pieces of equal size: the work does not depend on how full the columns are.
    pieces = max(1, -(-(stop - start) // width))
    width = -(-(stop - start) // (8 * pieces)) * 8
    columns = np.zeros(d * width, others.dtype)
    sums = np.empty(_GROUP * width, others.dtype)
    n = entries.shape[1]
    for first in range(start, stop, width):
        last = min(first + width, stop)
        for i in range(first, last):
            for p in range(indptr[i], indptr[i + 1]):
                columns[indices[p] * width + i - first] = data[p]
        for left in range(0, n, _GROUP):
            right = min(left + _GROUP, n)
            sums[:] = 0
            for j in range(left, right):
                row = slice(other_indptr[j], other_indptr[j + 1])
                _add_columns(others[row], other_indices[row], columns, width, sums, j - left)
            # A few columns at a time: writing into one of them touches a cache line in each row.
            for i in range(first, last):
                for j in range(left, right):
                    entries[i, j] = sums[(j - left) * width + i - first]
        for i in range(first, last):
            for p in range(indptr[i], indptr[i + 1]):
                columns[indices[p] * width + i - first] = 0


@njit(error_model="numpy")
def _add_columns(data, indices, columns, width, sums, place):
    """One row of sums: the products of stored numbers with their columns, four at a time."""
    # Of an unsigned index a compiler knows that it does not count from the end of an array.
    span, at = np.uintp(width), np.uintp(place * width)
    whole = len(data) - len(data) % 4
    for p in range(0, whole, 4):
        v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        c0, c1 = np.uintp(indices[p] * width), np.uintp(indices[p + 1] * width)
        c2, c3 = np.uintp(indices[p + 2] * width), np.uintp(indices[p + 3] * width)
        for i in range(span):
            total = sums[at + i] + v0 * columns[c0 + i]
            total += v1 * columns[c1 + i]
            total += v2 * columns[c2 + i]
            sums[at + i] = total + v3 * columns[c3 + i]
    for p in range(whole, len(data)):
        v0, c0 = data[p], np.uintp(indices[p] * width)
        for i in range(span):
            sums[at + i] += v0 * columns[c0 + i]


@njit(error_model="numpy", nogil=True)
def _sparse_rows(data, indices, indptr, columns, entries, start, stop):
    """Columns start to stop of ``entries``: for each stored number one update of a whole column."""
    width, m = 8, columns.shape[1]
    sums = np.empty((width, m), dtype=columns.dtype)
    for first in range(start, stop, width):
        last = min(first + width, stop)
        for j in range(first, last):
            total = sums[j - first]
            total[:] = 0
            for p in range(indptr[j], indptr[j + 1]):
                value, column = data[p], columns[indices[p]]
                for i in range(m):
                    total[i] += value * column[i]
        # A few columns at a time, for writing into one of them touches a cache line for each row.
        for i in range(m):
            for j in range(first, last):
                entries[i, j] = sums[j - first, i]
