"""Tables of text: comma-separated values and their relatives.

Arrow parses blocks of the file. Where it refuses a block, or a value turns out to be wrong later,
Python's own reader goes over the file once more to find the number of the line.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from ..errors import DataError, first_line
from ..files import LocalFile
from ..streams import reading
from .blocks import (
    MAX_COLUMNS,
    Table,
    check_names,
    row_place,
    shown_word,
)
from .numerals import is_number
from .options import Options

#: Bytes of text that are parsed together; a row must fit into them. Arrow reads some 30 of these
#: blocks ahead.
BLOCK_BYTES = 1 << 21
_SEPARATORS = ",;\t|"
#: Records that tell whether the first one holds names.
_LOOKED_AT = 1000
#: What a target is called in a header; not "y", which is also a class.
_TARGETS = ("target", "class", "label")
#: How the first bytes of text in other encodings begin.
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")


def read_csv(file: LocalFile, options: Options, format: str) -> Table:
    """Read a table of text.

    Parameters
    ----------
    file : LocalFile
        Plain or compressed.
    options : Options
        Its separator, header and missing words.
    format : {"csv", "tsv"}

    Raises
    ------
    DataError
        If the file cannot be read, is empty or has rows of several lengths, here or when the
        batches are iterated.
    """
    with reading(file) as stream:
        head = stream.read(BLOCK_BYTES)
    _check_text(head, file.origin)
    separator = options.separator or ("\t" if format == "tsv" else _likeliest_separator(head))
    first, n_lines, rows = _first_records(head, separator, file.origin)
    if len(first) > MAX_COLUMNS:
        # Before Arrow makes room for all of them.
        check_names(Table(file.origin, tuple(map(str, range(len(first)))), iter(())))
    named = options.header if options.header is not None else _looks_like_names(first, rows)
    if named:
        names = tuple(name.strip() or f"column {k}" for k, name in enumerate(first, 1))
    else:
        names, n_lines = tuple(f"column {k + 1}" for k in range(len(first))), 0
    if named and not rows and len(head) < BLOCK_BYTES:
        raise DataError(f"{file.origin}: there are no rows; is this the right file?")
    place = partial(_line_of, file, separator, named)
    table = Table(file.origin, names, iter(()), place, named)
    check_names(table)
    batches = _batches(file, names, separator, n_lines, options.missing_words)
    return Table(file.origin, names, batches, place, named)


def _batches(
    file: LocalFile, names: tuple[str, ...], separator: str, skip: int, missing: tuple[str, ...]
) -> Iterator[Any]:
    numbered = [str(k) for k in range(len(names))]
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    words = pa.array(missing, pa.string())
    with reading(file) as stream:
        try:
            reader = pacsv.open_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=pacsv.ReadOptions(
                    column_names=numbered,
                    skip_rows=skip,
                    block_size=BLOCK_BYTES,
                    use_threads=False,
                ),
                parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(numbered, pa.string()),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
            for batch in reader:
                columns = [_without_missing(column, words) for column in batch.columns]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _explained(file, len(names), separator, error) from None


def _without_missing(column: Any, words: Any) -> Any:
    """The texts without blanks around them, null where one of `words` is."""
    trimmed = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(trimmed, words), pa.scalar(None, pa.string()), trimmed)


def _check_text(head: bytes, origin: str) -> None:
    if not head.strip():
        raise DataError(f"{origin}: the file is empty")
    if head.startswith(_OTHER_ENCODINGS):
        raise DataError(f"{origin}: is UTF-16 text; convert it to UTF-8")
    if b"\0" in head[:4096]:
        raise DataError(f"{origin}: is not text (it holds zero bytes); set format")


def _likeliest_separator(head: bytes) -> str:
    """The one that is most often in the first line; a comma if none is there."""
    line = head.lstrip().split(b"\n", 1)[0].split(b"\r", 1)[0]
    counts = {each: line.count(each.encode()) for each in _SEPARATORS}
    return max(_SEPARATORS, key=lambda each: counts[each])


def _first_records(
    head: bytes, separator: str, origin: str
) -> tuple[list[str], int, list[list[str]]]:
    """The first record, the number of lines up to its end, and those that follow."""
    # The block may end within a character, or within a record that is not needed.
    text = head.decode("utf-8-sig", errors="replace")
    reader = csv.reader(_lines(text), delimiter=separator)
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


def _lines(text: str) -> Iterator[str]:
    # Not splitlines, which breaks lines at characters that CSV knows nothing of.
    return iter(io.StringIO(text, newline=""))


def _looks_like_names(first: list[str], rows: list[list[str]]) -> bool:
    """Whether the first record holds names.

    It does if no cell is a number, or if one is above a number, or is what a target is called. So
    do numbers that count columns, as those of a data frame without names: three or more that count
    all of them, or two or more if what is above texts is no cell below.
    """
    below, *_ = rows or [[]]
    above, below = ([cell.strip() for cell in record] for record in (first, below))
    if not any(map(is_number, above)):
        return True
    if above == below:
        return False
    numbers = [cell for cell in above if is_number(cell)]
    if len(numbers) > 1 and numbers == [str(k) for k in range(len(numbers))]:
        if numbers == above and len(above) > 2:
            return True
        texts = [k for k, cell in enumerate(below[: len(above)]) if cell and not is_number(cell)]
        met = {(k, cell.strip()) for row in rows for k, cell in enumerate(row)}
        if texts and not any((k, above[k]) in met for k in texts):
            return True
    pairs = itertools.zip_longest(above, below, fillvalue="")
    return any(
        cell and not is_number(cell) and (is_number(under) or cell.casefold() in _TARGETS)
        for cell, under in pairs
    )


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
        found = itertools.islice(_records(file, separator), row + named, None)
        return f"line {next(found)[0]}"
    except (csv.Error, DataError, StopIteration):
        return row_place(row)


def _explained(file: LocalFile, width: int, separator: str, error: Exception) -> DataError:
    """The first thing that is wrong with a file that Arrow refuses."""
    for line, record in _checked_records(file, separator):
        where = f"{file.origin}, line {line}"
        if isinstance(record, str):
            return DataError(f"{where}: {record}")
        if len(record) != width:
            return DataError(
                f"{where}: {len(record)} columns; expected {width} (separator "
                f"{separator!r}; set separator if it is another)"
            )
        for cell in record:
            if "\ufffd" in cell:
                return DataError(
                    f"{where}: {shown_word(cell)} is not UTF-8 text; convert the file to UTF-8"
                )
    return DataError(
        f"{file.origin}: not a table of values separated by {separator!r} ({first_line(error)})"
    )


def _checked_records(
    file: LocalFile, separator: str
) -> Iterable[tuple[int, list[str]] | tuple[int, str]]:
    line = 0
    try:
        for line, record in _records(file, separator):
            yield line, record
    except csv.Error as error:
        yield line + 1, f"not a record of separated values ({first_line(error)})"
