"""Tables in memory: columns of Arrow and perhaps sparse rows, from what users give.

A column holds texts, int64 or float64, with nulls for what is missing. Files of text are read as
texts, so that what counts as a number is decided in one place: 007 is not 7.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix, issparse

from ..content import canonical
from ..errors import DataError, first_line
from .words import listed, shown_word

#: Columns of a table; more of them are words of a text, which LIBSVM text holds better.
MAX_COLUMNS = 20_000
#: Names of the points and of the classes in a Bunch or a NumPy file, or of those of both parts.
_NAMES = (
    ("X_train", "y_train", "X_test", "y_test"),
    *itertools.product(("X", "data", "x"), ("y", "target", "labels")),
)


def row_location(row: int) -> str:
    """Where a row, counted from 0, is in a source without lines."""
    return f"row {row + 1}"


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was read, with what its source itself says of its columns."""

    origin: str  # what messages call it
    data: Any  # a table of Arrow
    # Where a row stands in its file, for messages: "line 7" for a row counted from 0.
    location: Callable[[int], str] = row_location
    named: bool = True  # whether the names come from the source
    target: str = ""  # the column that the source itself says holds the classes; empty: none
    # What the source itself says holds categories, and below what numbers or names the rows.
    nominal: frozenset[str] = frozenset()
    index: frozenset[str] = frozenset()
    # Features beside the columns, float64 without explicit zeros.
    X: csr_matrix | None = None

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.data.column_names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)


@contextlib.contextmanager
def refusing(origin: str, what: str) -> Iterator[None]:
    """Say in a line that something is not `what`: of damage and of odd types libraries raise any
    error.
    """
    try:
        yield
    except (MemoryError, DataError):
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise DataError(f"{origin}: not {what} ({first_line(error)})") from None


def column_names(origin: str, names: Sequence[str], named: bool = True) -> list[str]:
    """The names of columns, of one without its number; refuses repeated ones, and too many."""
    names = [name if name.strip() else f"column {k}" for k, name in enumerate(names, 1)]
    if len(names) > MAX_COLUMNS:
        raise DataError(
            f"{origin}: {len(names)} columns; at most {MAX_COLUMNS} are read from a table, write "
            "wider data as LIBSVM text"
        )
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name in seen:
            remedy = "; rename one, or set header = false if it is data" if named else ""
            raise DataError(
                f"{origin}: columns {seen[name]} and {number} have the same name "
                f"{shown_word(name)}{remedy}"
            )
        seen[name] = number
    return names


def tables_of(made: Any, origin: str) -> list[Table]:
    """The table, or the training and the test table, that an object is.

    It may be a Bunch or another mapping of arrays, (X, y), (X_train, y_train, X_test, y_test), or a
    table of pandas, polars or Arrow; `DataError` if it is none of these.
    """
    features = None
    if isinstance(made, Mapping):
        names = next((n for n in _NAMES if all(made.get(name) is not None for name in n)), None)
        if names is None:
            raise DataError(
                f"{origin}: has the arrays {listed(sorted(map(str, made))) or '(none)'}; expected "
                "X and y, or X_train, y_train, X_test and y_test"
            )
        features = made.get("feature_names")
        made = [made[name] for name in names]
    if isinstance(made, tuple | list) and len(made) in (2, 4):
        tables = [
            _table_of_arrays(X, y, f"{origin} (test part)" if k else origin, features)
            for k, (X, y) in enumerate(zip(made[::2], made[1::2], strict=True))
        ]
        widths = [each.X.shape[1] for each in tables if each.X is not None]
        if len(set(widths)) > 1:
            raise DataError(
                f"{tables[1].origin}: {widths[1]} columns, but the training part has {widths[0]}"
            )
        return tables
    if hasattr(made, "columns") or hasattr(made, "__arrow_c_stream__"):
        return [table_of_frame(made, origin)]
    raise DataError(
        f"{origin}: is a {type(made).__name__}; expected a table, a Bunch, (X, y), or (X_train, "
        "y_train, X_test, y_test)"
    )


def table_of_frame(frame: Any, origin: str) -> Table:
    """A table of pandas, polars, Arrow or anything else that Arrow understands.

    Raises `DataError` if Arrow does not.
    """
    with refusing(origin, "a table of numbers and texts"):
        if hasattr(frame, "iloc"):
            if not all(isinstance(name, str) for name in frame.columns):
                frame = frame.rename(columns=str)
            data = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            # What polars exports by itself has texts that Arrow 17 cannot cast.
            data = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame)
        return table_of_arrow(data, column_names(origin, data.column_names), origin)


def table_of_arrow(
    data: Any,
    names: Sequence[str],
    origin: str,
    index: frozenset[str] = frozenset(),
    categories: frozenset[str] = frozenset(),
) -> Table:
    """A table of Arrow under these names of its columns."""
    # Categories by their type, of numbers too.
    declared = (
        n for n, c in zip(names, data.columns, strict=True) if pa.types.is_dictionary(c.type)
    )
    nominal = categories.union(declared)
    plain = pa.Table.from_arrays([*map(_plain, data.columns)], names=list(names))
    return Table(origin, plain, nominal=nominal, index=index)


def _plain(column: Any) -> Any:
    """Numbers as float64 or int64, texts; nulls for missing values. Other types stay."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(pa.chunked_array([each.dictionary_decode() for each in column.chunks]))
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "True", "False")
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
    return column


def _table_of_arrays(X: Any, y: Any, origin: str, names: Sequence[str] | None) -> Table:
    """Points (an array, a sparse matrix or a table) and classes, numbers or texts, in two arrays.

    `names` are those of the columns of X. Raises `DataError` if the shapes disagree, or X does not
    hold numbers.
    """
    classes, target = _classes(y, origin), "target"
    if issparse(X):
        if X.ndim != 2 or X.dtype.kind not in "iubf":
            raise DataError(f"{origin}: X is a sparse array of {X.dtype} in {X.ndim} dimensions")
        rows = canonical(csr_matrix(X, dtype=np.float64, copy=True))
        rows.eliminate_zeros()
        _check_rows(rows.shape[0], classes, origin)
        return Table(origin, pa.table({target: classes}), target=target, X=rows)
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        table = table_of_frame(X, origin)
    else:
        values = _numbers(X, origin)
        named = names is not None and len(names) == values.shape[1]
        texts = [*(names or ())] if named else [f"x{k + 1}" for k in range(len(values.T))]
        # NaN is what arrays have for a missing value.
        columns = [pa.array(each.astype(np.float64), from_pandas=True) for each in values.T]
        data = pa.table(columns, column_names(origin, list(map(str, texts)), named))
        table = Table(origin, data, named=named)
    _check_rows(table.n_rows, classes, origin)
    while target in table.names:
        target += "_"
    data = table.data.append_column(target, classes)
    return Table(origin, data, named=table.named, target=target, nominal=table.nominal)


def _check_rows(n_rows: int, classes: Any, origin: str) -> None:
    if n_rows != len(classes):
        raise DataError(f"{origin}: {n_rows} rows in X but {len(classes)} in y")


def _numbers(X: Any, origin: str) -> Any:
    with refusing(origin, "numbers alone in X; give a table with named columns"):
        values = np.asarray(X)
        if values.dtype.kind in "cmM":
            raise TypeError(f"it holds {values.dtype}")
        if values.dtype.kind not in "iubf":
            values = np.asarray(X, dtype=np.float64)
    if values.ndim > 2:
        values = values.reshape(len(values), -1)
    if values.ndim != 2 or not values.shape[1]:
        raise DataError(f"{origin}: X has the shape {np.shape(X)}; expected (rows, features)")
    return values


def _classes(y: Any, origin: str) -> Any:
    """The class of each row as a column of texts or numbers."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"{origin}: y has the shape {values.shape}; expected one class for each row"
        )
    with refusing(origin, "numbers or texts in y"):
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        return _plain(pa.chunked_array([pa.array(values, from_pandas=True)]))
