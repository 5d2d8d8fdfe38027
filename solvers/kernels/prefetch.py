"""Prefetching: which kernel rows to compute together with the requested one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .row_cache import RowCache

# Bounds on the rows at a time: fewer take BLAS nearly as long together, more are hardly cheaper
# for each.
_FEWEST_ROWS, _MOST_ROWS = 24, 128
# Indices to come are looked at in this number, to find rows among them that are not stored yet.
_INDICES = 4096
# The rows wanted soon are so many times those computed at a time.
_BLOCKS_AHEAD = 12


class RowsAhead:
    """Chooses rows to compute ahead of time, as many as have lately proved useful.

    The number doubles as long as more of the rows computed ahead were then asked for than turned
    out not to be wanted, and falls to a quarter otherwise.
    """

    def __init__(self, store: RowCache, n: int) -> None:
        self._store = store
        self._waiting = np.zeros(n, dtype=bool)
        self._computed = np.empty(0, dtype=np.int64)
        self._used = 0
        self._limit = _FEWEST_ROWS

    def awaits(self, i: int) -> bool:
        """Whether row i was computed ahead and not asked for yet."""
        return bool(self._waiting[i])

    def note(self, index: np.ndarray) -> None:
        """These rows are asked for, int64; the same one may come more than once."""
        waiting = index[self._waiting[index]]
        if len(waiting):
            self._waiting[waiting] = False
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
        self._waiting[missing] = True
        self._computed = np.append(self._computed, missing)
        return np.append(np.int64(i), missing)

    def _learn(self, soon: np.ndarray) -> None:
        """Adapt the number of rows to what became of those computed before."""
        waiting = self._computed[self._waiting[self._computed]]
        self._waiting[waiting] = False
        still_wanted = np.isin(waiting, soon)
        wasted = len(waiting) - int(still_wanted.sum())
        self._limit = min(2 * self._limit, _MOST_ROWS)
        if wasted > self._used:
            self._limit = max(_FEWEST_ROWS, self._limit // 4)
        self._computed = waiting[still_wanted]
        self._waiting[self._computed] = True
        self._used = 0


def _distinct(index: np.ndarray) -> np.ndarray:
    """The index without repetitions, in its order."""
    first = np.unique(index, return_index=True)[1]
    first.sort()
    return index[first]
