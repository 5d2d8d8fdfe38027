"""The Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from ..numeric.compiling import njit
from ..numeric.matrices import Matrix, as_dense, stored
from ..numeric.threads import in_parts
from ..registration import register_kernel
from .base import Kernel, Points, check_range, kept_dense, placed, rounding_unit
from .parameters import parameter, width


@register_kernel("laplacian")
@dataclass(frozen=True)
class Laplacian(Kernel):
    """The Laplacian kernel k(x, z) = exp(-gamma ||x - z||_1), with the sum of |x_f - z_f|.

    Sums are float64; the cost of an entry is that of one pass over the features (over the stored
    numbers of one point, for CSR data).

    Parameters
    ----------
    gamma : float > 0
    """

    words = "Laplacian kernel"
    unit_diagonal = True

    gamma: float = parameter(width, default=1.0)

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        values = stored(X, dtype, dense=kept_dense(X, dtype, like))
        check_range(self, 0.0, _lengths(values), dtype)
        return Points(values)

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        entries = np.empty((len(A), len(B)), dtype=B.values.dtype) if out is None else out
        queries, values = np.ascontiguousarray(as_dense(A.values)), B.values
        smallest = max(1, 2**16 // max(1, queries.size))
        if sparse.issparse(values):
            arrays = (values.data, values.indices, values.indptr)
            in_parts(
                _of_csr, len(B), *arrays, queries, _lengths(A.values), entries, smallest=smallest
            )
        else:
            in_parts(_of_dense, len(B), values, queries, entries, smallest=smallest)
        entries *= -self.gamma
        return placed(np.exp(entries, out=entries), out)

    def diag(self, A: Points) -> np.ndarray:
        return np.ones(len(A))

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        # Each coordinate is rounded by itself; exp passes the error of the exponent on.
        longest = float(_lengths(points.values).max(initial=0.0))
        return rounding_unit(dtype) * (1.0 + 2.0 * self.gamma * longest)

    def same_in_every_block(self, points: Points, dtype: Any) -> bool:
        return True


def _lengths(values: Matrix) -> np.ndarray:
    """||x||_1 of each row, float64, shape (n_points,)."""
    with np.errstate(over="ignore"):
        return np.asarray(abs(values).sum(axis=1, dtype=np.float64)).ravel()


def _of_dense(
    values: np.ndarray, queries: np.ndarray, entries: np.ndarray, start: int, stop: int
) -> None:
    """Columns start to stop of the distances."""
    entries[:, start:stop] = cdist(queries, values[start:stop], "cityblock")


@njit(error_model="numpy", nogil=True)
def _of_csr(data, indices, indptr, queries, lengths, entries, start, stop):
    """The same against the rows of a CSR matrix: what is not stored contributes |query_f|."""
    for j in range(start, stop):
        for i in range(len(queries)):
            total = lengths[i]
            for p in range(indptr[j], indptr[j + 1]):
                query = np.float64(queries[i, indices[p]])
                total += abs(query - np.float64(data[p])) - abs(query)
            # Rounding may leave the sum of a point and itself below 0.
            entries[i, j] = max(total, 0.0)
