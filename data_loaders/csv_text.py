"""A strict reader of comma-separated numbers: a label and a fixed number of features in a line.

Blocks of text are converted by Arrow. A block that Arrow does not accept, or that has anything
wrong in it, goes through a plain line-by-line parser, which knows the number of a wrong line.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from .content import Content, Part, check_classes
from .errors import DataError
from .files import LocalFile
from .parameters import Parameters
from .streams import reading, shown, whole_lines

#: Bytes of text that are converted together.
BLOCK_BYTES = 1 << 22

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

    Parameters
    ----------
    files : mapping of str to LocalFile
        By name.
    params : mapping
        Not used: a file has no parameters.
    name : str
        Name of the file.
    width : int
        Number of features.
    classes : tuple of int
        The labels that may occur.
    label : {"first", "last"}
        The column of the labels.
    split : callable
        ``(rows, origin) -> Content``.

    Returns
    -------
    Content
        float32 features, rounded if need be; int64 labels as in the file.

    Raises
    ------
    DataError
        As `read_file`.
    """
    return split(read_file(files[name], width, classes, label), files[name].origin)


def read_file(
    file: LocalFile, width: int, classes: tuple[int, ...], label: Literal["first", "last"]
) -> Part:
    """Read one file.

    Parameters
    ----------
    file : LocalFile
    width : int
        Number of features.
    classes : tuple of int
        The labels that may occur; two of them must.
    label : {"first", "last"}
        The column of the labels.

    Returns
    -------
    Part
        float32 features of shape (lines, width), int64 labels.

    Raises
    ------
    DataError
        If the file cannot be read, is empty or has labels of one class only; with the line's
        number, if a line has another number of columns, an entry that is not a finite number, or
        a label that is not one of `classes`.
    """
    parts = list(_parse_file(file, width, classes, 0 if label == "first" else width))
    if not parts:
        raise DataError(f"{file.origin}: the file is empty")
    y = np.concatenate([part.y for part in parts])
    check_classes(y, file.origin)
    return Part(np.concatenate([part.X for part in parts]), y)


def _parse_file(
    file: LocalFile, width: int, classes: tuple[int, ...], label: int
) -> Iterator[Part]:
    line = 1
    with reading(file) as stream:
        for text in whole_lines(stream, BLOCK_BYTES, file.origin):
            table = _convert(text, width + 1)
            if table is None or not np.isin(table[:, label], classes).all():
                table = _parse_lines(text, width + 1, classes, label, file.origin, line)
            line += len(table)
            y = table[:, label].astype(np.int64)
            yield Part(np.delete(table, label, axis=1).astype(np.float32), y)


def _convert(text: bytes, n_columns: int) -> NDArray[np.float64] | None:
    """The numbers of a block; None if anything in it is irregular or not finite."""
    # To Arrow a bare CR ends a line and a byte order mark is nothing; to `_parse_line` neither is.
    if text.count(b"\r") != text.count(b"\r\n") or text.startswith(codecs.BOM_UTF8):
        return None
    names = [str(number) for number in range(n_columns)]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(text),
            read_options=pacsv.ReadOptions(column_names=names, use_threads=False),
            parse_options=pacsv.ParseOptions(
                quote_char=False, double_quote=False, ignore_empty_lines=False
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.float64()), null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        return None
    numbers = np.column_stack([column.to_numpy() for column in table.columns])
    return numbers if np.isfinite(numbers).all() else None


def _parse_lines(
    text: bytes, n_columns: int, classes: tuple[int, ...], label: int, origin: str, first: int
) -> NDArray[np.float64]:
    """Parse a block line by line; `first` is the number of its first line in the file."""
    rows = []
    for number, line in enumerate(text.split(b"\n")[:-1], start=first):
        try:
            row = _parse_line(line, n_columns)
            if row[label] not in classes:
                raise ValueError(
                    f"label {row[label]:g} is not one of the {len(classes)} classes "
                    f"{', '.join(map(str, classes))}"
                )
        except ValueError as error:
            raise DataError(f"{origin}, line {number}: {error}") from None
        rows.append(row)
    return np.array(rows)


def _parse_line(line: bytes, n_columns: int) -> list[float]:
    """The numbers of a line; ValueError says what is wrong."""
    words = [word.strip(b" \t\r") for word in line.split(b",")]
    if words == [b""]:
        raise ValueError(f"empty line; expected {n_columns} numbers")
    if len(words) != n_columns:
        raise ValueError(f"{len(words)} columns; expected {n_columns}")
    for column, word in enumerate(words, start=1):
        if not _NUMBER.fullmatch(word) or not math.isfinite(float(word)):
            raise ValueError(f"column {column} is {shown(word)}, not a finite number")
    return [float(word) for word in words]
