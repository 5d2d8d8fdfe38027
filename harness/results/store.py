"""The store that keeps records: sealed Parquet files, one for each run or compacted ones for many.

A record is named by the file name of its run, wherever it lies. A file of that name goes before a
row of a compacted file: it was written later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...data_loaders.atomic import replacing
from ...data_loaders.errors import first_line
from ..errors import LaterRecordError, RecordError, UserError
from ..storage import storing
from .folders.compacted import CompactedFile, is_compacted, newest_first
from .records import RecordBase, schema_of
from .sealing import sealed, unsealed


def read_record(path: Path | str) -> RecordBase:
    """Read the record of one run, after checking it against its checksums.

    Parameters
    ----------
    path : Path or str
        A file of the folder ``runs/`` of a results folder.

    Returns
    -------
    RecordBase
        A record of the type of its kind; records of older schemas come with today's columns.

    Raises
    ------
    RecordError
        If the file is damaged, is no record, or is of a schema that this release cannot read; the
        message names the file and says why.
    """
    path = Path(path)
    if is_compacted(path):
        raise RecordError(
            f"{path}: holds the records of many runs; read its folder with load_results, or the "
            "file with pandas"
        )
    with _naming(path):
        return record_of(unsealed(path))


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except RecordError as error:
        raise type(error)(f"{path}: {error}") from None


def record_of(row: dict[str, Any]) -> RecordBase:
    """The record that a stored row is, of whatever kind.

    Raises
    ------
    RecordError
        If no run can have written it.
    """
    from ..planning.plan import record_type

    try:
        return record_type(row).from_row(row)
    except RecordError:
        raise
    except Exception as error:  # noqa: BLE001 - old records have no checksum: any value may be there
        raise RecordError(
            f"not a record of a run (a value of another type: {first_line(error)})"
        ) from None


class RecordStore:
    """Records of one study, of any kind: a folder of Parquet files.

    Compacted files are opened when first needed; :meth:`reopen` after they have changed.

    Parameters
    ----------
    folder : Path
        Created when the first record is written; the folder that it is in must exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # When the folder had last changed as its compacted files were opened.
        self._looked_at = 0
        self._reading: CompactedFile | None = None

    def write(self, record: RecordBase) -> Path:
        """Write one record atomically: a reader sees all of it or nothing.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        table = pa.Table.from_pylist([_row_of(record)], schema=schema_of(type(record)))
        path = self.folder / record.file_name
        content = sealed(table)
        with storing(path):
            # Not its parents: a results folder that is gone must not come back with one record.
            self.folder.mkdir(exist_ok=True)
            with replacing(path) as sink:
                sink.write(content)
        return path

    def paths(self) -> list[Path]:
        """The files of single records, sorted by name."""
        return [path for path in self._files() if not is_compacted(path)]

    def compacted_paths(self) -> list[Path]:
        """The compacted files, sorted by name."""
        return [path for path in self._files() if is_compacted(path)]

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    @cached_property
    def _opened(self) -> tuple[list[CompactedFile], dict[Path, RecordError]]:
        """The compacted files that no other replaces, and why others cannot be read."""
        found, damaged = {}, {}
        self._looked_at = self._changed_at()
        for path in self.compacted_paths():
            try:
                with _naming(path):
                    file = CompactedFile(path)
                found[file.seal] = file
            except RecordError as error:
                damaged[path] = error
        return newest_first(found), damaged

    @property
    def compacted_files(self) -> list[CompactedFile]:
        """The compacted files that are read."""
        return self._opened[0]

    @property
    def unreadable(self) -> dict[Path, RecordError]:
        """Compacted files that cannot be read at all, and why."""
        return self._opened[1]

    @cached_property
    def rows(self) -> dict[str, CompactedFile]:
        """Name of a record -> the compacted file that holds it."""
        return {name: file for file in self.compacted_files for name in file.places}

    def reopen(self) -> None:
        """Look at the compacted files anew."""
        for name in ("_opened", "rows"):
            self.__dict__.pop(name, None)

    def _changed_at(self) -> int:
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return 0

    def names(self) -> list[str]:
        """The names of all records, sorted."""
        return sorted({*(path.name for path in self.paths()), *self.rows})

    def place(self, name: str) -> Path:
        """The file that holds a record; the one it would be written to if there is none."""
        path = self.folder / name
        return self.rows[name].path if name in self.rows and not path.is_file() else path

    def read(self, path: Path) -> RecordBase:
        """Read one record from a file of its own: :func:`read_record`."""
        return read_record(path)

    def load(self, name: str) -> RecordBase | None:
        """The record of this name, wherever it lies; None if there is none.

        Raises
        ------
        RecordError
            If it is damaged, or missing while a compacted file cannot be read; the message names
            the file.
        """
        path = self.folder / name
        if path.is_file():
            try:
                return self.read(path)
            except RecordError:
                if path.is_file():
                    raise  # otherwise it was compacted meanwhile
        if name not in self.rows and self._looked_at != self._changed_at():
            self.reopen()
        file = self.rows.get(name)
        if file is None:
            if self.unreadable:
                raise RecordError(str(next(iter(self.unreadable.values()))))
            return None
        # In the order of a study one file after the other is read.
        if self._reading is not None and self._reading is not file:
            self._reading.close()
        self._reading = file
        with _naming(file.path):
            return record_of(file.row(name))

    def scan(self) -> Iterator[RecordBase | RecordError]:
        """Every record of the folder; a damaged one comes as the error that it raised."""
        yield from self.unreadable.values()
        for name in self.names():
            try:
                record = self.load(name)
            except RecordError as error:
                yield error
            else:
                if record is not None:
                    yield record

    def recorded(self, file_name: str, key: str, say: Callable[[str], None]) -> RecordBase | None:
        """The record of the run with this key, if there is a readable one.

        A damaged file is moved aside, and ``say`` is told.

        Raises
        ------
        UserError
            If a later release has written it: repeating the run would take it from that release.
        """
        try:
            record = self.load(file_name)
        except LaterRecordError as error:
            raise UserError(f"{error}; update marginbench or choose another --out") from None
        except RecordError as error:
            path = self.folder / file_name
            moved = f" moved to {self.move_aside(path)}," if path.is_file() else ""
            say(f"{error};{moved} the run is done again")
            return None
        return record if record is not None and record.key == key else None

    def move_aside(self, path: Path) -> str:
        """Rename a damaged file to what readers of the folder pass over; returns the new name."""
        name, number = f"_{path.name}.damaged", 1
        while path.with_name(name).exists():
            number += 1
            name = f"_{path.name}.damaged-{number}"
        with storing(path.with_name(name)):
            os.replace(path, path.with_name(name))
        return name


def _row_of(record: RecordBase) -> dict[str, Any]:
    """The columns of a record by name.

    The values are not copied, which would take longer than writing them.
    """
    row = {name: _encodable(value) for name, value in vars(record).items()}
    return row | {"kind": record.kind, "trace": [vars(state) for state in record.trace]}


def _encodable(value: Any) -> Any:
    """Of a text what UTF-8 can hold: a solver's error message may hold anything."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
