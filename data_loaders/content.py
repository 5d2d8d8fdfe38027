"""The content of a dataset: two parts, what makes them valid, and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from .errors import DataError

Dense: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
#: Dense C-contiguous rows, or compressed sparse rows.
Matrix: TypeAlias = Dense | csr_matrix
Labels: TypeAlias = NDArray[np.int8] | NDArray[np.int64]
#: Of a chunk of rows: the number of non-zeros of each row, their columns, their values.
_Nonzeros: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

#: Entries of a dense chunk of rows, or rows' non-zeros, that are looked at together.
_CHUNK_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Part:
    """Points and labels of the training or of the test part.

    Parameters
    ----------
    X : ndarray or csr_matrix, shape (n, d)
    y : integer ndarray, shape (n,)
    """

    X: Matrix
    y: Labels


@dataclass(frozen=True, eq=False)
class Content:
    """Both parts of a dataset, split already."""

    train: Part
    test: Part

    def parts(self) -> tuple[tuple[str, Part], tuple[str, Part]]:
        """The parts with their names, training part first."""
        return ("train", self.train), ("test", self.test)


class Fingerprint:
    """The SHA-256 of the canonical form of a dataset's content, part of rows by part of rows.

    Dense and sparse storage of the same values, in float32 or float64 (where float32 holds the
    values exactly), have the same fingerprint; explicit zeros do not count.

    Notes
    -----
    For the training part, then the test part: the shape; the SHA-256 of the number of non-zeros
    of each row; that of their columns, ascending in a row; that of their values; that of the
    labels. Integers are 64 bits and values IEEE doubles, all little-endian. The streams are
    hashed apart so that the result does not depend on the size of a chunk.
    """

    def __init__(self) -> None:
        self._roles = {"train": _RoleHash(), "test": _RoleHash()}

    def update(self, role: str, part: Part) -> None:
        """Add rows to the training or to the test part.

        Parameters
        ----------
        role : {"train", "test"}
        part : Part
            Rows of the same width each time.
        """
        self._roles[role].update(part)

    def hexdigest(self) -> str:
        """The fingerprint of the rows so far: 64 hexadecimal digits."""
        total = hashlib.sha256(b"marginbench content 1\n")
        for role in self._roles.values():
            role.finish(total)
        return total.hexdigest()


class _RoleHash:
    """Of one part: its shape and the hashes of its four streams of numbers."""

    def __init__(self) -> None:
        self._shape = (0, 0)
        self._lengths, self._columns, self._values, self._labels = (
            hashlib.sha256() for _ in range(4)
        )

    def update(self, part: Part) -> None:
        self._shape = (self._shape[0] + part.X.shape[0], part.X.shape[1])
        for lengths, columns, values in _nonzeros(part.X):
            self._lengths.update(_bytes(lengths, "<i8"))
            self._columns.update(_bytes(columns, "<i8"))
            self._values.update(_bytes(values, "<f8"))
        self._labels.update(_bytes(part.y, "<i8"))

    def finish(self, total: Any) -> None:
        total.update(np.asarray(self._shape, dtype="<i8").tobytes())
        for stream in (self._lengths, self._columns, self._values, self._labels):
            total.update(stream.digest())


def fingerprint(content: Content) -> str:
    """The fingerprint of a dataset's content; see `Fingerprint`.

    Parameters
    ----------
    content : Content

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    total = Fingerprint()
    for role, part in content.parts():
        total.update(role, part)
    return total.hexdigest()


def check(content: Content, name: str) -> None:
    """Refuse content that no solver could learn from.

    Parameters
    ----------
    content : Content
    name : str
        The dataset's name, for the messages.

    Raises
    ------
    DataError
        If a part is empty, its shapes disagree, a value is NaN or infinite, or all labels of a
        part are equal.
    """
    for role, part in content.parts():
        if part.X.ndim != 2 or part.y.shape != part.X.shape[:1] or 0 in part.X.shape:
            raise DataError(
                f"{name}: the {role} part has points of shape {part.X.shape} and labels of shape "
                f"{part.y.shape}; expected (n, d) and (n,), not empty"
            )
        _check_finite(part.X, f"{name}: {role} part")
        check_classes(part.y, f"{name}: {role} part")
    if content.train.X.shape[1] != content.test.X.shape[1]:
        raise DataError(
            f"{name}: {content.train.X.shape[1]} features in the train part but "
            f"{content.test.X.shape[1]} in the test part"
        )


def check_classes(y: Labels, where: str) -> None:
    """Raise DataError if there are fewer than two classes among the labels."""
    if (y == y[0]).all():
        raise DataError(f"{where}: one class only (every label is {y[0]}); two are needed")


def canonical(X: csr_matrix) -> csr_matrix:
    """The matrix itself if its columns ascend in each row without repetition, else such a copy."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _check_finite(X: Matrix, where: str) -> None:
    wrong = _nonfinite_entry(X) if issparse(X) else _nonfinite_in_rows(X)
    if wrong is not None:
        row, column, value = wrong
        raise DataError(f"{where}: row {row}, feature {column} is {value}, not a finite number")


def _nonfinite_entry(X: csr_matrix) -> tuple[int, int, float] | None:
    """Row and feature, counted from 1, and the value of the first entry that is not finite."""
    wrong = np.flatnonzero(~np.isfinite(X.data))
    if not wrong.size:
        return None
    first = int(wrong[0])
    row = int(np.searchsorted(X.indptr, first, side="right"))
    return row, int(X.indices[first]) + 1, float(X.data[first])


def _nonfinite_in_rows(X: Dense) -> tuple[int, int, float] | None:
    for start, rows in _dense_chunks(X):
        finite = np.isfinite(rows)
        if not finite.all():
            i, j = (int(k) for k in np.argwhere(~finite)[0])
            return start + i + 1, j + 1, float(rows[i, j])
    return None


def _bytes(numbers: NDArray[Any], dtype: str) -> memoryview:
    return np.ascontiguousarray(numbers, dtype=dtype).data


def _nonzeros(X: Matrix) -> Iterator[_Nonzeros]:
    return _sparse_nonzeros(canonical(X)) if issparse(X) else _dense_nonzeros(X)


def _dense_nonzeros(X: Dense) -> Iterator[_Nonzeros]:
    for _, rows in _dense_chunks(X):
        nonzero = rows != 0
        yield nonzero.sum(axis=1), np.nonzero(nonzero)[1], rows[nonzero]


def _sparse_nonzeros(X: csr_matrix) -> Iterator[_Nonzeros]:
    indptr: NDArray[np.int64] = X.indptr.astype(np.int64)
    start = 0
    while start < X.shape[0]:
        # As many rows as fit the chunk, one at least.
        fitting = np.searchsorted(indptr, indptr[start] + _CHUNK_ENTRIES, side="right")
        stop = max(start + 1, int(fitting) - 1)
        bounds = indptr[start : stop + 1]
        items = slice(bounds[0], bounds[-1])
        nonzero = X.data[items] != 0
        before = np.concatenate(([0], np.cumsum(nonzero)))
        lengths = np.diff(before[bounds - bounds[0]])
        yield lengths, X.indices[items][nonzero], X.data[items][nonzero]
        start = stop


def _dense_chunks(X: Dense) -> Iterator[tuple[int, Dense]]:
    step = max(1, _CHUNK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield start, X[start : start + step]
