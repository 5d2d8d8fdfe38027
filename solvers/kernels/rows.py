"""Kernel rows in memory: a cache bounded in bytes, and which rows to compute ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..numeric.matrices import scratch

# Bounds on the rows at a time: fewer take BLAS nearly as long together, more are hardly cheaper
# for each.
_FEWEST_ROWS, _MOST_ROWS = 24, 128
# Indices to come are looked at in this number, to find rows among them that are not stored yet.
_INDICES = 4096
# The rows wanted soon are so many times those computed at a time.
_BLOCKS_AHEAD = 12


class RowCache:
    """Kernel rows in one array; flat index arrays, no object per row.

    Rows asked for together that are new stand one behind the other, as long as there is room that
    was never used. ``slot_of_row`` says where each row is stored; -1 if it is not.
    """

    def __init__(self, n: int, dtype: Any, max_bytes: int) -> None:
        slots = min(n, max_bytes // (n * np.dtype(dtype).itemsize))
        self.storage = scratch((slots, n), dtype)
        self.rows = self.storage.view()
        self.rows.flags.writeable = False
        self.slot_of_row = np.full(n, -1, dtype=np.int64)
        self._row_of_slot = np.full(slots, -1, dtype=np.int64)
        self._last_used = np.zeros(slots, dtype=np.int64)
        self._clock = 0
        self._filled = 0

    def __len__(self) -> int:
        """The number of rows that fit."""
        return len(self.storage)

    @staticmethod
    def fits(n: int, dtype: Any, max_bytes: int) -> bool:
        """Whether two rows fit: with fewer, a row would be lost while its partner is fetched."""
        return max_bytes >= 2 * n * np.dtype(dtype).itemsize

    def slot(self, i: int) -> int:
        """The slot of row i, now the most recently used; -1 if it is not stored."""
        slot = int(self.slot_of_row[i])
        if slot >= 0:
            self._clock += 1
            self._last_used[slot] = self._clock
        return slot

    def slots(self, index: np.ndarray) -> np.ndarray:
        """The slots of these rows, now the most recently used; -1 for those not stored."""
        slots = self.slot_of_row[index]
        self._touch(slots[slots >= 0])
        return slots

    def holds(self, index: np.ndarray) -> np.ndarray:
        """Whether each row is stored; no row becomes the more recently used by it."""
        return self.slot_of_row[index] >= 0

    def reserve(self, index: np.ndarray) -> np.ndarray:
        """Slots for these distinct rows, none of them stored yet; the oldest rows make room.

        At most ``len(cache)`` rows; those used most recently stay.
        """
        fresh = min(len(index), len(self.storage) - self._filled)
        slots = np.arange(self._filled, self._filled + len(index))
        self._filled += fresh
        if fresh < len(index):
            missing = len(index) - fresh
            # The new slots are not to be given away again.
            self._touch(slots[:fresh])
            oldest = np.sort(np.argpartition(self._last_used, missing - 1)[:missing])
            slots[fresh:] = oldest
            self.slot_of_row[self._row_of_slot[oldest]] = -1
        self.slot_of_row[index] = slots
        self._row_of_slot[slots] = index
        self._touch(slots)
        return slots

    def _touch(self, slots: np.ndarray) -> None:
        """These slots are the most recently used, the last one most of all."""
        self._last_used[slots] = np.arange(self._clock + 1, self._clock + 1 + len(slots))
        self._clock += len(slots)


class RowsAhead:
    """Chooses rows to compute ahead of time, as many as have lately proved useful.

    One row at a time, SDCA on adult takes 1.8 and Pegasos on mnist 1.2 times as long.
    The number doubles as long as more of the rows computed ahead were then asked for than turned
    out not to be wanted, and falls to a quarter otherwise.
    """

    def __init__(self, store: RowCache, n: int) -> None:
        self._store = store
        self.waiting = np.zeros(n, dtype=bool)  # Rows computed ahead and not asked for yet
        self._computed = np.empty(0, dtype=np.int64)
        self._used = 0
        self._limit = _FEWEST_ROWS

    def note(self, index: np.ndarray) -> None:
        """These rows are asked for, int64; the same one may come more than once."""
        waiting = index[self.waiting[index]]
        if len(waiting):
            self.waiting[waiting] = False
            self._used += len(np.unique(waiting))

    def choose(self, i: int, upcoming: Callable[[int], np.ndarray]) -> np.ndarray:
        """Distinct rows to compute now, none of them stored; the first is i."""
        soon = _distinct(upcoming(_INDICES))
        self._learn(soon)
        at_most = max(1, min(self._limit, len(self._store) // 2))
        soon = soon[: min(_BLOCKS_AHEAD * at_most, len(self._store) - at_most)]
        # What is there already and wanted soon must not make room for the new rows.
        self._store.slots(soon)
        missing = soon[~self._store.holds(soon) & (soon != i)][: at_most - 1]
        self.waiting[missing] = True
        self._computed = np.append(self._computed, missing)
        return np.append(np.int64(i), missing)

    def _learn(self, soon: np.ndarray) -> None:
        """Adapt the number of rows to what became of those computed before."""
        waiting = self._computed[self.waiting[self._computed]]
        self.waiting[waiting] = False
        still_wanted = np.isin(waiting, soon)
        wasted = len(waiting) - int(still_wanted.sum())
        self._limit = min(2 * self._limit, _MOST_ROWS)
        if wasted > self._used:
            self._limit = max(_FEWEST_ROWS, self._limit // 4)
        self._computed = waiting[still_wanted]
        self.waiting[self._computed] = True
        self._used = 0


def _distinct(index: np.ndarray) -> np.ndarray:
    """The index without repetitions, in its order."""
    first = np.unique(index, return_index=True)[1]
    first.sort()
    return index[first]
