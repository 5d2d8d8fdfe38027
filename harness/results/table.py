"""``runs.parquet``: the current records of a results folder as one table, made from its journal."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...data_loaders.atomic import replacing
from ..errors import RecordError
from ..storage import storing
from .journal import FOLDER, Journal
from .records import RecordBase, check_columns, schema_of, table_of

FILE_NAME = "runs.parquet"
_KEY = b"marginbench.journal"
# Records that become a part of the table at a time.
_ROWS = 500


def runs_table(
    results: Path, record_type: type[RecordBase], *, write: bool = False
) -> tuple[pa.Table, dict[str, str]]:
    """The current records, and why others cannot be read: key -> a line.

    They come from ``runs.parquet`` if the journal is still the one of which it was made.

    Parameters
    ----------
    results : Path
        The results folder.
    record_type : type of RecordBase
        That of its kind of study.
    write : bool
        Whether ``runs.parquet`` is written if it is not up to date.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    stamp = _stamp(results)
    found = _stored(results / FILE_NAME, record_type, stamp)
    if found is None:
        found = _made(results, record_type)
        if write:
            table, damaged = found
            described = json.dumps({"journal": stamp, "damaged": damaged})
            table = table.replace_schema_metadata({_KEY: described.encode()})
            with storing(results / FILE_NAME), replacing(results / FILE_NAME) as sink:
                pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return found


def _stamp(results: Path) -> list[list[Any]]:
    """The files of the journal with their sizes and times."""
    files = [(path.name, path.stat()) for path in sorted((results / FOLDER).glob("*.jsonl"))]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in files]


def _stored(
    path: Path, record_type: type[RecordBase], stamp: list[list[Any]]
) -> tuple[pa.Table, dict[str, str]] | None:
    # Whatever is wrong with it, the journal tells the same.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        described = json.loads(file.schema_arrow.metadata[_KEY])
        if described["journal"] == stamp:
            table = file.read().replace_schema_metadata(None)
            if table.schema.equals(schema_of(record_type)):
                return table, described["damaged"]
    return None


def _made(results: Path, record_type: type[RecordBase]) -> tuple[pa.Table, dict[str, str]]:
    journal = Journal(results)
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
    """A line that names a file from the results folder on: pages say nothing of where that is."""
    return str(words).removeprefix(f"{results}{os.sep}")
