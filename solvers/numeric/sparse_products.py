"""Compiled products of CSR matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import njit
from .threads import in_parts

# Rows that are dense for a while: at most so many, in at most so many bytes of each thread.
_WIDEST, _BUFFER_BYTES = 64, 16 * 2**20
# Rows of the other matrix that are multiplied before their sums are written.
_GROUP = 64


def multiply_sparse(A: Any, B: Any, entries: np.ndarray) -> None:
    """``entries = A @ B.T`` for CSR matrices; every sum in the order of the features.

    A few rows of A at a time are made dense, in columns of the features that occur in them, in one
    buffer for each thread: an SMO fit of reuters_moneyfx takes 1.5 times as long with SciPy's
    products, and products of texts of 50 000 words twice as long with columns of all features.
    """
    longest = int(np.diff(A.indptr).max(initial=0))
    most = 1 + min(A.shape[1], _WIDEST * longest)
    width = int(np.clip(_BUFFER_BYTES // (most * B.dtype.itemsize), 8, _WIDEST))
    arrays = A.data, A.indices, A.indptr, B.data, B.indices, B.indptr
    sizes = A.shape[1], most, width
    in_parts(_pairs_of_rows, A.shape[0], *arrays, *sizes, entries, smallest=_WIDEST)


@njit(error_model="numpy", nogil=True)
def _pairs_of_rows(
    data, indices, indptr, others, other_indices, other_indptr, d, most, width, entries, start, stop
):
    """Rows start to stop of ``entries``."""
    # Pieces of equal size: the work does not depend on how full the columns are.
    pieces = max(1, -(-(stop - start) // width))
    width = max(8, -(-(stop - start) // (8 * pieces)) * 8)
    # Which column a feature has; the others share column 0, of zeros.
    places = np.zeros(d, np.int32)
    columns = np.zeros(most * width, others.dtype)
    sums = np.empty(_GROUP * width, others.dtype)
    n = entries.shape[1]
    for first in range(start, stop, width):
        last = min(first + width, stop)
        count = 0
        for i in range(first, last):
            for p in range(indptr[i], indptr[i + 1]):
                if places[indices[p]] == 0:
                    count += 1
                    places[indices[p]] = count
                columns[places[indices[p]] * width + i - first] = data[p]
        for left in range(0, n, _GROUP):
            right = min(left + _GROUP, n)
            sums[:] = 0
            for j in range(left, right):
                row = slice(other_indptr[j], other_indptr[j + 1])
                _add_columns(
                    others[row], other_indices[row], places, columns, width, sums, j - left
                )
            # A few columns at a time: writing into one of them touches a cache line in each row.
            for i in range(first, last):
                for j in range(left, right):
                    entries[i, j] = sums[(j - left) * width + i - first]
        columns[: (count + 1) * width] = 0
        for p in range(indptr[first], indptr[last]):
            places[indices[p]] = 0


@njit(error_model="numpy")
def _add_columns(data, indices, places, columns, width, sums, row):
    """One row of sums: the products of stored numbers with their columns, four at a time."""
    # Of an unsigned index a compiler knows that it does not count from the end of an array.
    span, at = np.uintp(width), np.uintp(row * width)
    whole = len(data) - len(data) % 4
    for p in range(0, whole, 4):
        v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
        c0 = np.uintp(places[np.uintp(indices[p])] * width)
        c1 = np.uintp(places[np.uintp(indices[p + 1])] * width)
        c2 = np.uintp(places[np.uintp(indices[p + 2])] * width)
        c3 = np.uintp(places[np.uintp(indices[p + 3])] * width)
        for i in range(span):
            total = sums[at + i] + v0 * columns[c0 + i]
            total += v1 * columns[c1 + i]
            total += v2 * columns[c2 + i]
            sums[at + i] = total + v3 * columns[c3 + i]
    for p in range(whole, len(data)):
        v0, c0 = data[p], np.uintp(places[np.uintp(indices[p])] * width)
        for i in range(span):
            sums[at + i] += v0 * columns[c0 + i]
