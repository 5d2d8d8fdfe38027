"""A byte-bounded cache of kernel rows, least recently used out first."""

from __future__ import annotations

from typing import Any

import numpy as np


class RowCache:
    """Kernel rows in one array; flat index arrays, no object per row.

    Parameters
    ----------
    n : int
        Length of a row, and the number of rows that could be asked for.
    dtype : data-type
        Type of the entries.
    max_bytes : int
        Bound on the bytes of the stored rows. The operating system hands out memory only as rows
        fill it.
    """

    def __init__(self, n: int, dtype: Any, max_bytes: int) -> None:
        slots = min(n, max_bytes // (n * np.dtype(dtype).itemsize))
        self.storage = np.empty((slots, n), dtype=dtype)
        self.rows = self.storage.view()
        self.rows.flags.writeable = False
        self._slot_of_row = np.full(n, -1, dtype=np.int64)
        self._row_of_slot = np.full(slots, -1, dtype=np.int64)
        self._last_used = np.zeros(slots, dtype=np.int64)
        self._clock = 0
        self._filled = 0

    @staticmethod
    def fits(n: int, dtype: Any, max_bytes: int) -> bool:
        """Whether two rows fit: with fewer, a row would be lost while its partner is fetched."""
        return max_bytes >= 2 * n * np.dtype(dtype).itemsize

    def slot(self, i: int) -> int:
        """The slot of row i, now the most recently used; -1 if it is not stored."""
        slot = int(self._slot_of_row[i])
        if slot >= 0:
            self._clock += 1
            self._last_used[slot] = self._clock
        return slot

    def reserve(self, i: int) -> int:
        """A slot for row i, which is not stored yet; the oldest row makes room."""
        if self._filled < len(self._row_of_slot):
            slot = self._filled
            self._filled += 1
        else:
            slot = int(self._last_used.argmin())
            self._slot_of_row[self._row_of_slot[slot]] = -1
        self._clock += 1
        self._slot_of_row[i] = slot
        self._row_of_slot[slot] = i
        self._last_used[slot] = self._clock
        return slot
