"""Data on their way from a file: blocks of rows, written once to the disk and read many times.

A table is a sequence of Arrow record batches, each column of texts or of float64, with nulls for
what is missing. Sparse rows are batches of three columns: the label as text, and two lists. They
are spooled into an Arrow file beside the cached one and mapped into memory, so that the passes over
them need no more memory than a block or a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import CacheError, DataError

#: Rows of a block that is made of arrays, and numbers of one.
BLOCK_ROWS = 1 << 14
BLOCK_NUMBERS = 1 << 21
#: Columns of a table; more of them are words of a text, which LIBSVM text holds better.
MAX_COLUMNS = 20_000

#: Where a row stands in its file, for messages: "line 7" for a row counted from 0.
Place: TypeAlias = Callable[[int], str]


def row_place(row: int) -> str:
    """Where a row is in a source without lines."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Table:
    """A table as a reader hands it over: nothing is read before `batches` is iterated.

    Attributes
    ----------
    origin : str
        What messages call it.
    names : tuple of str
        The columns.
    batches : iterator of RecordBatch
    place : callable
        Where a row stands.
    named : bool
        Whether the names come from the source.
    target : str
        The column that the source itself says holds the classes; empty: none.
    nominal : frozenset of str
        Columns that the source itself says hold categories.
    index : frozenset of str
        Columns that the source itself says number or name the rows.
    """

    origin: str
    names: tuple[str, ...]
    batches: Iterator[Any]
    place: Place = row_place
    named: bool = True
    target: str = ""
    nominal: frozenset[str] = frozenset()
    index: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SparseRows:
    """Labelled sparse rows as a reader hands them over.

    Attributes
    ----------
    origin : str
    batches : iterator of RecordBatch
        Columns ``label`` (text), ``indices`` (lists of int32, from 0, ascending) and ``values``.
    place : callable
        Where a row stands.
    """

    origin: str
    batches: Iterator[Any]
    place: Place = row_place


SPARSE_SCHEMA = pa.schema(
    [
        ("label", pa.string()),
        ("indices", pa.large_list(pa.int32())),
        ("values", pa.large_list(pa.float64())),
    ]
)


@dataclass(frozen=True)
class Spooled:
    """A table, or sparse rows, on the disk.

    Attributes
    ----------
    origin : str
    data : Table of Arrow
        Mapped: a column takes memory only while it is looked at.
    place : callable
    named, target, nominal, index
        As of `Table`.
    """

    origin: str
    data: Any
    place: Place
    named: bool = True
    target: str = ""
    nominal: frozenset[str] = frozenset()
    index: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.data.schema.names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)

    @property
    def sparse(self) -> bool:
        """Whether it holds sparse rows."""
        return bool(self.data.schema.equals(SPARSE_SCHEMA))

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """The first row of each block, and the block."""
        start = 0
        for batch in self.data.to_batches():
            yield start, batch
            start += batch.num_rows


def spool(source: Table | SparseRows, path: Path) -> Spooled:
    """Write what a reader hands over to the disk.

    Parameters
    ----------
    source : Table or SparseRows
    path : Path
        The file; whoever calls this removes it.

    Raises
    ------
    DataError
        What the reader raises; if there are no rows, or too many columns.
    CacheError
        If the file cannot be written.
    """
    if isinstance(source, Table):
        check_names(source)
    sink = None
    writer = None
    n_rows = 0
    for batch in source.batches:
        n_rows += batch.num_rows
        try:
            if writer is None:
                sink = pa.OSFile(str(path), "wb")
                writer = pa.ipc.new_file(sink, batch.schema)
            writer.write_batch(batch)
        except OSError as error:
            raise _unwritable(source.origin, path, error) from None
    if writer is None or sink is None or not n_rows:
        raise DataError(f"{source.origin}: there are no rows; is this the right file?")
    try:
        writer.close()
        sink.close()
    except OSError as error:
        raise _unwritable(source.origin, path, error) from None
    data = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    if isinstance(source, SparseRows):
        return Spooled(source.origin, data, source.place)
    return Spooled(
        source.origin,
        data,
        source.place,
        source.named,
        source.target,
        source.nominal,
        source.index,
    )


def check_names(table: Table) -> None:
    """Refuse names that are repeated or missing, and too many columns.

    Raises
    ------
    DataError
    """
    if len(table.names) > MAX_COLUMNS:
        raise DataError(
            f"{table.origin}: {len(table.names)} columns; at most {MAX_COLUMNS} are read from a "
            "table, write wider data as LIBSVM text"
        )
    seen: dict[str, int] = {}
    for number, name in enumerate(table.names, 1):
        if name in seen:
            remedy = "" if not table.named else "; rename one, or set header = false if it is data"
            raise DataError(
                f"{table.origin}: columns {seen[name]} and {number} have the same name "
                f"{shown_word(name)}{remedy}"
            )
        seen[name] = number


def shown_word(word: str) -> str:
    """A word of a file, quoted, shortened and on one line."""
    text = repr(word)
    return text if len(text) <= 40 else text[:36] + "...'"


def printable(text: str) -> str:
    """A text on one line, with escapes for what cannot be seen."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words separated by commas; no more than `most` of them."""
    told = ", ".join(map(printable, words[:most]))
    return told if len(words) <= most else f"{told} and {len(words) - most} more"


def _unwritable(origin: str, path: Path, error: OSError) -> CacheError:
    return CacheError(
        f"{origin}: cannot write to the cache folder {path.parent} ({error.strerror or error}); "
        "set MARGINBENCH_CACHE to a folder with room that can be written"
    )
