"""Kernel entries that are kept from state to state while a run is judged.

The states of a run share most of their support vectors. Without this, each state would compute the
entries of all of its support vectors anew.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from ...solvers.kernels import Kernel, Points
from ...solvers.kernels.scoring import sum_of_rows
from ...solvers.numeric.threads import in_parts

Array = npt.NDArray[Any]

#: All entries of a task must fit into so many bytes, otherwise none is kept.
KEPT_BYTES = 32 * 2**20
# So many are computed at a time.
_BLOCK_ENTRIES = 2**18


class KeptEntries:
    """k(x, z) of training points x with all points z of a task, computed when first needed.

    Parameters
    ----------
    kernel : Kernel
    vectors : Points
        The training points.
    sets : sequence of Points
        The points to score, one set after the other.
    """

    def __init__(self, kernel: Kernel, vectors: Points, *sets: Points) -> None:
        self._kernel, self._vectors, self._sets = kernel, vectors, sets
        self._rows: Array | None = None
        self._known = np.zeros(len(vectors), dtype=bool)

    @staticmethod
    def fit(n_train: int, n_points: int, dtype: str) -> bool:
        """Whether all entries of a task fit."""
        return n_train * n_points * np.dtype(dtype).itemsize <= KEPT_BYTES

    def scores(self, support: Array, coef: Array) -> Array:
        """sum_j coef_j k(x_j, z) of each point z, with float64 sums.

        Parameters
        ----------
        support : ndarray of int
            Training points.
        coef : ndarray of float64
            Their coefficients.
        """
        sums = np.zeros(sum(map(len, self._sets)))
        if len(support):
            known = self._known[support]
            rows = self._rows if known.all() else self._with(self._missing(support[~known]))
            in_parts(sum_of_rows, len(sums), rows, support, coef, sums)
        return sums

    def _missing(self, new: Array) -> Array:
        """These rows, or all that are missing where they take one block."""
        missing = np.flatnonzero(~self._known)
        width = sum(map(len, self._sets))
        return missing if len(missing) * width <= _BLOCK_ENTRIES else new

    def _with(self, new: Array) -> Array:
        """The rows of all entries, with those of further training points."""
        vectors, stop = self._vectors.take(new), 0
        for points in self._sets:
            for part in _parts(len(points), len(new)):
                block = self._kernel.block(points.take(part), vectors)
                start, stop = stop, stop + len(block)
                if self._rows is None:
                    width = sum(map(len, self._sets))
                    self._rows = _mapped((len(self._known), width), block.dtype)
                self._rows[new, start:stop] = block.T
        self._known[new] = True
        assert self._rows is not None
        return self._rows


def _parts(n: int, width: int) -> list[slice]:
    """Points in parts of few enough entries to stay in a cache."""
    step = max(1, _BLOCK_ENTRIES // max(1, width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _mapped(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Zeros that take memory where they are written to, and give it back when they are gone.

    The C library may keep what it was given back for the next run, whose memory is measured.
    """
    size = shape[0] * shape[1]
    return np.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype, size).reshape(shape)
