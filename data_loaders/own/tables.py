"""Tables and sparse rows in memory, and the readers of files that make them.

A table holds columns of texts, of int64 or of float64, with nulls for what is missing. Files of
text are read as texts, so that what counts as a number is decided in one place: 007 is not 7.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix

from .. import libsvm
from ..errors import DataError, first_line
from ..files import LocalFile, reading
from .options import Options
from .words import is_number, listed, shown_word

#: Columns of a table; more of them are words of a text, which LIBSVM text holds better.
MAX_COLUMNS = 20_000
_SEPARATORS = ",;\t|"
#: Records that tell whether the first one holds names.
_LOOKED_AT = 1000
#: What a target is called in a header; not "y", which is also a class.
_TARGETS = ("target", "class", "label")
#: Bytes of text that are looked at for the separator and the names.
_HEAD_BYTES = 1 << 21
#: What Arrow and NumPy raise when they meet bytes that are not what was written.
DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError)


def row_location(row: int) -> str:
    """Where a row, counted from 0, is in a source without lines."""
    return f"row {row + 1}"


@dataclass(frozen=True)
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

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.data.column_names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)


@dataclass(frozen=True)
class SparseRows:
    """Labelled sparse rows: float64 without explicit zeros, and the class of each as a text."""

    origin: str
    X: csr_matrix
    words: list[str | None]
    location: Callable[[int], str] = row_location

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.words)


#: Of one file or one set of arrays: the training part, and the test part where it has one.
Parts: TypeAlias = tuple[Table | SparseRows, Table | SparseRows | None]


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


# Parquet, and tables in memory


def read_parquet(path: Path, origin: str) -> Table:
    """Read a Parquet file.

    Raises `DataError` if it cannot be read or has columns that are neither numbers nor texts.
    """
    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
    except DAMAGE as error:
        raise DataError(f"{origin}: not a Parquet file ({first_line(error)})") from None
    with file:
        names = column_names(origin, schema.names)
        try:
            data = file.read(use_threads=False)
        except MemoryError:
            raise
        except DAMAGE as error:
            raise DataError(f"{origin}: cannot be read ({first_line(error)})") from None
        return _table_of_arrow(data.rename_columns(names), origin, *_of_pandas(schema))


def table_of_frame(frame: Any, origin: str) -> Table:
    """A table of pandas, polars, Arrow or anything else that Arrow understands.

    Raises `DataError` if Arrow does not, or it has columns that are neither numbers nor texts.
    """
    try:
        if hasattr(frame, "iloc"):
            if not all(isinstance(name, str) for name in frame.columns):
                frame = frame.rename(columns=str)
            data = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            # What polars exports by itself has texts that Arrow 17 cannot cast.
            data = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame)
    except (*DAMAGE, AttributeError) as error:
        raise DataError(
            f"{origin}: not a table of numbers and texts ({first_line(error)})"
        ) from None
    return _table_of_arrow(data.rename_columns(column_names(origin, data.column_names)), origin)


def _table_of_arrow(
    data: Any,
    origin: str,
    index: frozenset[str] = frozenset(),
    categories: frozenset[str] = frozenset(),
) -> Table:
    # Categories by their type, of numbers too.
    declared = (field.name for field in data.schema if pa.types.is_dictionary(field.type))
    nominal = categories.union(declared)
    plain = pa.Table.from_arrays([*map(_plain, data.columns)], names=data.column_names)
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


def _of_pandas(schema: Any) -> tuple[frozenset[str], frozenset[str]]:
    """The index of the data frame that was written, and its columns of categories.

    Arrow itself forgets that numbers were categories.
    """
    try:
        described = json.loads((schema.metadata or {})[b"pandas"])
        of_index = described["index_columns"]
        typed = {each["name"]: each["pandas_type"] for each in described["columns"]}
    except (ValueError, LookupError, TypeError):
        of_index, typed = [], {}
    # An index that only counts is described by an object, and is no column.
    index = {
        name
        for name in schema.names
        if name in of_index or re.fullmatch(r"__index_level_\d+__", name)
    }
    return frozenset(index), frozenset(n for n in schema.names if typed.get(n) == "categorical")


# LIBSVM text


def read_libsvm(file: LocalFile) -> SparseRows:
    """Read LIBSVM text, plain or compressed; `DataError` names a line that is not well-formed."""
    try:
        part = libsvm.read_rows([file])
    except DataError as error:
        if "is not an integer" in str(error):
            raise DataError(f"{error}; is this a regression target?") from None
        if ", line 1:" in str(error):
            raise DataError(
                f"{error}; set format if this is not LIBSVM text, as in format = 'csv'"
            ) from None
        raise
    return SparseRows(file.origin, cast(csr_matrix, part.X), list(map(str, part.y.tolist())))


# Comma-separated values and their relatives


def read_csv(file: LocalFile, options: Options, format: str) -> Table:
    """Read a table of text, plain or compressed, with this separator, header and missing words.

    Arrow parses the file. Where it refuses it, or a value turns out to be wrong later, Python's own
    reader goes over the file once more to find the number of the line. Raises `DataError` if the
    file cannot be read, is empty or has rows of several lengths.
    """
    with reading(file) as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise DataError(f"{file.origin}: the file is empty")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{file.origin}: is UTF-16 text; convert it to UTF-8")
    if b"\0" in head[:4096]:
        raise DataError(f"{file.origin}: is not text (it holds zero bytes); set format")
    separator = options.separator or ("\t" if format == "tsv" else _likeliest_separator(head))
    first, n_lines, rows = _first_records(head, separator, file.origin)
    for cell in first:
        if "\ufffd" in cell and "\ufffd".encode() not in head:
            raise _not_decoded(cell, f"{file.origin}, line {n_lines}")
    named = options.header if options.header is not None else _looks_like_names(first, rows)
    if named:
        names = column_names(file.origin, [name.strip() for name in first])
    else:
        names, n_lines = column_names(file.origin, [""] * len(first), named), 0
    if named and not rows and len(head) < _HEAD_BYTES:
        raise DataError(f"{file.origin}: there are no rows; is this the right file?")
    numbered = [str(k) for k in range(len(names))]
    with reading(file) as stream:
        try:
            data = pacsv.read_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=pacsv.ReadOptions(
                    column_names=numbered,
                    skip_rows=n_lines,
                    block_size=_HEAD_BYTES,
                    use_threads=False,
                ),
                parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(numbered, pa.string()),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
        except MemoryError:
            raise
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _explained(file, len(names), separator, error) from None
    missing = pa.array(options.missing_words, pa.string())
    columns = []
    for column in data.columns:
        trimmed = pc.utf8_trim_whitespace(column)
        null = pa.scalar(None, pa.string())
        columns.append(pc.if_else(pc.is_in(trimmed, missing), null, trimmed))
    location = partial(_line_of, file, separator, named)
    return Table(file.origin, pa.Table.from_arrays(columns, names=names), location, named)


def _likeliest_separator(head: bytes) -> str:
    """The one that is most often in the first line; a comma if none is there."""
    line = head.lstrip().split(b"\n", 1)[0].split(b"\r", 1)[0]
    return max(_SEPARATORS, key=lambda each: line.count(each.encode()))


def _first_records(
    head: bytes, separator: str, origin: str
) -> tuple[list[str], int, list[list[str]]]:
    """The first record, the number of lines up to its end, and those that follow."""
    # The block may end within a character, or within a record that is not needed.
    text = head.decode("utf-8-sig", errors="replace")
    # Not splitlines, which breaks lines at characters that CSV knows nothing of.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    first: list[str] = []
    try:
        while not first:
            first = next(reader)
        n_lines = reader.line_num
    except (csv.Error, StopIteration) as error:
        raise DataError(
            f"{origin}, line {reader.line_num}: not a record of comma-separated values "
            f"({first_line(error)})"
        ) from None
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # Arrow finds it, or can read it
        rows.extend(itertools.islice(filter(None, reader), _LOOKED_AT))
    return first, n_lines, rows


def _looks_like_names(first: list[str], rows: list[list[str]]) -> bool:
    """Whether the first record holds names.

    It does if no cell is a number, if one is above a number or is what a target is called, or if
    its numbers count columns.
    """
    below, *_ = rows or [[]]
    above, below = ([cell.strip() for cell in record] for record in (first, below))
    if not any(map(is_number, above)):
        return True
    pairs = itertools.zip_longest(above, below, fillvalue="")
    named = any(
        cell and not is_number(cell) and (is_number(under) or cell.casefold() in _TARGETS)
        for cell, under in pairs
    )
    return above != below and (named or _counts_columns(above, below, rows))


def _counts_columns(above: list[str], below: list[str], rows: list[list[str]]) -> bool:
    """Whether numbers count columns from 0, as those of a data frame without names.

    Three or more do that count all of them, or two or more if what is above texts is no cell below.
    """
    numbers = [cell for cell in above if is_number(cell)]
    if len(numbers) < 2 or numbers != [str(k) for k in range(len(numbers))]:
        return False
    if numbers == above and len(above) > 2:
        return True
    texts = [k for k, cell in enumerate(below[: len(above)]) if cell and not is_number(cell)]
    met = {(k, cell.strip()) for row in rows for k, cell in enumerate(row)}
    return bool(texts) and not any((k, above[k]) in met for k in texts)


def _records(file: LocalFile, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not an empty line, with the line that it begins in."""
    with reading(file) as stream:
        text = io.TextIOWrapper(cast(BinaryIO, stream), "utf-8-sig", errors="replace", newline="")
        try:
            reader: Any = csv.reader(text, delimiter=separator)
            line = 1
            for record in reader:
                if record:
                    yield line, record
                line = reader.line_num + 1
        finally:
            # Else the wrapper would close the stream, and what it is made from, a second time.
            text.detach()


def _line_of(file: LocalFile, separator: str, named: bool, row: int) -> str:
    """Where a row of values, counted from 0, begins in the file."""
    try:
        records = itertools.islice(_records(file, separator), row + named, None)
        return f"line {next(records)[0]}"
    except (csv.Error, DataError, StopIteration):
        return row_location(row)


def _explained(file: LocalFile, width: int, separator: str, error: Exception) -> DataError:
    """The first thing that is wrong with a file that Arrow refuses."""
    line = 0
    try:
        for line, record in _records(file, separator):
            where = f"{file.origin}, line {line}"
            if len(record) != width:
                return DataError(
                    f"{where}: {len(record)} columns; expected {width} (separator "
                    f"{separator!r}; set separator if it is another)"
                )
            for cell in record:
                if "\ufffd" in cell:
                    return _not_decoded(cell, where)
    except csv.Error as reason:
        return DataError(
            f"{file.origin}, line {line + 1}: not a record of separated values "
            f"({first_line(reason)})"
        )
    return DataError(
        f"{file.origin}: not a table of values separated by {separator!r} ({first_line(error)})"
    )


def _not_decoded(cell: str, where: str) -> DataError:
    return DataError(f"{where}: {shown_word(cell)} is not UTF-8 text; convert the file to UTF-8")


# ARFF

#: A quoted word with escapes, or a bare one.
_TOKEN = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,{}\"']+"
_ATTRIBUTE = re.compile(rf"@attribute\s+({_TOKEN})\s+(\{{.*\}}|{_TOKEN}.*)", re.IGNORECASE)
#: In a sparse row the index comes first.
_CELLS = re.compile(rf"\s*((?:[0-9]+\s+)?(?:{_TOKEN})|[^,\"']*?)\s*(?:,|$)")


@dataclass(frozen=True)
class _Attribute:
    """A declared column; `categories` are those of a nominal one, None of others."""

    name: str
    numeric: bool
    categories: tuple[str, ...] | None = None


def read_arff(file: LocalFile) -> Table:
    """Read an ARFF file, dense or sparse; `DataError` says where anything in it is not ARFF.

    scipy.io.arff reads no sparse rows and no texts, and takes what is out of place.
    """
    attributes: list[_Attribute] = []
    names: list[str] = []
    rows: list[list[str | None]] = []
    places: list[int] = []
    in_data = False
    for number, line in _arff_lines(file):
        word = line.split(None, 1)[0].lower()
        try:
            if in_data:
                places.append(number)
                rows.append(_arff_row(line, attributes))
            elif word == "@data":
                if not attributes:
                    raise ValueError("@data before any @attribute")
                names = column_names(file.origin, [each.name for each in attributes])
                in_data = True
            elif word == "@attribute":
                attributes.append(_attribute(line))
            elif word != "@relation":
                raise ValueError(
                    f"{shown_word(line)} is not a declaration of ARFF (@relation, @attribute or "
                    "@data)"
                )
        except ValueError as error:
            raise DataError(f"{file.origin}, line {number}: {error}") from None
    if not in_data:
        raise DataError(f"{file.origin}: the line @data is missing; is this an ARFF file?")
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    data = pa.Table.from_arrays(columns, names=names) if rows else pa.table({})
    nominal = frozenset(
        name for name, each in zip(names, attributes, strict=True) if not each.numeric
    )
    return Table(file.origin, data, lambda row: f"line {places[row]}", nominal=nominal)


def _arff_lines(file: LocalFile) -> Iterable[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers."""
    with reading(file) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError:
                raise DataError(
                    f"{file.origin}, line {number}: not UTF-8 text; convert the file to UTF-8"
                ) from None
            if line and not line.startswith("%"):
                yield number, line


def _attribute(line: str) -> _Attribute:
    """What a line declares; ValueError says what is wrong with it, as below."""
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise ValueError(f"{shown_word(line)} is not an attribute (@attribute NAME TYPE)")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        categories = _arff_words(kind[1:-1])
        if categories is None or "" in categories:
            raise ValueError(f"the values of {shown_word(name)} are not well-formed")
        return _Attribute(name, False, tuple(categories))
    word = kind.split()[0].lower()
    if word not in ("numeric", "real", "integer", "string"):
        raise ValueError(
            f"attribute {shown_word(name)} is of type {shown_word(word)}; numeric, string and "
            "{a, b} are read"
        )
    return _Attribute(name, word != "string")


def _arff_row(line: str, attributes: Sequence[_Attribute]) -> list[str | None]:
    words = _sparse_words(line, attributes) if line.startswith("{") else _arff_words(line)
    if words is None:
        raise ValueError(f"{shown_word(line)} is not a row of ARFF")
    if len(words) != len(attributes):
        raise ValueError(f"{len(words)} values; expected {len(attributes)}")
    for cell, attribute in zip(words, attributes, strict=True):
        categories = attribute.categories
        if cell == "?":
            continue
        if attribute.numeric and not is_number(cell):
            name = shown_word(attribute.name)
            raise ValueError(f"{shown_word(cell)} is not a number (attribute {name} is numeric)")
        if categories is not None and cell not in categories:
            name = shown_word(attribute.name)
            raise ValueError(f"{shown_word(cell)} is not a value of {name} ({listed(categories)})")
    return [None if cell == "?" else cell for cell in words]


def _sparse_words(line: str, attributes: Sequence[_Attribute]) -> list[str]:
    """All cells of a sparse row: those that are left out are 0, or the first category."""
    cells = ["0" if not each.categories else each.categories[0] for each in attributes]
    words = _arff_words(line[1:-1]) if line.endswith("}") else None
    last = -1
    for word in ["?"] if words is None else [] if words == [""] else words:
        index, _, value = word.partition(" ")
        if not (index.isascii() and index.isdigit() and len(index) < 9 and value.strip()):
            raise ValueError(f"{shown_word(word)} is not an index and a value")
        if not last < int(index) < len(attributes):
            raise ValueError(f"index {index} is out of order, or not below {len(attributes)}")
        last = int(index)
        cells[last] = _unquoted(value.strip())
    return cells


def _arff_words(text: str) -> list[str] | None:
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
