"""Readers of one's own files, each of which makes a table, or a training and a test table."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix

from .. import libsvm
from ..errors import DataError, first_line
from ..files import LocalFile, reading
from .columns import first_row, numbers, numeric
from .options import Options
from .tables import Table, column_names, refusing, row_location, table_of_arrow, tables_of
from .words import is_number, printable, shown_word

_SEPARATORS = ",;\t|"
#: What a target is called in a header; not "y", which is also a class.
_TARGETS = ("target", "class", "label")
#: Bytes of text that are looked at for the separator and the names.
_HEAD_BYTES = 1 << 21
# Records after the first one that tell whether it holds names.
_LOOKED_AT = 1000


def read(file: LocalFile, format: str, options: Options) -> list[Table]:
    """Read a file of one of the formats; raises `DataError` if it is not well-formed."""
    if format in ("csv", "tsv"):
        return [read_csv(file, options, format)]
    if format == "npz":
        # Nothing is unpickled.
        with (
            refusing(file.origin, "a NumPy file of arrays of numbers and texts"),
            np.load(file.path, allow_pickle=False) as arrays,
        ):
            made = dict(arrays)
        return tables_of(made, file.origin)
    return [{"parquet": _read_parquet, "arff": _read_arff, "libsvm": _read_libsvm}[format](file)]


def _read_libsvm(file: LocalFile) -> Table:
    try:
        part = libsvm.read_rows([file])
    except DataError as error:
        raise DataError(f"{error}; it is read as LIBSVM text, labels as classes") from None
    data = pa.table({"label": part.y})
    return Table(file.origin, data, target="label", X=cast(csr_matrix, part.X))


# Parquet


def _read_parquet(file: LocalFile) -> Table:
    with refusing(file.origin, "a Parquet file that can be read"), pq.ParquetFile(file.path) as it:
        names = column_names(file.origin, it.schema_arrow.names)
        data = it.read(use_threads=False)
        return table_of_arrow(data, names, file.origin, *_of_pandas(it.schema_arrow, names))


def _of_pandas(schema: Any, names: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The index of the data frame that was written, and its columns of categories.

    Arrow itself forgets that numbers were categories.
    """
    described = schema.pandas_metadata or {}
    of_index = described.get("index_columns", [])
    typed = {each["name"]: each["pandas_type"] for each in described.get("columns", [])}
    # An index that only counts is described by an object, and is no column.
    level = re.compile(r"__index_level_\d+__").fullmatch
    named = [*zip(schema.names, names, strict=True)]
    index = frozenset(name for n, name in named if n in of_index or level(n))
    return index, frozenset(name for n, name in named if typed.get(n) == "categorical")


# Comma-separated values and their relatives


def read_csv(file: LocalFile, options: Options, format: str) -> Table:
    """Read a table of text, plain or compressed, with this separator, header and missing words.

    Arrow parses the file. Where it refuses a row, or a value turns out to be wrong later, Python's
    own reader goes over the file once more to find the number of the line.
    """
    with reading(file) as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise DataError(f"{file.origin}: the file is empty")
    if b"\0" in head[:4096] and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{file.origin}: is not text (it holds zero bytes); set format")
    try:
        # Not final: the block may end within a character.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file.origin}, line {line}: not UTF-8 text; convert the file to UTF-8"
        ) from None
    # The one that is most often in the first line; a comma if none is there.
    in_first = re.split("[\r\n]", text.lstrip(), maxsplit=1)[0].count
    likeliest = "\t" if format == "tsv" else max(_SEPARATORS, key=in_first)
    separator = options.separator or likeliest
    # Not splitlines, which breaks lines at characters that CSV knows nothing of.
    records = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    with refusing(f"{file.origin}, line 1", "a record of separated values"):
        first = next(filter(None, records))
    n_lines, below = records.line_num, list[list[str]]()
    with contextlib.suppress(csv.Error):  # Arrow finds it, or can read it
        below.extend(itertools.islice(filter(None, records), _LOOKED_AT))
    named = options.header if options.header is not None else _looks_like_names(first, below)
    cells = [name.strip() for name in first] if named else [""] * len(first)
    names, n_lines = column_names(file.origin, cells, named), n_lines if named else 0
    numbered = [str(k) for k in range(len(names))]
    location = partial(_line_of, file, separator, named)
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
            reason = printable(first_line(error))
            row = re.search(r"Row #(\d+): (.*)", reason)
            where = f", {location(int(row[1]) - n_lines - 1)}" if row else ""
            raise DataError(
                f"{file.origin}{where}: {row[2] if row else reason} (separator {separator!r}; set "
                "separator if it is another)"
            ) from None
    missing = pa.array(options.missing_words, pa.string())
    columns = []
    for column in data.columns:
        trimmed = pc.utf8_trim_whitespace(column)
        null = pa.scalar(None, pa.string())
        columns.append(pc.if_else(pc.is_in(trimmed, missing), null, trimmed))
    return Table(file.origin, pa.Table.from_arrays(columns, names=names), location, named)


def _looks_like_names(first: list[str], rows: list[list[str]]) -> bool:
    """Whether the first record holds names.

    It does if no cell is a number, if one is above a number or is what a target is called, or if
    its numbers count columns from 0, three or more, or two that are not all above numbers, and no
    text beside them stands again below.
    """
    above, below = ([cell.strip() for cell in record] for record in (first, next(iter(rows), [])))
    numbers = [cell for cell in above if is_number(cell)]
    if not numbers:
        return True
    named = any(
        cell and not is_number(cell) and (is_number(under) or cell.casefold() in _TARGETS)
        for cell, under in itertools.zip_longest(above, below, fillvalue="")
    )
    texts = any(cell and not is_number(cell) for cell in below)
    counting = len(numbers) > (1 if texts else 2) and numbers == [*map(str, range(len(numbers)))]
    if not counting or named:
        return above != below and named
    met = {(k, cell.strip()) for row in rows for k, cell in enumerate(row)}
    return not any((k, cell) in met for k, cell in enumerate(above) if not is_number(cell) and cell)


def _line_of(file: LocalFile, separator: str, named: bool, row: int) -> str:
    """Where a row of values, counted from 0, begins in the file."""
    with contextlib.suppress(csv.Error, DataError), reading(file) as stream:
        lines = codecs.iterdecode(stream, "utf-8-sig", "replace")
        records = csv.reader(lines, delimiter=separator)
        begin, left = 1, row + named
        for record in records:
            if record and not left:
                return f"line {begin}"
            begin, left = records.line_num + 1, left - bool(record)
    return row_location(row)


# ARFF

_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{},%]+)\s*(.+)""", re.IGNORECASE
)
_OF_NUMBERS = re.compile(r"(integer|real|numeric)\s*(\[.*\])?", re.IGNORECASE)


def _read_arff(file: LocalFile) -> Table:
    """Read an ARFF file, dense or sparse, by scikit-learn's copy of liac-arff.

    scipy.io.arff reads neither sparse rows nor texts. What is a number is decided here.
    """
    # Imported here: it takes a second.
    from sklearn.externals import _arff

    seen, rows = (0, ""), list[tuple[int, str]]()
    names, kinds = list[str](), list[bool]()

    def lines(stream: Any) -> Iterator[str]:
        nonlocal seen
        yield "@relation any"
        data = False
        for seen in enumerate(codecs.iterdecode(stream, "utf-8-sig"), 1):
            line = seen[1].strip()
            if data and line and line[0] != "%":
                rows.append(seen)
                sparse = _arff._RE_SPARSE_KEY_VALUES.findall(line) if line[0] == "{" else []
                if len({int(k) for k, _ in sparse if k}) < len(sparse):
                    raise ValueError("an index stands twice")
            elif declared := _ATTRIBUTE.fullmatch(line):
                # Names are kept from it: it does not find the end of each.
                names.append(re.sub(r"""^['"]|['"]$|\\(['"\\%])""", r"\1", declared[1]))
                kinds.append(_OF_NUMBERS.fullmatch(declared[2]) is not None)
                line = f"@attribute a{len(names)} {'string' if kinds[-1] else declared[2]}"
            data = data or line.lower().startswith("@data")
            if not line.lower().startswith("@relation"):  # its name means nothing
                yield line

    def refused(at: tuple[int, str]) -> DataError:
        where = f"{file.origin}, line {at[0]}: {shown_word(at[1].strip())}"
        return DataError(f"{where} is not ARFF of numbers, categories and texts")

    with reading(file) as stream:
        try:
            made = _arff.ArffDecoder().decode(lines(stream))
        except (MemoryError, DataError):
            raise
        except UnicodeDecodeError:
            where = f"{file.origin}, line {seen[0] + 1}"
            raise DataError(f"{where}: not UTF-8 text; convert the file to UTF-8") from None
        except Exception:  # noqa: BLE001 - of what is no ARFF it raises any
            raise refused(seen) from None
    names = column_names(file.origin, names)
    cells = zip(*made["data"], strict=True) if made["data"] else [[]] * len(names)
    columns = []
    for texts, is_numeric in zip(cells, kinds, strict=True):
        column = pa.array(texts, pa.string())
        if is_numeric:
            column = pc.utf8_trim_whitespace(column)
            if (wrong := first_row(pc.invert(numeric(column)))) >= 0:
                raise refused(rows[wrong])
            column = pa.array(numbers(column), from_pandas=True)
        columns.append(column)
    nominal = frozenset(name for name, number in zip(names, kinds, strict=True) if not number)
    return Table(file.origin, pa.Table.from_arrays(columns, names=names), nominal=nominal)
