"""The kernel matrix of the working set, from one working set to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..kernels.oracle import KernelOracle
from ..numeric.compiling import njit
from ..numeric.memory import scratch
from ..numeric.threads import in_parts

# Entries enter the working matrix in chunks of so many rows, and move in tiles of so many columns.
_CHUNK, _TILE = 512, 64
# Rows, or columns, below which a thread costs more than it saves.
_FEW = 256
# Makes the rows of the working matrix longer: a power of two would put them in each other's way.
_PADDING = 16
_NONE = np.empty(0, dtype=np.int64)


class WorkingMatrix:
    """The kernel matrix of the working set; what two working sets share is kept."""

    def __init__(self, oracle: KernelOracle, largest: int) -> None:
        self.largest = largest
        self._oracle = oracle
        # A little wider than used: columns at a distance of a power of two share a place in caches.
        self._entries = scratch((largest, largest + _PADDING), oracle.dtype)
        self._members = np.empty(0, dtype=np.int64)

    def of(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The matrix of these variables, in an order of its own, and that order."""
        new = np.setdiff1d(wanted, self._members, assume_unique=True)
        if len(new) * 2 > len(wanted):
            self._members, places = wanted, np.arange(len(wanted))
        else:
            places = self._make_room(np.isin(self._members, wanted, assume_unique=True), new)
        self._enter(places)
        return self._entries, self._members

    def _make_room(self, stay: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Put the new variables in the places of those that leave; close what gaps are left.

        Returns the places of the new ones.
        """
        size = int(stay.sum()) + len(new)
        # Members that stay, but stand behind the new size, move into gaps before it.
        gaps = np.flatnonzero(~stay[:size])
        behind = size + np.flatnonzero(stay[size:])
        into, gaps = gaps[: len(behind)], gaps[len(behind) :]
        old = len(self._members)
        places = np.concatenate([gaps, np.arange(old, size)])
        members = np.empty(size, dtype=np.int64)
        members[: min(old, size)] = self._members[:size]
        if len(behind):
            K = self._entries
            K[into, :old] = K[behind, :old]
            in_parts(_copy_columns, size, K, behind, into, smallest=_FEW)
            members[into] = self._members[behind]
        members[places] = new
        self._members = members
        return places

    def _enter(self, places: np.ndarray) -> None:
        """Fill in the rows and columns of the members that stand in these places."""
        is_new = np.zeros(len(self._members), dtype=bool)
        is_new[places] = True
        stay = np.flatnonzero(~is_new)
        if not self._oracle.reading_pays:
            for part in _chunks(places):
                self._put(part, self._oracle.fresh_block, stay, places)
            return
        stored = self._oracle.stores(self._members)
        known, unknown = np.flatnonzero(is_new & stored), np.flatnonzero(is_new & ~stored)
        # What stored rows hold is read there, those of the new members first.
        for part in _chunks(known):
            self._put(part, self._oracle.block, np.concatenate([stay, unknown]), known)
        if len(unknown):
            for part in _chunks(stay[stored[stay]]):
                self._put(part, self._oracle.block, unknown)
        # The matrix is symmetric: no chunk is computed with those before it.
        others = stay[~stored[stay]]
        for part in _chunks(unknown):
            later = unknown[unknown > part[-1]]
            self._put(part, self._oracle.fresh_block, np.concatenate([others, later]), part)

    def _put(
        self,
        rows: np.ndarray,
        entries_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
        both: np.ndarray,
        only: np.ndarray = _NONE,
    ) -> None:
        """Entries in these rows: of columns whose rows get them as well, and of others.

        An entry may differ from its mirror image by rounding, so none is written twice.
        """
        columns = np.concatenate([both, only])
        block = entries_of(self._members[rows], self._members[columns])
        in_parts(
            _spread, len(columns), self._entries, rows, columns, len(both), block, smallest=_FEW
        )


def _chunks(index: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(index), _CHUNK):
        yield index[start : start + _CHUNK]


@njit(error_model="numpy", nogil=True)
def _copy_columns(K, source, target, start, stop):
    """K[:, target] = K[:, source] in the rows from start to stop."""
    for r in range(start, stop):
        row = K[r]
        for p in range(len(source)):
            row[target[p]] = row[source[p]]


@njit(error_model="numpy", nogil=True)
def _spread(K, rows, columns, n_both, block, start, stop):
    """K[rows, columns] = block for columns from start to stop, the first n_both in both ways."""
    for first in range(start, stop, _TILE):
        last = min(first + _TILE, stop)
        for top in range(0, len(rows), _TILE):
            bottom = min(top + _TILE, len(rows))
            for p in range(top, bottom):
                target, source = K[rows[p]], block[p]
                for c in range(first, last):
                    target[columns[c]] = source[c]
            for c in range(first, min(last, n_both)):
                target = K[columns[c]]
                for p in range(top, bottom):
                    target[rows[p]] = block[p, c]
