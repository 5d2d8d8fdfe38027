"""Gather the records of a results folder, one file each, into few files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ....data_loaders.atomic import UNFINISHED
from ...errors import EXIT_OK, EXIT_RUNS, RecordError, UserError
from ...execution.guarding import exclusive
from ...interrupts import interrupts_deferred
from ..description import FILE_NAME, DamagedDescriptionError, read_description
from ..sealing import content_digest, content_of, unsealed_table
from ..store import RecordStore, record_of
from .compacted import CompactedFile, Gathered
from .gathering import put_right, remove, write_compacted

#: Bounds on a compacted file; one with half as many records is not written again.
FILE_ROWS, FILE_BYTES = 2048, 64 * 2**20


@dataclass(frozen=True)
class Compaction:
    """What :func:`compact` did.

    Attributes
    ----------
    results : Path
        The results folder.
    records : int
        Records in compacted files now.
    gathered : int
        Those that were files of their own before.
    files : int
        Compacted files now.
    bytes_before, bytes_after : int
        Of all records that are not damaged.
    without_checksum : int
        Records of early releases, which stay files of their own.
    damaged : tuple of str
        A line for each record that cannot be read; its file stays as it is.
    """

    results: Path
    records: int
    gathered: int
    files: int
    bytes_before: int
    bytes_after: int
    without_checksum: int = 0
    damaged: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if a record is damaged, else 0."""
        return EXIT_RUNS if self.damaged else EXIT_OK

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return asdict(self) | {"results": str(self.results), "damaged": list(self.damaged)}


@dataclass
class _Batch:
    """What goes into one file: whole small files, and records of their own."""

    small: list[CompactedFile] = field(default_factory=list)
    records: list[Gathered] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    n_bytes: int = 0

    def add(self, records: Sequence[Gathered]) -> None:
        """Take further records."""
        self.records += records
        self.n_bytes += sum(record.n_bytes for record in records)

    @property
    def is_full(self) -> bool:
        return len(self.records) >= FILE_ROWS or self.n_bytes >= FILE_BYTES

    @property
    def is_needed(self) -> bool:
        return bool(self.paths) or len(self.small) > 1


def compact(results: Path, say: Callable[[str], None] = lambda line: None) -> Compaction:
    """Gather the records of a results folder into few files.

    All that reads the folder finds the same records as before. It may be interrupted at any
    moment; the next call goes on.

    Parameters
    ----------
    results : Path
    say : callable
        Takes one line for the user.

    Raises
    ------
    UserError
        If it is no results folder, or another command is writing there.
    StorageError
        If something cannot be written.
    """
    store = RecordStore(results / "runs")
    if not store.folder.is_dir():
        raise UserError(
            f"{results}: no results here ({FILE_NAME} and runs/ are missing); give the folder "
            "that 'marginbench run' wrote"
        )
    with interrupts_deferred() as check_interrupt, exclusive(results) as check_folder:
        remove(store.folder.glob(f"{UNFINISHED}*"))
        put_right(store, say)
        before = _size(store)
        worker = _Compactor(store, _planned_names(results))
        for _ in worker.batches():
            check_interrupt()
            check_folder()
        store.reopen()
        return Compaction(
            results,
            records=len(store.rows),
            gathered=worker.gathered,
            files=len(store.compacted_files),
            bytes_before=before,
            bytes_after=_size(store),
            without_checksum=worker.without_checksum,
            damaged=tuple(worker.damaged),
        )


class _Compactor:
    """One call of :func:`compact`.

    Parameters
    ----------
    store : RecordStore
    planned : iterable of str
        Names of records in the order in which they will be read. Those that are read one after the
        other are to lie in one row group: each switch to another one costs reading it.
    """

    def __init__(self, store: RecordStore, planned: Iterable[str]) -> None:
        self.store = store
        self._places = {name: place for place, name in enumerate(planned)}
        self.gathered = self.without_checksum = 0
        self.damaged: list[str] = []
        self._small: dict[str, list[CompactedFile]] = defaultdict(list)
        for file in store.compacted_files:
            if 2 * len(file.places) <= FILE_ROWS and 2 * file.n_bytes <= FILE_BYTES:
                self._small[_name_of(file.schema)].append(file)

    def batches(self) -> Iterator[None]:
        """Write file after file; between any two, nothing is half done."""
        open_batches: dict[str, _Batch] = {}
        for path, record in self._single_records():
            schema = _name_of(record.table.schema)
            batch = open_batches.get(schema) or self._new_batch(schema)
            batch.add([record])
            batch.paths.append(path)
            open_batches[schema] = batch
            if batch.is_full:
                self._write(open_batches.pop(schema))
            yield
        for batch in [*open_batches.values(), *map(self._new_batch, list(self._small))]:
            if batch.is_needed:
                self._write(batch)
                yield

    def _new_batch(self, schema: str) -> _Batch:
        """A batch that begins with the small files of a schema, as many as fit."""
        batch, left = _Batch(), []
        for file in self._small.pop(schema, []):
            if batch.is_full:
                left.append(file)
                continue
            batch.small.append(file)
            batch.add(file.gathered(file.places))
        if left:
            self._small[schema] = left
        return batch

    def _single_records(self) -> Iterator[tuple[Path, Gathered]]:
        """The records that can be gathered, in the order in which they will be read."""
        for path in sorted(self.store.paths(), key=lambda path: self._place(path.name)):
            try:
                content = content_of(path)
                table, row, has_checksum = unsealed_table(content)
                digest = content_digest(row)
                record_of(row)
            except RecordError as error:
                self.damaged.append(f"{path}: {error}")
                continue
            if has_checksum:
                yield path, Gathered(path.name, table, digest, len(content))
            else:
                self.without_checksum += 1

    def _write(self, batch: _Batch) -> None:
        records = sorted(batch.records, key=lambda record: self._place(record.name))
        written = write_compacted(self.store.folder, records, batch.small)
        remove(file.path for file in batch.small if file.path != written)
        remove(batch.paths)
        self.gathered += len(batch.paths)

    def _place(self, name: str) -> tuple[int, str]:
        return self._places.get(name, len(self._places)), name


def _planned_names(results: Path) -> list[str]:
    """The names of the planned records, in the order of the study; none if that is not known."""
    try:
        found = read_description(results) or {}
        return [str(run["file"]) for run in found.get("planned", [])]
    except (DamagedDescriptionError, KeyError, TypeError):
        return []


def _name_of(schema: pa.Schema) -> str:
    return str(schema.remove_metadata().to_string(show_field_metadata=False))


def _size(store: RecordStore) -> int:
    return sum(path.stat().st_size for path in [*store.paths(), *store.compacted_paths()])
