"""Compacted files of a folder of records: rewritten, taken apart, put right after an interruption.

Each step leaves every record readable, and once: a new file is whole before the ones that it takes
the place of are removed, and it names them, so that readers pass over them until then. The caller
holds the lock of the results folder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ....data_loaders.atomic import replacing
from ...errors import RecordError
from ...storage import storing
from ...words import plural
from ..sealing import content_digest, content_of, sealed, unsealed_table
from ..store import RecordStore, record_of
from .compacted import CompactedFile, Gathered, compacted

Say = Callable[[str], None]


def write_compacted(
    folder: Path, records: Sequence[Gathered], replaces: Sequence[CompactedFile] = ()
) -> Path:
    """Write a compacted file; the files that it takes the place of are not removed yet."""
    name, content = compacted(records, [file.seal for file in replaces])
    path = folder / name
    with storing(path), replacing(path) as sink:
        sink.write(content)
    return path


def remove(paths: Iterable[Path]) -> None:
    """Remove files, those that are gone already included."""
    for path in paths:
        with storing(path):
            path.unlink(missing_ok=True)


def content_by_name(store: RecordStore, name: str) -> bytes:
    """The bytes of a record as a file of its own, with the values as they are stored.

    Raises
    ------
    RecordError
        If it is damaged.
    """
    path = store.folder / name
    if path.is_file():
        content = content_of(path)
        record_of(unsealed_table(content)[1])
        return content
    (record,) = store.rows[name].gathered([name])
    return sealed(record.table)


def take_out(store: RecordStore, names: Iterable[str]) -> None:
    """Give records of compacted files a file of their own again.

    A record that has one already loses its row: the file was written later.

    Parameters
    ----------
    store : RecordStore
    names : iterable of str
        Others than those of rows are passed over.
    """
    wanted: dict[str, list[str]] = defaultdict(list)
    files = {file.seal: file for file in store.compacted_files}
    for name in dict.fromkeys(names):
        if name in store.rows:
            wanted[store.rows[name].seal].append(name)
    for seal, chosen in wanted.items():
        file = files[seal]
        for record in file.gathered(chosen):
            path = store.folder / record.name
            if not path.is_file():
                content = sealed(record.table)
                with storing(path), replacing(path) as sink:
                    sink.write(content)
        _rewrite(store, file, set(file.places) - set(chosen))
        remove([file.path])
    if wanted:
        store.reopen()


def separate(store: RecordStore, pending: Iterable[str]) -> None:
    """Take the rows out that are about to be replaced, or have been: those of runs to be repeated.

    Parameters
    ----------
    store : RecordStore
    pending : iterable of str
        Names of the records of runs that are about to start.
    """
    if store.rows:
        written = (name for name in store.rows if (store.folder / name).is_file())
        take_out(store, [*pending, *written])


def put_right(store: RecordStore, say: Say) -> None:
    """Finish what an interrupted compaction has left, and set damaged rows aside.

    Parameters
    ----------
    store : RecordStore
    say : callable
        Takes one line for the user.
    """
    if not store.compacted_paths():
        return
    store.reopen()
    for path, error in store.unreadable.items():
        say(f"{error}; moved to {store.move_aside(path)}, the runs of its records are done again")
    for file in store.compacted_files:
        if file.damaged:
            _set_aside(store, file, say)
    kept = {file.path for file in store.compacted_files}
    remove(path for path in store.compacted_paths() if path not in kept)
    store.reopen()
    outdated = []
    for path in store.paths():
        if path.name in store.rows and not _is_leftover(store, path, say):
            outdated.append(path.name)
    take_out(store, outdated)


def _set_aside(store: RecordStore, file: CompactedFile, say: Say) -> None:
    """Keep the records of the groups that are not damaged, and move the file out of the way."""
    lost = [name for name in file.places if file.is_damaged(name)]
    _rewrite(store, file, set(file.places) - set(lost))
    say(
        f"{file.path}: damaged ({plural(len(lost), 'record')} of {len(file.places)} in "
        f"{plural(len(file.damaged), 'row group')}); moved to {store.move_aside(file.path)}, "
        "their runs are done again"
    )
    store.reopen()


def _rewrite(store: RecordStore, file: CompactedFile, names: set[str]) -> None:
    """Write a file with some records of another, which it takes the place of."""
    if names:
        write_compacted(store.folder, file.gathered(names), [file])


def _is_leftover(store: RecordStore, path: Path, say: Say) -> bool:
    """Whether the file of a record whose row is compacted may go; then it is gone."""
    try:
        _, row, _ = unsealed_table(content_of(path))
    except RecordError as error:
        say(f"{path}: {error}; moved to {store.move_aside(path)}, its compacted row is used")
        return True
    if content_digest(row) != store.rows[path.name].digest(path.name):
        return False
    remove([path])
    return True
