"""The kernel oracle: the only thing that evaluates kernel entries, and that counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..numeric.compiling import njit
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix, as_dense
from ..numeric.threads import in_parts
from . import Kernel, Points, make_kernel
from .rows import RowCache, rows_ahead
from .scoring import add_rows, expansion_scores

Index = Sequence[int] | np.ndarray

# Rows that are computed ahead of time without a cache wait in a buffer of this size.
_BUFFER_BYTES = 64 * 2**20
_BUFFER_ROWS = 512
# Rows are handed to compiled loops in chunks of about this size.
_CHUNK_BYTES = 64 * 2**20
_CHUNK_ROWS = 256
# Entries of points with fewer numbers are computed faster than memory for them is had.
_READ = 64


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
    shared : bool, default=False
        Whether the same rows will be wanted again and again, as for several classes. Then, if the
        cache holds all rows, blocks are put together from whole rows, which stay.

    Notes
    -----
    Rows are handed out read-only. A row of :meth:`row` stays valid during the next call of
    :meth:`row`; later calls, and blocks, may put other rows in its place.

    BLAS multiplies by a single vector in another order than by several, so :meth:`row` and the
    other methods may differ in the last bit of an entry. :meth:`row_ahead` never computes a row by
    itself: its rows do not depend on how many it computes at a time, as far as BLAS rounds alike
    at every place of a block.
    """

    def __init__(
        self,
        kernel: Kernel | str | Callable[[Any, Any], Any],
        X: Matrix,
        dtype: Any = "float32",
        cache_bytes: int = 0,
        counters: Counters | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self.kernel = make_kernel(kernel, X=X)
        self.dtype = np.dtype(dtype)
        self.points = self.kernel.prepare(X, self.dtype)
        self.n = len(self.points)
        self._X = X
        self.counters = Counters() if counters is None else counters
        self.cache_bytes = cache_bytes
        self._shared = shared
        self._diag: np.ndarray | None = None
        self._buffer: RowCache | None = None

    @cached_property
    def _cache(self) -> RowCache | None:
        if self.kernel.evaluates and RowCache.fits(self.n, self.dtype, self.cache_bytes):
            return RowCache(self.n, self.dtype, self.cache_bytes)
        return None

    def set_aside(self, n_bytes: int) -> None:
        """Leave so much of the bytes of the cache to the solver; before any row is asked for."""
        self.cache_bytes = max(0, self.cache_bytes - n_bytes)

    @property
    def cached_rows(self) -> int:
        """How many rows the cache has room for; 0 without one."""
        return 0 if self._cache is None else len(self._cache)

    @property
    def storing_pays(self) -> bool:
        """Whether an entry is read faster from a stored row than it is computed anew."""
        values, kernel = self.points.values, self.kernel
        dense_products = kernel.by_products and not sparse.issparse(values)
        return self._keeps_all or not (dense_products and values.shape[1] < _READ)

    @property
    def chunk(self) -> int:
        """How many rows :meth:`stored_rows` takes at a time."""
        rows = max(1, _CHUNK_BYTES // (self.n * self.dtype.itemsize))
        if self._cache is not None:
            rows = min(rows, len(self._cache))
        return int(min(rows, _CHUNK_ROWS))

    def row(self, i: int) -> np.ndarray:
        """k(x_i, x_j) for all j, shape (n,), read-only. Costs n entries."""
        self.charge(self.n, 0)
        for cache in (self._cache, self._buffer):
            if cache is not None:
                slot = cache.slot(i)
                if slot >= 0:
                    return cache.rows[slot]
        if self._cache is None:
            row = self._compute(np.array([i]))[0]
            row.flags.writeable = False
            return row
        return self._cache.rows[self._fill(self._cache, np.array([i]))[0]]

    def rows(self, index: Index) -> np.ndarray:
        """k(x_i, x_j) for i in the index and all j, a fresh array of shape (len(index), n)."""
        return self.block(index, None)

    def stored_rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of at most ``chunk`` distinct points where they are stored, and their slots.

        For compiled loops: nothing is copied. ``storage[slots[p]]`` is the row of ``index[p]``,
        read-only and valid until rows are asked for again. Costs n entries each.
        """
        self.charge(len(index) * self.n, 0)
        if self._cache is None:
            rows = self._compute(index)
            rows.flags.writeable = False
            return rows, np.arange(len(index))
        slots = self._cache.slots(index)
        missing = slots < 0
        if missing.any():
            slots[missing] = self._fill(self._cache, index[missing])
        return self._cache.rows, slots

    def add_rows(self, index: np.ndarray, coef: np.ndarray, sums: np.ndarray) -> None:
        """``sums_j += sum_p coef_p k(x_p, x_j)`` for the distinct p of the index and all j.

        Costs n entries for each of the index. Rows are stored where that pays.
        """
        if self.storing_pays:
            for start in range(0, len(index), self.chunk):
                part = slice(start, start + self.chunk)
                add_rows(*self.stored_rows(index[part]), coef[None, part], sums[None])
        elif len(index):
            self.charge(len(index) * self.n, len(index) * self.n)
            added = np.empty((1, self.n))
            self.kernel.weighted_sums(self.points, self.points.take(index), coef[None], added)
            sums += added[0]

    def among(self, index: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Entries of these points among each other, in an order of its own, and that order.

        Costs m^2 entries, which go into the room. What stored rows hold is read from them; where
        rows are stored, the rest is computed on one side of the diagonal only.
        """
        m = len(index)
        entries = room[: m * m].reshape(m, m)
        self.charge(m * m, 0)
        if not self.storing_pays:
            return self._compute(index, index, entries), index
        n_stored = 0
        if self._cache is not None:
            if self._keeps_all:
                self._keep(self._cache, index)
            slots = self._cache.slots(index)
            order = np.argsort(slots < 0, kind="stable")
            index, slots = index[order], slots[order]
            n_stored = int((slots >= 0).sum())
            arrays = self._cache.rows, slots, np.arange(n_stored), index, entries
            in_parts(_gather, n_stored, *arrays, smallest=8)
        for start in range(n_stored, m, _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            entries[part, start:] = self._compute(index[part], index[start:])
        in_parts(_mirror, m, entries, n_stored, smallest=_CHUNK_ROWS)
        return entries, index

    def row_ahead(self, i: int, upcoming: Callable[[int], np.ndarray]) -> np.ndarray:
        """The same as :meth:`row`, for a caller who knows which rows it will probably ask for next.

        If the row is to be computed, it is computed in one block with some of the next ones that
        are not there either. Nobody has asked for those yet: they count as computed only. Without
        a cache they wait in a small buffer. ``upcoming`` takes a number and returns at most so many
        of the next indices, soonest first, int64, perhaps repeated; it is called only if the row is
        to be computed.
        """
        if self.looks_ahead:
            store = self._store_ahead
            if store.slot_of_row[i] < 0:
                self._fill_by_block(store, rows_ahead(store, i, upcoming))
        return self.row(i)

    @property
    def stored(self) -> tuple[np.ndarray, np.ndarray]:
        """For compiled loops: stored rows, and where among them each row is, -1 if it is not.

        What a loop has read it tells :meth:`note_read`.
        """
        store = self._store_ahead if self.looks_ahead else self._cache
        return self._gram_rows if store is None else (store.rows, store.slot_of_row)

    @cached_property
    def _gram_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """What there is without a store: the rows of a Gram matrix, or none."""
        if self.kernel.evaluates:
            rows, slots = np.empty((0, self.n), self.dtype), np.full(self.n, -1)
        else:
            rows, slots = self.points.values.view(), np.arange(self.n)
        rows.flags.writeable = False
        return rows, slots

    def note_read(self, index: np.ndarray) -> None:
        """Count rows read from :attr:`stored`, in this order, as if :meth:`row_ahead` gave them."""
        self.charge(len(index) * self.n, 0)
        store = self._store_ahead if self.looks_ahead else self._cache
        if store is not None:
            store.slots(index)

    @property
    def looks_ahead(self) -> bool:
        """Whether :meth:`row_ahead` computes rows in blocks.

        It does where an entry is the same in every block, whatever the other rows are; not for a
        precomputed kernel, where there is nothing to gain.
        """
        return self.kernel.evaluates and self.kernel.same_in_every_block(self.points, self.dtype)

    @cached_property
    def _store_ahead(self) -> RowCache:
        """Where rows computed ahead wait, and what chooses them."""
        store = self._cache
        if store is None:
            row_bytes = self.n * self.dtype.itemsize
            rows = int(min(_BUFFER_ROWS, max(2, _BUFFER_BYTES // row_bytes)))
            store = self._buffer = RowCache(self.n, self.dtype, rows * row_bytes)
        return store

    def _fill_by_block(self, store: RowCache, index: np.ndarray) -> None:
        """Compute these distinct rows into the store, never one as a product with one vector."""
        if len(index) > 1:
            self._fill(store, index)
            return
        store.storage[store.reserve(index)] = self._compute(np.repeat(index, 2))[:1]
        # The second copy is no entry of its own.
        self.charge(0, -self.n)

    def block(self, index: Index, columns: Index | None = None) -> np.ndarray:
        """k(x_i, x_j) for i in the index and j in the columns (None: all), a fresh array.

        Costs len(index) len(columns) entries. Rows that the cache holds are read from it; rows
        that are computed whole are also stored there.
        """
        index = np.asarray(index, dtype=np.int64)
        columns = None if columns is None else np.asarray(columns, dtype=np.int64)
        width = self.n if columns is None else len(columns)
        self.charge(len(index) * width, 0)
        if self._cache is None:
            return self._compute(index, columns)
        if self._keeps_all:
            self._keep(self._cache, index)

        entries = np.empty((len(index), width), dtype=self.dtype)
        slots = self._cache.slots(index)
        stored = np.flatnonzero(slots >= 0)
        rows = self._cache.rows
        if columns is None:
            for position in stored:
                entries[position] = rows[slots[position]]
        else:
            in_parts(_gather, len(stored), rows, slots, stored, columns, entries, smallest=8)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            _, first, inverse = np.unique(index[missing], return_index=True, return_inverse=True)
            order = np.argsort(first)
            distinct = index[missing][first[order]]
            computed = self._compute(distinct, columns)
            entries[missing] = computed[np.argsort(order)[inverse]]
            if columns is None:
                kept = len(self._cache)
                self._cache.storage[self._cache.reserve(distinct[-kept:])] = computed[-kept:]
        return entries

    def fresh_block(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Like :meth:`block`, but all computed anew: faster where gathering from rows is slow."""
        if self._keeps_all:
            return self.block(index, columns)
        self.charge(len(index) * len(columns), 0)
        return self._compute(index, columns)

    @property
    def _keeps_all(self) -> bool:
        return self._shared and self._cache is not None and len(self._cache) == self.n

    def _keep(self, cache: RowCache, index: np.ndarray) -> None:
        """Compute those of the rows that are not stored; there is room for all."""
        missing = np.unique(index[~cache.holds(index)])
        for start in range(0, len(missing), self.chunk):
            self._fill(cache, missing[start : start + self.chunk])

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

    @property
    def rounding_words(self) -> str:
        """What ends a run that comes no nearer to its optimum, and what helps."""
        remedy = "scale the features" + (" or set dtype='float64'" * (self.dtype == np.float32))
        return f"the rounding of its {self.dtype.name} kernel entries ({remedy})"

    def exact_scores(
        self, coef: np.ndarray, index: np.ndarray | None = None, *, charged: bool = True
    ) -> np.ndarray:
        """sum_j coef_j k(x_j, x_i) for i in the index (None: all), float64.

        Costs an entry, float64 and computed anew, for each of them and each coefficient but 0. What
        is not charged, since no textbook run would ask for it, counts as computed alone.
        """
        support = np.flatnonzero(coef)
        entries = len(support) * (self.n if index is None else len(index))
        self.charge(entries if charged else 0, entries if self.kernel.evaluates else 0)
        if not self.kernel.evaluates:
            # As given: the points hold entries that are rounded to their type.
            columns = slice(None) if index is None else index
            scores = np.zeros(self.n if index is None else len(index))
            for i in support:
                scores += coef[i] * as_dense(self._X[[i]])[0].astype(np.float64)[columns]
            return scores
        if index is None or len(index) > len(support):
            points, X = self._exact_points(support), self._X if index is None else self._X[index]
            return expansion_scores(self.kernel, points, coef[support], X, "float64")
        # Few points: they are prepared once, the many others block by block.
        points, scores = self._exact_points(index), np.zeros(len(index))
        for start in range(0, len(support), _CHUNK_ROWS):
            part = support[start : start + _CHUNK_ROWS]
            others = self.kernel.prepare(self._X[part], "float64", like=points)
            scores += coef[part] @ self.kernel.block(others, points)
        return scores

    def _exact_points(self, index: np.ndarray) -> Points:
        return self.kernel.prepare(self._X[index], "float64")

    def charge(self, kernel_evals: int, computed: int) -> None:
        """Count entries: those that were asked for, and those that were computed."""
        self.counters.charge(kernel_evals, computed)

    def _fill(self, cache: RowCache, index: np.ndarray) -> np.ndarray:
        """Compute these distinct rows into the cache; their slots."""
        slots = cache.reserve(index)
        first, last = int(slots[0]), int(slots[-1])
        if last - first + 1 == len(slots) and bool((np.diff(slots) == 1).all()):
            self._compute(index, out=cache.storage[first : last + 1])
        else:
            cache.storage[slots] = self._compute(index)
        return slots

    def _compute(
        self, index: np.ndarray, columns: np.ndarray | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        points = self.points if columns is None else self.points.take(columns)
        if self.kernel.evaluates:
            self.charge(0, len(index) * len(points))
        entries = self.kernel.block(self.points.take(index), points, out)
        if self.kernel.unit_diagonal:
            # Rounding may have put the distance of a point from itself far from 0.
            entries[_same(index, columns)] = 1
        return entries


@njit(error_model="numpy", nogil=True)
def _gather(rows, slots, positions, columns, entries, start, stop):
    """Stored entries in these columns, into the rows of ``entries`` at these positions."""
    for position in positions[start:stop]:
        row, target = rows[slots[position]], entries[position]
        for c in range(len(columns)):
            target[c] = row[columns[c]]


@njit(error_model="numpy", nogil=True)
def _mirror(entries, first, start, stop):
    """Rows start to stop, those from the first on, of a symmetric matrix left of the diagonal."""
    tile = 64
    for top in range(max(start, first), stop, tile):
        for left in range(0, min(top + tile, stop), tile):
            for i in range(top, min(top + tile, stop)):
                for j in range(left, min(left + tile, i)):
                    entries[i, j] = entries[j, i]


def _same(index: np.ndarray, columns: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that belong to one point alone; columns=None: all points."""
    if columns is None:
        return np.arange(len(index)), index
    order = np.argsort(columns, kind="stable")
    first = np.searchsorted(columns, index, "left", sorter=order)
    counts = np.searchsorted(columns, index, "right", sorter=order) - first
    rows = np.repeat(np.arange(len(index)), counts)
    turn = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, order[np.repeat(first, counts) + turn]
