"""The store that keeps records: a folder with one sealed Parquet file for each run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from marginbench.data_loaders.atomic import replacing
from marginbench.data_loaders.errors import first_line
from marginbench.harness.errors import RecordError
from marginbench.harness.records import RecordBase, schema_of
from marginbench.harness.sealing import sealed, unsealed
from marginbench.harness.storage import storing


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
    try:
        return _record_of(unsealed(path))
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None


def _record_of(row: dict[str, Any]) -> RecordBase:
    from marginbench.harness.kinds import record_type

    try:
        return record_type(row).from_row(row)
    except RecordError:
        raise
    except Exception as error:  # noqa: BLE001 - old records have no checksum: any value may be there
        raise RecordError(
            f"not a record of a run (a value of another type: {first_line(error)})"
        ) from None


class RecordStore:
    """Records of one study, of any kind: a folder with one Parquet file per run.

    Parameters
    ----------
    folder : Path
        Created when the first record is written; the folder that it is in must exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        """The record files, sorted by name."""
        return sorted(self.folder.glob("*.parquet"))

    def read(self, path: Path) -> RecordBase:
        """Read one record: :func:`read_record`."""
        return read_record(path)

    def scan(self) -> Iterator[RecordBase | RecordError]:
        """Every record of the folder; a damaged file comes as the error that it raised."""
        for path in self.paths():
            try:
                yield self.read(path)
            except RecordError as error:
                yield error

    def recorded(self, file_name: str, key: str, say: Callable[[str], None]) -> RecordBase | None:
        """The record of the run with this key, if there is a readable one.

        A damaged file is moved aside, and ``say`` is told.
        """
        path = self.folder / file_name
        if not path.is_file():
            return None
        try:
            record = self.read(path)
        except RecordError as error:
            say(f"{error}; moved to {self.move_aside(path)}, the run is done again")
            return None
        return record if record.key == key else None

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
