"""The kernel oracle: the only thing that evaluates kernel entries, and that counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.cache import RowCache
from solvers.kernels import Kernel, make_kernel
from solvers.matrices import Matrix

Index = Sequence[int] | np.ndarray


@dataclass
class Counters:
    """What a run has cost so far.

    Attributes
    ----------
    kernel_evals : int
        Kernel entries that a textbook run without any cache asks for. Constants that need no
        evaluation (the unit diagonal of a Gaussian kernel) are not entries.
    kernel_evals_computed : int
        Kernel entries really computed: what the cache held was free.
    matvec_entries : int
        Multiply-adds against a stored Gram matrix.
    inner_products : int
        Inner products of n_features numbers, for methods that work without a kernel.
    """

    kernel_evals: int = 0
    kernel_evals_computed: int = 0
    matvec_entries: int = 0
    inner_products: int = 0


class KernelOracle:
    """Kernel entries of one training set, by row and by block, counted.

    Parameters
    ----------
    kernel : Kernel, str or callable
    X : ndarray or csr_matrix, shape (n, n_features)
        The training points; for a precomputed kernel the Gram matrix, shape (n, n).
    dtype : {"float32", "float64"}
        Type of the entries.
    cache_bytes : int
        Bound on the bytes of cached rows, 0 for no cache. A bound below two rows is no cache.
    counters : Counters, optional
        Where to count; a fresh one by default.

    Notes
    -----
    Rows are handed out read-only. A row of :meth:`row` stays valid during the next call of
    :meth:`row`; later calls, and blocks, may put other rows in its place.
    """

    def __init__(
        self,
        kernel: Kernel | str | Callable[[Any, Any], Any],
        X: Matrix,
        dtype: Any = "float32",
        cache_bytes: int = 0,
        counters: Counters | None = None,
    ) -> None:
        self.kernel = make_kernel(kernel, X=X)
        self.dtype = np.dtype(dtype)
        self.points = self.kernel.prepare(X, self.dtype)
        self.n = len(self.points)
        self.counters = Counters() if counters is None else counters
        self._diag: np.ndarray | None = None
        self._cache: RowCache | None = None
        if self.kernel.evaluates and RowCache.fits(self.n, self.dtype, cache_bytes):
            self._cache = RowCache(self.n, self.dtype, cache_bytes)

    def row(self, i: int) -> np.ndarray:
        """k(x_i, x_j) for all j, shape (n,), read-only. Costs n entries."""
        self.counters.kernel_evals += self.n
        if self._cache is None:
            row = self._compute(np.array([i]))[0]
            row.flags.writeable = False
            return row
        slot = self._cache.slot(i)
        if slot < 0:
            slot = self._fill(self._cache, i)
        return self._cache.rows[slot]

    def rows(self, index: Index) -> np.ndarray:
        """k(x_i, x_j) for i in the index and all j, a fresh array of shape (len(index), n)."""
        return self.block(index, None)

    def block(self, index: Index, columns: Index | None = None) -> np.ndarray:
        """k(x_i, x_j) for i in the index and j in the columns (None: all), a fresh array.

        Costs len(index) len(columns) entries. Rows that the cache holds are read from it; rows
        that are computed whole are also stored there.
        """
        index = np.asarray(index, dtype=np.int64)
        columns = None if columns is None else np.asarray(columns, dtype=np.int64)
        width = self.n if columns is None else len(columns)
        self.counters.kernel_evals += len(index) * width
        if self._cache is None:
            return self._compute(index, columns)

        entries = np.empty((len(index), width), dtype=self.dtype)
        missing: dict[int, list[int]] = {}
        for position, i in enumerate(index.tolist()):
            slot = self._cache.slot(i)
            if slot < 0:
                missing.setdefault(i, []).append(position)
            else:
                row = self._cache.rows[slot]
                entries[position] = row if columns is None else row[columns]
        if missing:
            computed = self._compute(np.array(list(missing)), columns)
            for row, (i, positions) in zip(computed, missing.items(), strict=True):
                entries[positions] = row
                if columns is None:
                    self._cache.storage[self._cache.reserve(i)] = row
        return entries

    def diag(self) -> np.ndarray:
        """k(x_i, x_i), float64, shape (n,), read-only.

        Costs n entries once; none if they are 1 for sure.
        """
        if self._diag is None:
            self._diag = self.kernel.diag(self.points)
            self._diag.flags.writeable = False
            if not self.kernel.unit_diagonal:
                self.charge(self.n, self.n if self.kernel.evaluates else 0)
        return self._diag

    def against(self, Z: Matrix, columns: Index | None = None) -> np.ndarray:
        """k(z, x_j) for other points z and j in the columns (None: all), a fresh array.

        For a precomputed kernel Z has a column for each of the n training points.
        """
        Z = self.kernel.prepare(Z, self.dtype, like=self.points)
        points = self.points
        if columns is not None:
            points = points.take(np.asarray(columns, dtype=np.int64))
        entries = len(Z) * len(points)
        self.charge(entries, entries if self.kernel.evaluates else 0)
        return self.kernel.block(Z, points)

    def charge(self, kernel_evals: int, computed: int) -> None:
        """Count entries that a compiled loop evaluated by itself."""
        self.counters.kernel_evals += kernel_evals
        self.counters.kernel_evals_computed += computed

    def _fill(self, cache: RowCache, i: int) -> int:
        row = self._compute(np.array([i]))[0]
        slot = cache.reserve(i)
        cache.storage[slot] = row
        return slot

    def _compute(self, index: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        points = self.points if columns is None else self.points.take(columns)
        if self.kernel.evaluates:
            self.counters.kernel_evals_computed += len(index) * len(points)
        return self.kernel.block(self.points.take(index), points)
