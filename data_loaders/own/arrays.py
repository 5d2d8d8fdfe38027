"""Arrays, tables in memory, Parquet and NumPy files as blocks of rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix, issparse

from ..content import canonical
from ..errors import DataError, first_line
from .blocks import (
    BLOCK_NUMBERS,
    BLOCK_ROWS,
    SPARSE_SCHEMA,
    SparseRows,
    Table,
    listed,
    shown_word,
)
from .numerals import in_words

#: Names of the points and of the classes in a NumPy file.
_POINTS = ("X", "data", "x")
_CLASSES = ("y", "target", "labels")
#: What Arrow and NumPy raise when they meet bytes that are not what was written.
_DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError)

#: Of one file or one set of arrays: the training part, and the test part where it has one.
Parts = tuple[Table | SparseRows, Table | SparseRows | None]


def read_parquet(path: Path, origin: str) -> Table:
    """Read a Parquet file.

    Raises
    ------
    DataError
        If it cannot be read or has columns that are neither numbers nor texts, here or when the
        batches are iterated.
    """
    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
    except _DAMAGE as error:
        raise DataError(f"{origin}: not a Parquet file ({first_line(error)})") from None

    def batches() -> Iterator[Any]:
        rows = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(1, len(schema.names))))
        try:
            with file:
                yield from (
                    _plain(batch, origin)
                    for batch in file.iter_batches(rows, use_threads=False)
                    if batch.num_rows
                )
        except (*_DAMAGE, MemoryError) as error:
            raise DataError(f"{origin}: cannot be read ({first_line(error)})") from None

    return Table(
        origin, tuple(schema.names), batches(), nominal=_declared(schema), index=_index(schema)
    )


def table_of_frame(frame: Any, origin: str) -> Table:
    """A table of pandas, polars, Arrow or anything else that Arrow understands.

    Raises
    ------
    DataError
        If Arrow does not, or it has columns that are neither numbers nor texts.
    """
    try:
        if hasattr(frame, "iloc"):
            if not all(isinstance(name, str) for name in frame.columns):
                frame = frame.rename(columns=str)
            table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            table = pa.table(frame)
    except (*_DAMAGE, AttributeError) as error:
        raise DataError(
            f"{origin}: not a table of numbers and texts ({first_line(error)})"
        ) from None
    batches = (_plain(batch, origin) for batch in table.to_batches(BLOCK_ROWS) if batch.num_rows)
    names = tuple(table.schema.names)
    return Table(origin, names, batches, nominal=_declared(table.schema))


def rows_of_arrays(
    X: Any, y: Any, origin: str, names: Sequence[str] | None = None
) -> Table | SparseRows:
    """Points and classes in two arrays.

    Parameters
    ----------
    X : array, sparse matrix or table, n rows
    y : array of n classes: numbers or texts
    origin : str
    names : sequence of str, optional
        Of the columns of X.

    Raises
    ------
    DataError
        If the shapes disagree, or X does not hold numbers.
    """
    words = class_words(y, origin)
    if not hasattr(X, "__len__") or getattr(X, "shape", None) == ():
        raise DataError(f"{origin}: X has the shape (); expected (rows, features)")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(words):
        raise DataError(f"{origin}: {n_rows} rows in X but {len(words)} in y")
    if issparse(X):
        return SparseRows(origin, _sparse_batches(_csr(X, origin), words))
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        table = table_of_frame(X, origin)
        name = _free_name("target", table.names)
        return _with_column(table, name, words)
    return _table_of_array(_array(X, origin), words, origin, names)


def parts_of_arrays(
    X_train: Any, y_train: Any, X_test: Any, y_test: Any, origin: str
) -> tuple[Table | SparseRows, Table | SparseRows]:
    """A training and a test part, as `rows_of_arrays`.

    Raises
    ------
    DataError
        As `rows_of_arrays`, and if sparse parts differ in width; of tables this is seen later.
    """
    other = f"{origin} (test part)"
    if issparse(X_train) and issparse(X_test) and X_train.shape[1] != X_test.shape[1]:
        raise DataError(
            f"{other}: {X_test.shape[1]} columns, but the training part has {X_train.shape[1]}"
        )
    return rows_of_arrays(X_train, y_train, origin), rows_of_arrays(X_test, y_test, other)


def read_npz(path: Path, origin: str) -> Parts:
    """Read a NumPy file: X and y, or X_train, y_train, X_test and y_test; nothing is unpickled.

    Raises
    ------
    DataError
        If it cannot be read or does not hold such arrays.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except MemoryError as error:
        raise DataError(f"{origin}: does not fit into memory ({first_line(error)})") from None
    except Exception as error:  # noqa: BLE001 - of a damaged file NumPy and zipfile raise anything
        if "pickle" in str(error):
            raise DataError(
                f"{origin}: holds pickled objects, or is no NumPy file; save arrays of numbers and "
                "texts with numpy.savez"
            ) from None
        raise DataError(f"{origin}: not a NumPy file of arrays ({first_line(error)})") from None
    return parts_of_mapping(found, origin)


def parts_of_mapping(found: Mapping[str, Any], origin: str) -> Parts:
    """The parts that named arrays are, those of a Bunch for example.

    Raises
    ------
    DataError
        If the names are not those that are known.
    """
    if "X_train" in found:
        needed = ("X_train", "y_train", "X_test", "y_test")
        missing = [name for name in needed if name not in found]
        if missing:
            raise DataError(f"{origin}: has X_train but no {listed(missing)}")
        X_train, y_train, X_test, y_test = (found[name] for name in needed)
        return parts_of_arrays(X_train, y_train, X_test, y_test, origin)
    points = next((name for name in _POINTS if found.get(name) is not None), None)
    classes = next((name for name in _CLASSES if found.get(name) is not None), None)
    if points is None or classes is None:
        raise DataError(
            f"{origin}: has the arrays {listed(sorted(map(str, found))) or '(none)'}; expected "
            "X and y, or X_train, y_train, X_test and y_test"
        )
    names = found.get("feature_names")
    return rows_of_arrays(found[points], found[classes], origin, names), None


def class_words(y: Any, origin: str) -> list[str | None]:
    """Each class as a word: numbers as decimals, "1" for 1.0; None where it is missing.

    Raises
    ------
    DataError
        If y is not one sequence of numbers or texts.
    """
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"{origin}: y has the shape {values.shape}; expected one class for each row"
        )
    if values.dtype.kind == "f":
        return [None if math.isnan(value) else in_words(float(value)) for value in values]
    if values.dtype.kind in "iub":
        return [str(value) for value in values.tolist()]
    return [_class_word(value, origin) for value in values.tolist()]


def _class_word(value: Any, origin: str) -> str | None:
    try:
        if value is None or value != value:
            return None
    except TypeError:  # NA of pandas is neither equal to itself nor not
        return None
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return in_words(value)
    raise DataError(f"{origin}: the class {shown_word(str(value))} is neither a number nor a text")


def _index(schema: Any) -> frozenset[str]:
    """The columns that are the index of the data frame that was written."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (ValueError, LookupError, TypeError):
        described = []
    # An index that only counts is described by an object, and is no column.
    return frozenset(
        name
        for name in schema.names
        if name in described or re.fullmatch(r"__index_level_\d+__", name)
    )


def _declared(schema: Any) -> frozenset[str]:
    """The columns that are categories by their type, of numbers too."""
    return frozenset(field.name for field in schema if pa.types.is_dictionary(field.type))


def _plain(batch: Any, origin: str) -> Any:
    """The batch with float64 for numbers and texts for all else; nulls for missing values."""
    columns = [
        _plain_column(column, name, origin)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    # Not the names of the schema: repeated ones are refused elsewhere, in words.
    fields = [
        pa.field(name, column.type)
        for name, column in zip(batch.schema.names, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _plain_column(column: Any, name: str, origin: str) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain_column(column.dictionary_decode(), name, origin)
    if pa.types.is_boolean(kind):
        return pc.cast(column, pa.string())
    if kind in (pa.int64(), pa.uint64()):
        # Classes above 2^53 would not be told apart in float64.
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = pc.cast(column, pa.float64(), safe=False)
        return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.float64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    raise DataError(
        f"{origin}: column {shown_word(name)} is of type {kind}; make it numbers or texts, or "
        "remove it"
    )


def _array(X: Any, origin: str) -> Any:
    try:
        values = np.asarray(X)
        if values.dtype.kind == "c":
            raise ValueError("complex numbers")
        if values.dtype.kind not in "iubf":
            values = np.asarray(X, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{origin}: X does not hold numbers alone ({first_line(error)}); give a table with "
            "named columns instead"
        ) from None
    if values.ndim > 2:
        values = values.reshape(len(values), -1)
    if values.ndim != 2 or not values.shape[1]:
        raise DataError(f"{origin}: X has the shape {np.shape(X)}; expected (rows, features)")
    return values


def _table_of_array(
    values: Any, words: list[str | None], origin: str, names: Sequence[str] | None
) -> Table:
    width = values.shape[1]
    given = names is not None and len(names) == width
    columns = tuple(map(str, names)) if given and names is not None else _numbered(width)
    target = _free_name("target", columns)
    fields = [*(pa.field(name, pa.float64()) for name in columns), pa.field(target, pa.string())]
    schema = pa.schema(fields)
    rows = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // width))

    def batches() -> Iterator[Any]:
        for start in range(0, len(values), rows):
            block = np.asarray(values[start : start + rows], dtype=np.float64)
            # NaN is what arrays have for a missing value.
            arrays = [
                pa.array(np.ascontiguousarray(column), from_pandas=True) for column in block.T
            ]
            classes = pa.array(words[start : start + rows], pa.string())
            yield pa.RecordBatch.from_arrays([*arrays, classes], schema=schema)

    return Table(origin, (*columns, target), batches(), named=given, target=target)


def _with_column(table: Table, name: str, words: list[str | None]) -> Table:
    def batches() -> Iterator[Any]:
        start = 0
        for batch in table.batches:
            classes = pa.array(words[start : start + batch.num_rows], pa.string())
            start += batch.num_rows
            yield batch.append_column(name, classes)

    names = (*table.names, name)
    return Table(table.origin, names, batches(), target=name, nominal=table.nominal)


def _sparse_batches(X: csr_matrix, words: list[str | None]) -> Iterator[Any]:
    for start in range(0, X.shape[0], BLOCK_ROWS):
        rows = X[start : start + BLOCK_ROWS]
        yield sparse_batch(words[start : start + BLOCK_ROWS], rows.indptr, rows.indices, rows.data)


def sparse_batch(words: Any, indptr: Any, indices: Any, values: Any) -> Any:
    """A batch of sparse rows from the arrays of a CSR matrix."""
    bounds = pa.array(np.asarray(indptr, dtype=np.int64))
    lists = [
        pa.LargeListArray.from_arrays(bounds, pa.array(np.asarray(items, dtype=kind)))
        for items, kind in ((indices, np.int32), (values, np.float64))
    ]
    return pa.RecordBatch.from_arrays([pa.array(words, pa.string()), *lists], schema=SPARSE_SCHEMA)


def _csr(X: Any, origin: str) -> csr_matrix:
    if X.ndim != 2 or X.dtype.kind not in "iubf":
        raise DataError(f"{origin}: X is a sparse array of {X.dtype} in {X.ndim} dimensions")
    rows = canonical(csr_matrix(X, copy=True))
    rows.eliminate_zeros()
    return rows


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"x{k + 1}" for k in range(width))


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
