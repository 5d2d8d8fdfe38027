"""The content of a dataset: two parts, what makes them valid, and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Dense: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
#: Dense C-contiguous rows, or compressed sparse rows.
Matrix: TypeAlias = "Dense | csr_matrix"
Labels: TypeAlias = NDArray[np.int8] | NDArray[np.int64]

#: Entries of a dense chunk of rows, or rows' non-zeros, that are looked at together.
_CHUNK_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Part:
    """Points and labels of the training or of the test part; ``X`` is an array or a CSR matrix."""

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


def fingerprint(content: Content) -> str:
    """The SHA-256 of the canonical form of a dataset's content: 64 hexadecimal digits.

    Dense and sparse storage of the same values, in float32 or float64 (where float32 holds the
    values exactly), have the same fingerprint; explicit zeros do not count.

    For the training part, then the test part: the shape; the SHA-256 of the number of non-zeros of
    each row; that of their columns, ascending in a row; that of their values; that of the labels.
    Integers are 64 bits and values IEEE doubles, all little-endian. The streams are hashed apart so
    that the result does not depend on the size of a chunk.
    """
    total = hashlib.sha256(b"marginbench content 1\n")
    for _, part in content.parts():
        streams = [hashlib.sha256() for _ in range(4)]
        for chunk in _nonzeros(part.X):
            for stream, numbers, dtype in zip(streams, chunk, ("<i8", "<i8", "<f8"), strict=False):
                stream.update(np.ascontiguousarray(numbers, dtype=dtype).data)
        streams[3].update(np.ascontiguousarray(part.y, dtype="<i8").data)
        total.update(np.asarray(part.X.shape, dtype="<i8").tobytes())
        for stream in streams:
            total.update(stream.digest())
    return total.hexdigest()


def check(content: Content, name: str) -> None:
    """Refuse content that no solver could learn from.

    Raises `DataError` if a part is empty, its shapes disagree, a value is NaN or infinite, or all
    labels of a part are equal.
    """
    for role, part in content.parts():
        if part.X.ndim != 2 or part.y.shape != part.X.shape[:1] or 0 in part.X.shape:
            raise DataError(
                f"{name}: the {role} part has points of shape {part.X.shape} and labels of shape "
                f"{part.y.shape}; expected (n, d) and (n,), not empty"
            )
        position = nonfinite(part.X)
        if position is not None:
            row, column, value = position
            raise DataError(
                f"{name}: {role} part: row {row + 1}, feature {column + 1} is {value}, not a "
                "finite number"
            )
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


def canonical(X: Any) -> Any:
    """The matrix itself if it is dense or its columns ascend in each row without repetition, else
    such a copy.
    """
    if issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def issparse(X: Any) -> bool:
    """Whether a matrix is one of SciPy, without importing SciPy."""
    return not isinstance(X, np.ndarray)


def nonfinite(X: Any) -> tuple[int, int, float] | None:
    """Row, column and value of the first entry that is NaN or infinite; None if there is none."""
    if issparse(X):
        wrong = np.flatnonzero(~np.isfinite(X.data))
        if not wrong.size:
            return None
        first = int(wrong[0])
        row = int(np.searchsorted(X.indptr, first, side="right")) - 1
        return row, int(X.indices[first]), float(X.data[first])
    for rows in row_chunks(X):
        finite = np.isfinite(X[rows])
        if not finite.all():
            i, j = (int(k) for k in np.argwhere(~finite)[0])
            return rows.start + i, j, float(X[rows][i, j])
    return None


def row_chunks(X: Matrix) -> Iterator[slice]:
    """Slices of rows of a dense matrix that together take little memory."""
    step = max(1, _CHUNK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step)


def _nonzeros(X: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Of chunks of rows: the number of non-zeros of each row, their columns, their values."""
    if not issparse(X):
        for rows in row_chunks(X):
            nonzero = X[rows] != 0
            yield nonzero.sum(axis=1), np.nonzero(nonzero)[1], X[rows][nonzero]
        return
    X = canonical(X)
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
