"""A strict reader of comma-separated numbers: a label and a fixed number of features in a line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from .content import Content, Part, check_classes
from .errors import DataError, first_line
from .files import LocalFile, reading
from .own.words import printable
from .parameters import Parameters

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
    kinds = {
        str(column): pa.string() if column in texts else pa.float64() for column in range(n_columns)
    }
    with reading(file) as stream:
        try:
            table = pacsv.read_csv(
                pa.PythonFile(stream, mode="r"),
                # Without threads its messages have the number of the row.
                read_options=pacsv.ReadOptions(column_names=list(kinds), use_threads=False),
                parse_options=pacsv.ParseOptions(
                    quote_char=False, double_quote=False, ignore_empty_lines=False
                ),
                convert_options=pacsv.ConvertOptions(column_types=kinds, null_values=[]),
            )
        except pa.ArrowInvalid as error:
            raise DataError(f"{file.origin}: {printable(first_line(error))}") from None
    columns = [
        column if k in texts else column.to_numpy() for k, column in enumerate(table.columns)
    ]
    for k, column in enumerate(columns):
        if k not in texts and not (finite := np.isfinite(column)).all():
            row = int(np.argmin(finite))
            raise DataError(
                f"{file.origin}, line {row + 1}: column {k + 1} is {column[row]:g}, not a finite "
                "number"
            )
    return columns
