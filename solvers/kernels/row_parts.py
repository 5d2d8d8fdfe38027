"""Kernel rows put together from entries that are known and entries that are computed."""

from __future__ import annotations

import numpy as np

from ..numeric.compiling import njit
from ..numeric.threads import in_parts
from .base import Kernel, Points

# So many columns are computed at a time.
_COLUMNS = 4096


def put_together(
    kernel: Kernel,
    points: Points,
    index: np.ndarray,
    columns: np.ndarray,
    entries: np.ndarray,
    places: np.ndarray,
    storage: np.ndarray,
    slots: np.ndarray,
    chunk: int,
) -> None:
    """Store rows whose entries in some columns are known, the others computed."""
    others = np.setdiff1d(np.arange(len(points)), columns, assume_unique=True)
    order = np.argsort(columns)
    columns = columns[order]
    chunks = [slice(top, top + chunk) for top in range(0, len(index), chunk)]
    rows = [points.take(index[part]) for part in chunks]
    done = 0
    for start in range(0, max(1, len(others)), _COLUMNS):
        new = others[start : start + _COLUMNS]
        # The known entries enter with the new ones between which they stand: near in memory.
        is_last = start + _COLUMNS >= len(others)
        end = len(columns) if is_last else int(np.searchsorted(columns, new[-1]))
        known, sources = columns[done:end], order[done:end]
        done = end
        those = points.take(new)
        for part, these in zip(chunks, rows, strict=True):
            block = kernel.block(these, those)
            in_parts(
                _spread, len(block), storage, slots[part], known, entries, places[part], sources,
                new, block, smallest=8,
            )  # fmt: skip


@njit(error_model="numpy", nogil=True)
def _spread(storage, slots, known, entries, places, sources, new, block, start, stop):
    """Known entries and new ones, into their columns of the stored rows from start to stop."""
    for p in range(start, stop):
        target, source = storage[slots[p]], entries[places[p]]
        for c in range(len(known)):
            target[known[c]] = source[sources[c]]
        source = block[p]
        for c in range(len(new)):
            target[new[c]] = source[c]
