"""The columns of a dataset's Parquet file: from parts of rows to row groups, and back.

One row per point, training part first. Columns: ``X``, a fixed-size list per row (dense), or
``indices`` (from 0) and ``values``, lists (sparse); ``y``; ``split``, "train" or "test".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix, issparse

from .content import Content, Labels, Part, canonical

#: Rows, and numbers of X, that are written and read together: Arrow needs several times the
#: memory of what it decodes.
GROUP_ROWS = 1 << 15
GROUP_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Shape:
    """What a reader allocates before it reads.

    Parameters
    ----------
    n_train, n_test : int
        Rows of the two parts.
    n_features : int
    n_stored : int
        Numbers in the column ``values`` of a sparse file; 0 in a dense one.
    """

    n_train: int
    n_test: int
    n_features: int
    n_stored: int


def schema(part: Part) -> pa.Schema:
    """The schema of a file whose rows are like those of a part."""
    kind = pa.from_numpy_dtype(part.X.dtype)
    element = pa.field("element", kind, nullable=False)
    if issparse(part.X):
        index = pa.field("element", pa.int32(), nullable=False)
        columns = {"indices": pa.large_list(index), "values": pa.large_list(element)}
    else:
        columns = {"X": pa.list_(element, part.X.shape[1])}
    columns |= {"y": pa.from_numpy_dtype(part.y.dtype), "split": pa.string()}
    # Arrow reads columns without nulls markedly faster when the schema says so.
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def batch(role: str, part: Part) -> pa.RecordBatch:
    """A part's rows as columns, without a copy of their numbers where that is possible."""
    layout = schema(part)
    columns = [
        *(_sparse_columns(part.X) if issparse(part.X) else [_fixed_lists(part.X)]),
        pa.array(part.y),
        pa.repeat(role, len(part.y)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=layout)


def pieces(part: Part, room_rows: int, room_entries: int) -> Iterator[Part]:
    """Cut a part into pieces that fit a row group, the first into what is left of one.

    A piece has one row at least.

    Parameters
    ----------
    part : Part
        A CSR matrix has ascending columns, each once.
    room_rows, room_entries : int
        What is left.
    """
    n, start = part.X.shape[0], 0
    ends = cast(csr_matrix, part.X).indptr if issparse(part.X) else None
    while start < n:
        if ends is None:
            fitting = room_entries // part.X.shape[1]
        else:
            fitting = int(np.searchsorted(ends, ends[start] + room_entries, side="right"))
            fitting -= start + 1
        stop = min(n, start + max(1, min(room_rows, fitting)))
        yield part if (start, stop) == (0, n) else _rows(part, start, stop)
        start, room_rows, room_entries = stop, GROUP_ROWS, GROUP_ENTRIES


def n_entries(part: Part) -> int:
    """How many numbers of X a file stores for a part."""
    return int(cast(csr_matrix, part.X).indptr[-1] if issparse(part.X) else part.X.size)


def read(file: pq.ParquetFile, shape: Shape) -> Content:
    """Read all rows, a row group at a time: Arrow's copy of all of them would double the memory.

    Parameters
    ----------
    file : ParquetFile
    shape : Shape
        As written.

    Returns
    -------
    Content
        Read-only arrays.

    Raises
    ------
    ValueError
        If the columns are not those of a dataset of this shape.
    """
    y = _labels(file, shape)
    names = file.schema_arrow.names
    n_train = shape.n_train
    if "X" in names:
        X = _dense_rows(file, shape)
        return Content(Part(X[:n_train], y[:n_train]), Part(X[n_train:], y[n_train:]))
    indptr, columns, data = _sparse_rows(file, shape)
    train, test = (
        Part(_csr(indptr[rows.start : rows.stop + 1], columns, data, shape.n_features), y[rows])
        for rows in (slice(0, n_train), slice(n_train, len(y)))
    )
    return Content(train, test)


def _rows(part: Part, start: int, stop: int) -> Part:
    if not issparse(part.X):
        return Part(part.X[start:stop], part.y[start:stop])
    whole = cast(csr_matrix, part.X)
    ends = whole.indptr[start : stop + 1]
    items = slice(int(ends[0]), int(ends[-1]))
    X = csr_matrix(
        (whole.data[items], whole.indices[items], ends - ends[0]),
        shape=(stop - start, whole.shape[1]),
    )
    X.has_canonical_format = True
    return Part(X, part.y[start:stop])


def _sparse_columns(X: csr_matrix) -> list[pa.Array]:
    X = canonical(X)
    offsets = pa.array(X.indptr, pa.int64())
    return [_lists(offsets, X.indices.astype(np.int32, copy=False)), _lists(offsets, X.data)]


def _lists(offsets: pa.Array, items: Any) -> pa.LargeListArray:
    values = pa.array(items)
    kind = pa.large_list(pa.field("element", values.type, nullable=False))
    return pa.LargeListArray.from_arrays(offsets, values, type=kind)


def _fixed_lists(X: Any) -> pa.FixedSizeListArray:
    values = pa.array(np.ascontiguousarray(X).ravel())
    kind = pa.list_(pa.field("element", values.type, nullable=False), X.shape[1])
    return pa.FixedSizeListArray.from_arrays(values, type=kind)


def _labels(file: pq.ParquetFile, shape: Shape) -> Labels:
    y = _filled(file, "y", shape.n_train + shape.n_test)
    if y.dtype not in (np.int8, np.int64):
        raise ValueError(f"the labels are of type {y.dtype}")
    _check_split(file, shape)
    labels: Labels = y
    return labels


def _check_split(file: pq.ParquetFile, shape: Shape) -> None:
    """Raise ValueError unless the rows of the training part, and they alone, come first."""
    start = 0
    for chunk in _chunks(file, "split"):
        is_test = pc.equal(chunk, "test").to_numpy(zero_copy_only=False)
        stop = start + len(chunk)
        if not np.array_equal(is_test, np.arange(start, stop) >= shape.n_train):
            raise ValueError(
                f"the rows are not {shape.n_train} of the training and {shape.n_test} of the test "
                "part"
            )
        start = stop


def _dense_rows(file: pq.ParquetFile, shape: Shape) -> Any:
    n, width = shape.n_train + shape.n_test, shape.n_features
    return _filled(file, "X", n * width).reshape(n, width)


def _sparse_rows(file: pq.ParquetFile, shape: Shape) -> tuple[Any, Any, Any]:
    n = shape.n_train + shape.n_test
    indptr = np.zeros(n + 1, dtype=np.int64)
    columns = _filled(file, "indices", shape.n_stored, indptr)
    data = _filled(file, "values", shape.n_stored)
    # Compiled solvers do not check bounds, and the fingerprint does not know them.
    width = shape.n_features
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise ValueError(f"a feature is outside 0 to {width - 1}")
    return indptr, columns, data


def _filled(file: pq.ParquetFile, name: str, size: int, indptr: Any = None) -> Any:
    """All numbers of a column, of its lists one after another; where the lists end, in `indptr`."""
    items = np.empty(size, dtype=_kind(file.schema_arrow.field(name).type))
    row, stop = 0, 0
    for chunk in _chunks(file, name):
        if indptr is not None:
            ends = indptr[row + 1 : row + len(chunk) + 1]
            np.cumsum(_numbers(chunk.value_lengths()), out=ends)
            ends += stop
            row += len(chunk)
        found = _numbers(chunk.flatten() if pa.types.is_nested(chunk.type) else chunk)
        start, stop = stop, stop + len(found)
        items[start:stop] = found
    if stop != size or (indptr is not None and row + 1 != len(indptr)):
        raise ValueError(f"the column {name!r} has not the numbers that the file tells")
    items.setflags(write=False)
    return items


def _kind(column: pa.DataType) -> Any:
    return (column.value_type if pa.types.is_nested(column) else column).to_pandas_dtype()


def _chunks(file: pq.ParquetFile, name: str) -> Iterator[Any]:
    for group in range(file.num_row_groups):
        yield from file.read_row_group(group, [name], use_threads=False)[name].chunks


def _csr(indptr: Any, columns: Any, data: Any, width: int) -> csr_matrix:
    items = slice(indptr[0], indptr[-1])
    indptr = (indptr - indptr[0]).astype(columns.dtype if indptr[-1] < 2**31 else np.int64)
    X = csr_matrix((data[items], columns[items], indptr), shape=(len(indptr) - 1, width))
    # SciPy copies what is a small piece of a large array.
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X


def _numbers(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=True)
