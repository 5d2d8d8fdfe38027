"""ARFF files, dense and sparse, read line by line.

scipy.io.arff reads no sparse rows and no texts, and takes what is out of place; this reader refuses
it, with the number of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import DataError
from ..files import LocalFile
from ..streams import reading, whole_lines
from .blocks import MAX_COLUMNS, Table, listed, row_place, shown_word
from .numerals import is_number

_BLOCK_BYTES = 1 << 20
#: A quoted word with escapes, or a bare one.
_TOKEN = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,{}\"']+"
_ATTRIBUTE = re.compile(rf"@attribute\s+({_TOKEN})\s+(\{{.*\}}|{_TOKEN}.*)", re.IGNORECASE)
#: In a sparse row the index comes first.
_CELLS = re.compile(rf"\s*((?:[0-9]+\s+)?(?:{_TOKEN})|[^,\"']*?)\s*(?:,|$)")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class _Attribute:
    """A declared column; `categories` are those of a nominal one, None of others."""

    name: str
    numeric: bool
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Head:
    """The declarations of a file, and the number of the line ``@data``."""

    attributes: tuple[_Attribute, ...]
    n_lines: int


def read_arff(file: LocalFile) -> Table:
    """Read an ARFF file.

    Parameters
    ----------
    file : LocalFile
        Plain or compressed.

    Raises
    ------
    DataError
        If it cannot be read, or anything in it is not ARFF, here or when the batches are iterated.
    """
    with reading(file) as stream:
        head = _head(file.origin, _lines(file, stream))
    if len(head.attributes) > MAX_COLUMNS:
        raise DataError(f"{file.origin}: {len(head.attributes)} attributes; at most {MAX_COLUMNS}")
    names = tuple(attribute.name for attribute in head.attributes)
    nominal = frozenset(each.name for each in head.attributes if not each.numeric)
    lines: list[int] = []

    def place(row: int) -> str:
        return f"line {lines[row]}" if row < len(lines) else row_place(row)

    batches = _batches(file, head, lines)
    return Table(file.origin, names, batches, place, nominal=nominal)


def _lines(file: LocalFile, stream: Any) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers."""
    number = 0
    for block in whole_lines(stream, _BLOCK_BYTES, file.origin):
        for raw in block.split(b"\n")[:-1]:
            number += 1
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError:
                raise DataError(
                    f"{file.origin}, line {number}: not UTF-8 text; convert the file to UTF-8"
                ) from None
            if line and not line.startswith("%"):
                yield number, line


def _head(origin: str, lines: Iterator[tuple[int, str]]) -> _Head:
    attributes: list[_Attribute] = []
    number = 0
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if not attributes:
                raise DataError(f"{origin}, line {number}: @data before any @attribute")
            return _Head(tuple(attributes), number)
        if word == "@attribute":
            attributes.append(_attribute(f"{origin}, line {number}", line))
        elif word != "@relation":
            raise DataError(
                f"{origin}, line {number}: {shown_word(line)} is not a declaration of ARFF "
                "(@relation, @attribute or @data)"
            )
    raise DataError(f"{origin}: the line @data is missing; is this an ARFF file?")


def _attribute(where: str, line: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise DataError(f"{where}: {shown_word(line)} is not an attribute (@attribute NAME TYPE)")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        categories = _split(kind[1:-1])
        if categories is None or "" in categories:
            raise DataError(f"{where}: the values of {shown_word(name)} are not well-formed")
        return _Attribute(name, False, tuple(categories))
    word = kind.split()[0].lower()
    if word in _NUMERIC:
        return _Attribute(name, True)
    if word == "string":
        return _Attribute(name, False)
    raise DataError(
        f"{where}: attribute {shown_word(name)} is of type {shown_word(word)}; numeric, string and "
        "{a, b} are read"
    )


def _batches(file: LocalFile, head: _Head, lines: list[int]) -> Iterator[Any]:
    attributes = head.attributes
    schema = pa.schema([pa.field(each.name, pa.string()) for each in attributes])
    rows: list[list[str | None]] = []
    room = max(1, (1 << 19) // len(attributes))
    with reading(file) as stream:
        for number, line in _lines(file, stream):
            if number <= head.n_lines:
                continue
            lines.append(number)
            rows.append(_row(f"{file.origin}, line {number}", line, attributes))
            if len(rows) >= room:
                yield _batch(rows, schema)
                rows = []
    if rows:
        yield _batch(rows, schema)


def _batch(rows: list[list[str | None]], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, pa.string()) for column in columns], schema=schema
    )


def _row(where: str, line: str, attributes: tuple[_Attribute, ...]) -> list[str | None]:
    if line.startswith("{"):
        cells = _sparse_cells(where, line, attributes)
    else:
        words = _split(line)
        if words is None:
            raise DataError(f"{where}: {shown_word(line)} is not a row of ARFF")
        if len(words) != len(attributes):
            raise DataError(f"{where}: {len(words)} values; expected {len(attributes)}")
        cells = words
    return [
        _cell(where, cell, attribute) for cell, attribute in zip(cells, attributes, strict=True)
    ]


def _sparse_cells(where: str, line: str, attributes: tuple[_Attribute, ...]) -> list[str]:
    """All cells of a sparse row: those that are left out are 0, or the first category."""
    cells = ["0" if not each.categories else each.categories[0] for each in attributes]
    words = _split(line[1:-1]) if line.endswith("}") else None
    last = -1
    for word in words if words is not None else ["?"]:
        if not word and words == [""]:
            break
        index, _, value = word.partition(" ")
        if not (index.isascii() and index.isdigit() and len(index) < 9 and value.strip()):
            raise DataError(f"{where}: {shown_word(word)} is not an index and a value")
        if not last < int(index) < len(attributes):
            raise DataError(
                f"{where}: index {index} is out of order, or not below {len(attributes)}"
            )
        last = int(index)
        cells[last] = _unquoted(value.strip())
    return cells


def _cell(where: str, cell: str, attribute: _Attribute) -> str | None:
    if cell == "?":
        return None
    if attribute.numeric and not is_number(cell):
        raise DataError(
            f"{where}: {shown_word(cell)} is not a number (attribute "
            f"{shown_word(attribute.name)} is numeric)"
        )
    if attribute.categories is not None and cell not in attribute.categories:
        raise DataError(
            f"{where}: {shown_word(cell)} is not a value of {shown_word(attribute.name)} "
            f"({listed(attribute.categories)})"
        )
    return cell


def _split(text: str) -> list[str] | None:
    """The words between commas without their quotes; None if they are not well-formed."""
    if "'" not in text and '"' not in text:
        return [word.strip() for word in text.split(",")]
    words, start = [], 0
    while start <= len(text):
        match = _CELLS.match(text, start)
        if match is None:
            return None
        words.append(_unquoted(match[1]))
        start = match.end() + (match.end() == len(text) and not match[0].endswith(","))
    return words


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word
