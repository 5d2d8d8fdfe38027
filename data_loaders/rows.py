"""Blocks of sparse rows put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from .content import Part


def joined(parts: Iterator[Part], width: int) -> Part:
    """Put blocks of CSR rows below each other, in little more memory than the result takes.

    Parameters
    ----------
    parts : iterator of Part
        At most `width` features wide.
    width : int
    """
    data, indices = _Growing(np.float64), _Growing(np.int32)
    lengths, labels = _Growing(np.int64), _Growing(np.int64)
    for part in parts:
        X = cast(csr_matrix, part.X)
        data.extend(X.data)
        indices.extend(X.indices)
        lengths.extend(np.diff(X.indptr))
        labels.extend(part.y)
    indptr = np.concatenate(([0], np.cumsum(lengths.whole())))
    shape = (len(indptr) - 1, width)
    return Part(csr_matrix((data.whole(), indices.whole(), indptr), shape=shape), labels.whole())


class _Growing:
    """An array that others are appended to, in place where the system can do that."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._items: NDArray[Any] = np.empty(0, dtype=dtype)
        self._used = 0

    def extend(self, items: NDArray[Any]) -> None:
        start, self._used = self._used, self._used + len(items)
        if self._used > len(self._items):
            self._items.resize(self._used + self._used // 4, refcheck=False)
        self._items[start : self._used] = items

    def whole(self) -> NDArray[Any]:
        self._items.resize(self._used, refcheck=False)
        return self._items
