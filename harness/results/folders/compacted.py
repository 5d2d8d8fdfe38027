"""A compacted file: many records in one Parquet file, sealed so that damage stays local.

The rows are those of the single records, value by value, and each keeps the SHA-256 of its values.
Rows lie in row groups. The footer's metadata hold a SHA-256 of the bytes of each group, and one of
the footer itself, which is verified before Arrow sees any byte. So every byte counts, and damage in
one group leaves the records of the others readable.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import RecordError, first_line
from ..sealing import THRIFT_LIMITS, content_digest

#: Names of compacted files; the digits are the beginning of the seal.
NAME = re.compile(r"compact-[0-9a-f]{16}\.parquet")
# More than twice what a writer puts into one; a larger file is none, and is not read.
_LARGEST = 512 * 2**20
#: Bounds on a row group: damage costs one group, and a reader holds a few of them.
GROUP_ROWS, GROUP_BYTES = 128, 4 * 2**20
# Groups that a reader keeps: in the order of a study its records come group by group.
_KEPT_GROUPS = 4
_MAGIC = b"PAR1"
_MARK = b"marginbench-compact-sha256:"
_BLANK = b"0" * 64
_KEY = "marginbench.compacted"
_SEAL_KEY = "marginbench.file"


@dataclass(frozen=True)
class Gathered:
    """A record on its way into a compacted file.

    Attributes
    ----------
    name : str
        Of its file, when it is a file of its own.
    table : pyarrow.Table
        Its row, without metadata.
    digest : str
        That of its values.
    n_bytes : int
        About how much it takes in a file.
    """

    name: str
    table: pa.Table
    digest: str
    n_bytes: int


@dataclass(frozen=True)
class _Group:
    """A row group: where its bytes end, their SHA-256, and its rows."""

    end: int
    sha256: str
    names: Sequence[str]
    digests: Sequence[str]


def is_compacted(path: Path) -> bool:
    """Whether a file has the name of a compacted one."""
    return NAME.fullmatch(path.name) is not None


def compacted(records: Sequence[Gathered], replaces: Iterable[str]) -> tuple[str, bytes]:
    """The name and the bytes of a file with these records.

    Parameters
    ----------
    records : sequence of Gathered
        Of one schema, in the order of the file.
    replaces : iterable of str
        Seals of the compacted files that this one takes the place of.
    """
    sink = io.BytesIO()
    groups: list[_Group] = []
    schema = records[0].table.schema
    with pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
        for part in _parts(records):
            table = pa.concat_tables([record.table for record in part]).combine_chunks()
            start = max(sink.tell(), len(_MAGIC))
            writer.write_table(table, row_group_size=len(part))
            end = sink.tell()
            sha256 = hashlib.sha256(sink.getbuffer()[start:end]).hexdigest()
            names, digests = zip(*((item.name, item.digest) for item in part), strict=True)
            groups.append(_Group(end, sha256, names, digests))
        described = {"groups": [vars(group) for group in groups], "replaces": sorted(replaces)}
        writer.add_key_value_metadata(
            {_KEY: json.dumps(described), _SEAL_KEY: (_MARK + _BLANK).decode()}
        )
    content = sink.getvalue()
    place = content.rindex(_MARK) + len(_MARK)
    seal = _digest_of_footer(content[groups[-1].end :])
    name = f"compact-{seal[:16]}.parquet"
    return name, content[:place] + seal.encode() + content[place + len(_BLANK) :]


def _parts(records: Sequence[Gathered]) -> Iterator[Sequence[Gathered]]:
    """The records of each row group."""
    start = size = 0
    for place, record in enumerate(records):
        if place > start and (place - start == GROUP_ROWS or size + record.n_bytes > GROUP_BYTES):
            yield records[start:place]
            start, size = place, 0
        size += record.n_bytes
    yield records[start:]


class CompactedFile:
    """A compacted file. Its bytes are verified now, and again whenever they are read.

    Parameters
    ----------
    path : Path

    Raises
    ------
    RecordError
        If it cannot be read, or its footer is damaged; the message says why, without the path.

    Attributes
    ----------
    seal : str
        SHA-256 of the footer, and so of all the file.
    replaces : frozenset of str
        Seals of the files that it takes the place of.
    damaged : frozenset of int
        Groups whose bytes do not match their checksum.
    n_bytes : int
        The size of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: pq.ParquetFile | None = None
        content, self.seal, start = _verified(path)
        metadata = _opened(content).metadata.metadata
        try:
            described = json.loads(metadata[_KEY.encode()])
            self._groups = [_Group(**group) for group in described["groups"]]
            self.replaces = frozenset(described["replaces"])
        except (KeyError, TypeError, ValueError):
            raise RecordError("not readable records (its footer does not list them)") from None
        self.n_bytes = len(content)
        self.damaged = frozenset(self._damaged_groups(content, start))
        # The rows of the groups that were last asked for.
        self._rows_of = lru_cache(maxsize=_KEPT_GROUPS)(self._read_rows)

    def close(self) -> None:
        """Let go of all that was read; it is read again when it is needed."""
        self._file = None
        self._rows_of.cache_clear()

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Name of a record -> its group, and its place there."""
        return {
            name: (number, place)
            for number, group in enumerate(self._groups)
            for place, name in enumerate(group.names)
        }

    @property
    def schema(self) -> pa.Schema:
        """That of its rows."""
        return self._open().schema_arrow

    def digest(self, name: str) -> str:
        """The digest of a record's values, as the file has it."""
        number, place = self.places[name]
        return self._groups[number].digests[place]

    def is_damaged(self, name: str) -> bool:
        """Whether a record lies in a damaged group."""
        return self.places[name][0] in self.damaged

    def row(self, name: str) -> dict[str, Any]:
        """The row of a record, after all its checks.

        Raises
        ------
        RecordError
            If it is damaged.
        """
        number, place = self.places[name]
        row = self._rows_of(number)[place]
        if content_digest(row) != self._groups[number].digests[place]:
            raise RecordError(f"damaged (the values of {name} do not match their checksum)")
        # Readers put maps in the place of lists of pairs, and this one is kept.
        trace = row.get("trace")
        return row if trace is None else row | {"trace": [state and dict(state) for state in trace]}

    def gathered(self, names: Iterable[str]) -> list[Gathered]:
        """Records in the form in which they go into a file, in the order of this one.

        Raises
        ------
        RecordError
            If one of them is damaged.
        """
        wanted = set(names)
        found = []
        for number, group in enumerate(self._groups):
            chosen = [place for place, name in enumerate(group.names) if name in wanted]
            if not chosen:
                continue
            table = self._table(number).replace_schema_metadata(None)
            each = self.n_bytes // len(self.places)
            found += [
                Gathered(group.names[place], table.slice(place, 1), group.digests[place], each)
                for place in chosen
            ]
        return found

    def columns(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Some columns of each record that is not damaged, by the record's name.

        The bytes are verified, but not the digest of each row, which is that of all columns.
        """
        known = [name for name in names if name in self.schema.names]
        found: dict[str, dict[str, Any]] = {}
        for number, group in enumerate(self._groups):
            if number not in self.damaged:
                rows = self._table(number, known).to_pylist()
                found |= zip(group.names, rows, strict=True)
        return found

    def _read_rows(self, number: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._table(number).to_pylist()
        return rows

    def _table(self, number: int, columns: list[str] | None = None) -> pa.Table:
        if number in self.damaged:
            names = self._groups[number].names
            raise RecordError(
                f"damaged (row group {number}, of {len(names)} records, does not match its "
                "checksum)"
            )
        try:
            return self._open().read_row_group(number, columns=columns, use_threads=False)
        except Exception as error:  # noqa: BLE001 - what was sealed wrongly raises anything
            raise RecordError(f"not readable records ({first_line(error)})") from None

    def _open(self) -> pq.ParquetFile:
        if self._file is None:
            content, seal, start = _verified(self.path)
            # All that is known of the groups is under this seal.
            if seal != self.seal or self.damaged != {*self._damaged_groups(content, start)}:
                raise RecordError("changed while it was read")
            self._file = _opened(content)
        return self._file

    def _damaged_groups(self, content: bytes, footer: int) -> Iterator[int]:
        start, view = len(_MAGIC), memoryview(content)
        for number, group in enumerate(self._groups):
            if hashlib.sha256(view[start : group.end]).hexdigest() != group.sha256:
                yield number
            start = group.end
        if start != footer:
            raise RecordError("damaged (its groups do not end where its footer begins)")


def _verified(path: Path) -> tuple[bytes, str, int]:
    """The bytes of a file whose footer is not damaged, its seal, and where the footer begins."""
    content = _read(path)
    start = max(len(content) - 8 - int.from_bytes(content[-8:-4], "little"), 0)
    footer = content[start:]
    place = footer.rfind(_MARK)
    if place < 0:
        raise RecordError("damaged (its checksum is missing)")
    place += len(_MARK)
    seal = _digest_of_footer(footer)
    if footer[place : place + len(_BLANK)] != seal.encode():
        raise RecordError("damaged (its footer does not match its checksum)")
    return content, seal, start


def _opened(content: bytes) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            pa.BufferReader(content), page_checksum_verification=True, **THRIFT_LIMITS
        )
    except Exception as error:  # noqa: BLE001 - what was sealed wrongly raises anything
        raise RecordError(f"not readable records ({first_line(error)})") from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise RecordError(f"not readable records (larger than {_LARGEST >> 20} MiB)")
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"not readable records ({error.strerror or error})") from None
    if len(content) < 12 or not (content.startswith(_MAGIC) and content.endswith(_MAGIC)):
        raise RecordError("not readable records (not a whole Parquet file)")
    return content


def _digest_of_footer(footer: bytes) -> str:
    """SHA-256 of what follows the row groups, with zeros in the digest's own place."""
    place = footer.rindex(_MARK) + len(_MARK)
    return hashlib.sha256(footer[:place] + _BLANK + footer[place + len(_BLANK) :]).hexdigest()


def newest_first(files: Mapping[str, CompactedFile]) -> list[CompactedFile]:
    """The files that no other takes the place of, by name."""
    gone = frozenset().union(*(file.replaces for file in files.values()))
    return [file for seal, file in sorted(files.items()) if seal not in gone]
