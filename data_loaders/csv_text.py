"""A strict reader of comma-separated numbers: a label and a fixed number of features in a line.

Arrow reads the file. One that it does not accept, or that has anything wrong in it, goes through a
line-by-line reader, which knows the number of a wrong line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from .content import Content, Part, check_classes
from .errors import DataError
from .files import LocalFile, reading, shown
from .parameters import Parameters

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Makes the two parts of all rows; the text is the file's origin, for messages.
Split: TypeAlias = Callable[[Part, str], Content]


def read(
    files: Mapping[str, LocalFile],
    params: Parameters,
    *,
    name: str,
    width: int,
    classes: tuple[int, ...],
    label: Literal["first", "last"],
    split: Split,
) -> Content:
    """Read a dataset that is published as one table without a header.

    Features are float32, rounded if need be; labels int64 as in the file. ``split(rows, origin)``
    makes the two parts; the rest as of `read_file`.
    """
    return split(read_file(files[name], width, classes, label), files[name].origin)


def read_file(
    file: LocalFile, width: int, classes: tuple[int, ...], label: Literal["first", "last"]
) -> Part:
    """Float32 features of shape (lines, width), and int64 labels, of which two must occur.

    Raises `DataError` as `read_columns`, or with the line's number for a label that is not one of
    `classes`.
    """
    columns = read_columns(file, width + 1)
    labels = columns.pop(0 if label == "first" else width)
    wrong = ~np.isin(labels, classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{file.origin}, line {row + 1}: label {labels[row]:g} is not one of the "
            f"{len(classes)} classes {', '.join(map(str, classes))}"
        )
    y = labels.astype(np.int64)
    X = np.empty((len(y), width), dtype=np.float32)
    for k, column in enumerate(columns):
        X[:, k] = column
    check_classes(y, file.origin)
    return Part(X, y)


def read_columns(file: LocalFile, n_columns: int, texts: Collection[int] = ()) -> list[Any]:
    """The columns of a file: float64 arrays, and Arrow arrays of those that hold `texts`.

    Raises `DataError` if the file cannot be read or is empty, or, with the line's number, if a line
    has another number of columns or an entry that is not a finite number.
    """
    columns = _by_arrow(file, n_columns, texts)
    return _by_line(file, n_columns, texts) if columns is None else columns


def _by_arrow(file: LocalFile, n_columns: int, texts: Collection[int]) -> list[Any] | None:
    """The columns; None if anything in the file is irregular or not finite."""
    kinds = {
        str(column): pa.string() if column in texts else pa.float64() for column in range(n_columns)
    }
    with reading(file) as stream:
        try:
            table = pacsv.read_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=pacsv.ReadOptions(column_names=list(kinds), use_threads=False),
                parse_options=pacsv.ParseOptions(
                    quote_char=False, double_quote=False, ignore_empty_lines=False
                ),
                convert_options=pacsv.ConvertOptions(column_types=kinds, null_values=[]),
            )
        except pa.ArrowInvalid:
            return None
    columns = [
        column if k in texts else column.to_numpy() for k, column in enumerate(table.columns)
    ]
    finite = all(np.isfinite(each).all() for k, each in enumerate(columns) if k not in texts)
    return columns if finite else None


def _by_line(file: LocalFile, n_columns: int, texts: Collection[int]) -> list[Any]:
    rows = []
    with reading(file) as stream:
        for number, line in enumerate(stream, start=1):
            words = [word.strip(b" \t\r\n") for word in line.split(b",")]
            where = f"{file.origin}, line {number}"
            if words == [b""]:
                raise DataError(f"{where}: empty line; expected {n_columns} numbers")
            if len(words) != n_columns:
                raise DataError(f"{where}: {len(words)} columns; expected {n_columns}")
            for column, word in enumerate(words):
                if column in texts:
                    continue
                if not _NUMBER.fullmatch(word) or not math.isfinite(float(word)):
                    raise DataError(
                        f"{where}: column {column + 1} is {shown(word)}, not a finite number"
                    )
            rows.append(words)
    if not rows:
        raise DataError(f"{file.origin}: the file is empty")
    return [
        pa.array([word.decode("utf-8", "replace") for word in column])
        if k in texts
        else np.array(list(map(float, column)))
        for k, column in enumerate(zip(*rows, strict=True))
    ]
