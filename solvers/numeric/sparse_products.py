"""Compiled products of CSR matrices with dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginbench.solvers.numeric.compiling import njit
from marginbench.solvers.numeric.threads import in_parts


def multiply_sparse(B: Any, A: np.ndarray, entries: np.ndarray) -> None:
    """``entries = A @ B.T``; every sum in the order of the stored numbers of B.

    Parameters
    ----------
    B : csr_matrix, shape (n, n_features)
    A : ndarray, shape (m, n_features)
    entries : ndarray, shape (m, n)
        In any memory order.
    """
    columns = np.ascontiguousarray(A.T, dtype=B.dtype)
    smallest = max(64, 2**16 // max(1, len(A)))
    arrays = B.data, B.indices, B.indptr, columns, entries
    in_parts(_sparse_rows, B.shape[0], *arrays, smallest=smallest)


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
