"""The journal of a results folder: a line for each run, in one file per command, never changed.

A line is ``CHECKSUM HEADER<tab>BODY``: 32 digits of the SHA-256 of what follows them, and two JSON
objects. The header says what a command that resumes must know, so only headers are parsed then. A
line is a ``source`` (the files of which a hash of code is made), a ``start`` (a run has begun), a
``record``, or the ``end`` of the command. The current record of a run is the last line with the key
that ``study.json`` plans for it; a run that was cut short by a limit, or failed, never takes the
place of one that ended as planned.

Several commands may write to one folder: each has a file of its own, which it holds locked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...data_loaders.atomic import replacing
from ..errors import RecordError, StorageError, UserError
from ..storage import exclusive, lock_file, storing
from ..words import REASON_LIMIT, visible
from .description import FILE_NAME, Cell, DamagedDescriptionError, planned_keys, read_description
from .records import (
    EXPECTED_STATUSES,
    SCHEMA_VERSION,
    RecordBase,
    Status,
    check_columns,
    record_of,
    schema_of,
    table_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "journal"
#: The current records as one table, made from the journal.
TABLE = "runs.parquet"
# Of its metadata, the entry that names the journal; and records that become a part of it at a time.
_TABLE_KEY, _ROWS = b"marginbench.journal", 500
_DIGITS = 32
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')
_OTHER_TYPE = re.compile(rb'"type":"(?:start|source|end)"')
# Bytes read at a time: lines of records are some ten thousand long.
_BUFFER = 2**17
# Seconds for which a file that grew counts as being written from elsewhere.
_FRESH_S = 60.0
# Seconds after which what was written is on the disk, whatever happens to the machine.
_SYNC_S = 1.0
# Seconds for which another command may change the plan.
_PLANNING_S = 60.0
#: Columns of a record that its header repeats.
_COLUMNS = ("status", "reason", "budget", "started_at", "reference_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The header of a record; :meth:`Journal.load` reads the rest."""

    segment: str  # name of the file
    offset: int  # where its line is, in bytes
    size: int
    key: str
    task: str
    solver: str
    seed: int
    preferred: bool  # whether it was chosen over an earlier line in a merge
    status: Status
    reason: str
    budget: str
    started_at: str
    reference_hash: str | None
    machine: str  # processor, cores and memory; empty: not known
    # What it took, but for compiling: that need not be done again. None: it has not solved.
    seconds: float | None

    @classmethod
    def of(cls, header: Mapping[str, Any], segment: str, offset: int, size: int) -> Entry:
        """The entry of a line with this header."""
        columns = {name: header[name] for name in _COLUMNS}
        columns |= dict(zip(("task", "solver", "seed"), header["cell"], strict=True))
        columns |= {name: header.get(name, "") for name in ("preferred", "machine")}
        columns["seconds"] = header.get("seconds")
        return cls(segment=segment, offset=offset, size=size, key=header["key"], **columns)

    @property
    def cell(self) -> Cell:
        """Task, solver and seed."""
        return self.task, self.solver, self.seed

    @property
    def cut(self) -> list[str]:
        """Names of the limits that may have cut the run short."""
        # A feasibility method that ends at its seconds says so, and keeps what it has.
        status = "timeout" if self.reason.startswith("max_seconds=") else self.status
        if status not in ("timeout", "memory"):
            return []
        return [name for name in json.loads(self.budget) if name.endswith(status)]

    @property
    def rank(self) -> tuple[bool, str, int]:
        """Of two lines of a key the one of higher rank counts."""
        whole = self.status in EXPECTED_STATUSES and not self.cut
        return whole or bool(self.preferred), self.segment, self.offset


@dataclass(frozen=True)
class Start:
    """A run that a command has begun: when, in seconds since 1970, and what."""

    segment: str
    key: str
    cell: Cell
    at: float


@dataclass(frozen=True)
class Damage:
    """A damaged line."""

    path: Path
    line: int  # from 1
    byte: int  # where it begins
    key: str = ""  # the key that can be read in it; nothing vouches for it

    def __str__(self) -> str:
        return f"{self.path}: line {self.line} (byte {self.byte}) is damaged"


def line_of(header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    """A line of a journal."""
    content = b"\t".join(_json(part) for part in (header, body))
    return hashlib.sha256(content).hexdigest()[:_DIGITS].encode() + b" " + content + b"\n"


@lru_cache(64)
def _machine(environment: str) -> str:
    values = json.loads(environment)
    if not values.get("processor"):
        return ""
    memory = round(values.get("memory_mb", 0) / 1000)
    cores = values.get("cores_logical") or values.get("cores")
    return f"{values['processor']}, {cores} cores, {memory} GB"


def record_line(record: RecordBase, **more: Any) -> bytes:
    """The line of a record; ``more`` are further entries of its header."""
    # Only some kinds of studies tune.
    phases = (record.data_s, record.evaluation_s, getattr(record, "tuning_wall_s", None))
    wall = record.wall_s
    header = {
        "type": "record",
        "schema": SCHEMA_VERSION,
        "key": record.key,
        "cell": (record.task, record.solver, record.seed),
        "machine": _machine(record.environment),
        "seconds": None if wall is None else wall + sum(filter(None, phases)),
        **{name: getattr(record, name, None) for name in _COLUMNS},
        **more,
    }
    return line_of(header, record.values())


def parse_record(line: bytes | str) -> RecordBase:
    """The record that a line of a journal holds, after a check of its checksum.

    Parameters
    ----------
    line : bytes or str
        A line of a file in the folder ``journal/`` of a results folder.

    Returns
    -------
    RecordBase
        A record of the type of its kind.

    Raises
    ------
    RecordError
        If the line is damaged, holds no record, or is of another schema than this release reads.
    """
    return record_of(_values(line.encode() if isinstance(line, str) else line))


def _values(line: bytes) -> dict[str, Any]:
    """What the line of a record says, see :meth:`RecordBase.values`."""
    header, body = _checked(line if line.endswith(b"\n") else line + b"\n")
    if header["type"] != "record":
        raise RecordError(f"a {header['type']} and no record")
    values: dict[str, Any] = json.loads(line[body:])
    return values


def segments_in(folder: Path) -> list[Path]:
    """The files of a journal, in the order in which the commands began."""
    try:
        # A glob would take a folder that may not be read for an empty one.
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(folder / name for name in names if name.endswith(".jsonl"))


class Journal:
    """The journal of a results folder: what it holds, and a file of this command's own."""

    def __init__(self, results: Path) -> None:
        self.results, self.folder = results, results / FOLDER
        self.entries: list[Entry] = []
        self.damages: list[Damage] = []
        self._best: dict[str, Entry] = {}
        self._starts: dict[tuple[str, str], Start] = {}
        self._described: tuple[int, int] | None = None  # the state of study.json
        # Of each file how far it was read, in bytes and lines; its size and when it last grew.
        self._read: dict[str, tuple[int, int]] = {}
        self._grew: dict[str, tuple[int, float]] = {}
        self._ended = set[str]()
        # Of each hash of code the line that says what it is made of: file, offset, size.
        self._sources: dict[str, tuple[str, int, int]] = {}
        self._own: tuple[Path, int] | None = None
        self._synced = -math.inf
        self.refresh()
        # What was there says nothing of when it was written.
        self._grew = {name: (size, -math.inf) for name, (size, _) in self._grew.items()}

    @classmethod
    def settled(cls, results: Path) -> Journal:
        """For a command that looks once: half a line is damage if nobody here is writing it."""
        journal = cls(results)
        journal.refresh()
        return journal

    def segments(self) -> list[Path]:
        """The files, in the order in which the commands began."""
        return segments_in(self.folder)

    def refresh(self) -> list[Entry]:
        """Read the lines that were written whole since the last look; the records among them."""
        before = len(self.entries)
        with contextlib.suppress(OSError):
            stat = (self.results / FILE_NAME).stat()
            if self._described != (stat.st_size, stat.st_mtime_ns):
                self._described = stat.st_size, stat.st_mtime_ns
                for name in ("description", "plan", "current"):
                    self.__dict__.pop(name, None)
        for path in self.segments():
            offset, number = self._read.get(path.name, (0, 0))
            with contextlib.suppress(FileNotFoundError), path.open("rb", _BUFFER) as file:
                size = os.fstat(file.fileno()).st_size
                if size <= offset:
                    continue
                if size != self._grew.get(path.name, (0, 0.0))[0]:
                    self._grew[path.name] = size, time.monotonic()
                file.seek(offset)
                for line in file:
                    end = offset + len(line)
                    if not line.endswith(b"\n") and (
                        self._is_written(path) or os.fstat(file.fileno()).st_size != end
                    ):
                        break
                    number += 1
                    self._take(path, number, offset, line)
                    offset = end
            self._read[path.name] = offset, number
        return self.entries[before:]

    def _take(self, path: Path, number: int, offset: int, line: bytes) -> None:
        try:
            if not line.endswith(b"\n"):
                raise RecordError("cut short")
            header, _ = _checked(line)
            kind = header["type"]
            if kind == "record":
                self._add(Entry.of(header, path.name, offset, len(line)))
            elif kind == "start":
                start = Start(path.name, header["key"], tuple(header["cell"]), header["at"])
                self._starts[path.name, start.key] = start
            elif kind == "source":
                self._sources[header["hash"]] = path.name, offset, len(line)
            elif kind == "end":
                self._ended.add(path.name)
        except (RecordError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, OtherSchemaError):
                raise UserError(f"{path}: {error}") from None
            if _OTHER_TYPE.search(line[:100]):
                return  # no record is lost
            key = _KEY.search(line)
            self.damages.append(Damage(path, number, offset, key[1].decode() if key else ""))

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._starts.pop((entry.segment, entry.key), None)
        best = self._best.get(entry.key)
        if best is None or entry.rank > best.rank:
            self._best[entry.key] = entry
        self.__dict__.pop("current", None)

    @cached_property
    def description(self) -> dict[str, Any]:
        """The content of ``study.json``; empty if there is none."""
        return read_description(self.results) or {}

    @cached_property
    def plan(self) -> dict[Cell, str]:
        """The plan of ``study.json``: task, solver and seed -> key; empty if it is damaged."""
        with contextlib.suppress(DamagedDescriptionError):
            return planned_keys(self.description)
        return {}

    @cached_property
    def current(self) -> dict[Cell, Entry]:
        """The current record of each planned run that has one, in the order of the plan."""
        entries = ((cell, self._best.get(key)) for cell, key in self.plan.items())
        return {cell: entry for cell, entry in entries if entry is not None}

    @property
    def is_complete(self) -> bool:
        """Whether there is a plan, and a record of each of its runs."""
        return bool(self.plan) and len(self.current) == len(self.plan)

    def recorded(self, key: str) -> Entry | None:
        """The record with this key that counts."""
        return self._best.get(key)

    def load(self, entry: Entry) -> RecordBase:
        """The record of an entry; a RecordError names its file if the line has changed."""
        return record_of(self.values(entry))

    def values(self, entry: Entry) -> dict[str, Any]:
        """The record of an entry as its line has it."""
        try:
            return _values(self._line(entry.segment, entry.offset, entry.size))
        except RecordError as error:
            path = self.folder / entry.segment
            raise RecordError(f"{path}: byte {entry.offset}: {error}") from None

    def source(self, source_hash: str) -> dict[str, str] | None:
        """What a hash of code is made of: name of a file -> its hash; None if it is not stored."""
        if source_hash not in self._sources:
            return None
        line = self._line(*self._sources[source_hash])
        files: dict[str, str] = json.loads(line[_checked(line)[1] :])
        return files

    def records(self) -> Iterator[RecordBase]:
        """The current records with all of their columns, in the order of the plan."""
        return map(self.load, self.current.values())

    def _line(self, segment: str, offset: int, size: int) -> bytes:
        try:
            with (self.folder / segment).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise RecordError(f"cannot be read ({error.strerror or error})") from None

    # writing

    def begin(self) -> None:
        """Begin this command's file: others see that it is at work."""
        self._own = self._own or self._begun()

    def append_start(self, key: str, cell: Cell) -> None:
        """Write that a run begins: others leave it to this command."""
        header = {"type": "start", "schema": SCHEMA_VERSION, "key": key, "cell": cell}
        self.append(line_of(header | {"at": time.time()}, {}))

    def append_source(self, source_hash: str, files: Mapping[str, str]) -> None:
        """Write what a hash of code is made of, unless that is known."""
        if source_hash not in self._sources:
            header = {"type": "source", "schema": SCHEMA_VERSION, "hash": source_hash}
            self.append(line_of(header, files))

    def append_record(self, record: RecordBase) -> Entry:
        """Write a record; if that fails, nothing of it is written."""
        self.append(record_line(record))
        return self.entries[-1]

    def append(self, line: bytes) -> None:
        """Write a line to this command's file, whole or not at all.

        It stays whatever happens to the command. Should the machine fail, the lines of the last
        second may be lost: to wait for the disk takes longer than many a run.
        """
        self.begin()
        assert self._own is not None
        path, descriptor = self._own
        self.check_exists()
        with storing(path):
            start = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(descriptor, left) :]
                if time.monotonic() - self._synced > _SYNC_S:
                    os.fsync(descriptor)
                    self._synced = time.monotonic()
            except BaseException:
                os.ftruncate(descriptor, start)
                raise
        _, number = self._read.get(path.name, (0, 0))
        self._read[path.name] = start + len(line), number + 1
        self._take(path, number + 1, start, line)

    def _begun(self) -> tuple[Path, int]:
        """A new file, after all others by its name whatever this machine's clock says."""
        now, segments = datetime.now(UTC), self.segments()
        if segments:
            with contextlib.suppress(ValueError):
                last = datetime.strptime(segments[-1].name.partition("-")[0], _STAMP)
                now = max(now, last.replace(tzinfo=UTC) + timedelta(microseconds=1))
        with storing(self.folder):
            self.folder.mkdir(exist_ok=True)
            name = f"{now.strftime(_STAMP)}-{self._tag}-{secrets.token_hex(2)}.jsonl"
        path = self.folder / name
        with storing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        # Where a file system has no locks, other commands see by its growth that it is written.
        with contextlib.suppress(OSError):
            lock_file(descriptor)
        return path, descriptor

    def planning(self) -> contextlib.AbstractContextManager[None]:
        """Lock the plan: no other command changes it in this block."""
        return exclusive(self.folder, _PLANNING_S)

    def check_exists(self) -> None:
        """Check that this command's file exists and can be written.

        A results folder that is removed must not come back with half of it.
        """
        if self._own is not None and not os.access(self._own[0], os.W_OK):
            with storing(self._own[0]):
                self._own[0].open("r+b").close()  # says why not

    # other commands

    @property
    def has_grown(self) -> bool:
        """Whether this command has written to it."""
        return self._own is not None

    def _is_written(self, path: Path) -> bool:
        """Whether a command is writing a file: one of this folder and machine holds it locked.

        One that is elsewhere, on a shared disk or behind a store, has lately made it grow.
        """
        if self._own is not None and path == self._own[0]:
            return True
        try:
            with path.open("rb") as file:
                lock_file(file.fileno(), shared=True)
            if f"-{self._tag}-" in path.name:
                return False
        except BlockingIOError:
            return True
        except OSError:
            pass  # a disk without locks
        _, grew = self._grew.get(path.name, (0, -math.inf))
        return time.monotonic() - grew < _FRESH_S

    @cached_property
    def _tag(self) -> str:
        """An opaque name of this folder on this machine, until its next start."""
        try:
            machine = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        except OSError:
            machine = platform.node()
        stat = self.folder.stat()
        return hashlib.sha256(f"{machine} {stat.st_dev} {stat.st_ino}".encode()).hexdigest()[:8]

    def others(self) -> list[str]:
        """The files that other commands are writing."""
        own = self._own[0] if self._own is not None else None
        return [
            path.name
            for path in self.segments()
            if path != own and path.name not in self._ended and self._is_written(path)
        ]

    def running(self) -> list[Start]:
        """The runs that other commands have begun and not recorded."""
        if not self._starts:
            return []
        others = set(self.others())
        return [start for start in self._starts.values() if start.segment in others]

    def close(self, *, quietly: bool = False) -> None:
        """End this command's file: its records are on the disk, and others see that it is whole.

        If that fails it is a StorageError, unless it is done ``quietly``: others see by the lock
        that nobody writes.
        """
        if self._own is None:
            return
        try:
            with contextlib.suppress(StorageError) if quietly else contextlib.nullcontext():
                self._synced = -math.inf
                self.append(line_of({"type": "end", "schema": SCHEMA_VERSION}, {}))
        finally:
            os.close(self._own[1])
            self._own = None


def runs_table(
    results: Path, record_type: type[RecordBase], *, write: bool = False
) -> tuple[pa.Table, dict[str, str]]:
    """The current records as a table, and why others cannot be read: key -> a line.

    They come from ``runs.parquet`` if the journal is still the one of which it was made. With
    ``write`` that is written if it is not up to date.
    """
    import pyarrow.parquet as pq

    # The files of the journal, and the plan, with their sizes and times.
    paths = [*segments_in(results / FOLDER), *results.glob(FILE_NAME)]
    files = [(path.name, path.stat()) for path in paths]
    stamp = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in files]
    table_and_damages = _stored(results / TABLE, record_type, stamp)
    if table_and_damages is None:
        table_and_damages = _made(results, record_type)
        if write:
            table, damaged = table_and_damages
            described = json.dumps({"journal": stamp, "damaged": damaged})
            table = table.replace_schema_metadata({_TABLE_KEY: described.encode()})
            with storing(results / TABLE), replacing(results / TABLE) as sink:
                pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return table_and_damages


def _stored(
    path: Path, record_type: type[RecordBase], stamp: list[list[Any]]
) -> tuple[pa.Table, dict[str, str]] | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Whatever is wrong with it, the journal tells the same.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        described = json.loads(file.schema_arrow.metadata[_TABLE_KEY])
        if described["journal"] == stamp:
            table = file.read().replace_schema_metadata(None)
            if table.schema.equals(schema_of(record_type)):
                return table, described["damaged"]
    return None


def _made(results: Path, record_type: type[RecordBase]) -> tuple[pa.Table, dict[str, str]]:
    import pyarrow as pa

    journal = Journal.settled(results)
    damaged = {item.key: _below(results, item) for item in journal.damages if item.key}
    entries = list(journal.current.values())
    parts = [table_of(record_type, [])]
    for start in range(0, len(entries), _ROWS):
        rows = []
        for entry in entries[start : start + _ROWS]:
            damaged.pop(entry.key, None)
            try:
                values = journal.values(entry)
                if values["kind"] != record_type.kind:
                    raise RecordError(f"of a study of the kind {values['kind']!r}")
                check_columns(record_type, values)
                rows.append(values)
            except RecordError as error:
                damaged[entry.key] = _below(results, error)
        parts.append(table_of(record_type, rows))
    return pa.concat_tables(parts), damaged


def _below(results: Path, words: object) -> str:
    """A line with a path relative to the results folder: pages do not show where that is."""
    return str(words).removeprefix(f"{results}{os.sep}")


def failure_line(record: RecordBase | Entry) -> str:
    """One line for a run that did not go as planned."""
    reason = f" ({visible(record.reason, REASON_LIMIT)})" if record.reason else ""
    return f"{record.task} / {record.solver} / seed {record.seed}: {record.status}{reason}"


class OtherSchemaError(RecordError):
    """A line that another release has written; the message says what to do."""


def _checked(line: bytes) -> tuple[dict[str, Any], int]:
    """The header of an intact line, and where its body begins; that is not copied."""
    content = memoryview(line)[_DIGITS + 1 : -1]
    if hashlib.sha256(content).hexdigest()[:_DIGITS].encode() + b" " != line[: _DIGITS + 1]:
        raise RecordError("damaged (it does not match its checksum)")
    body = line.find(b"\t") + 1
    values = json.loads(line[_DIGITS + 1 : body].decode())
    if values["schema"] != SCHEMA_VERSION:
        is_later = values["schema"] > SCHEMA_VERSION
        remedy = "update marginbench" if is_later else "use that release or choose another folder"
        words = f"schema version {values['schema']}, this release reads {SCHEMA_VERSION}"
        raise OtherSchemaError(f"written by another release of marginbench ({words}); {remedy}")
    return values, body


def _json(value: Mapping[str, Any]) -> bytes:
    """Strict JSON on one line: null for what is not a number, infinities as texts."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_strict(value), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
