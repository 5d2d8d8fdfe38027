"""Records of earlier versions: out of the folder that users read, and back if they are valid again.

``runs/`` holds at most one record of each task, solver and seed of a study, so that statistics over
the folder never mix versions. A record whose run has a new record under another key is moved to
``superseded/`` beside it. Nothing is deleted. The caller holds the lock of the results folder.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from ..errors import LaterRecordError, RecordError
from ..planning.plan import Run
from ..storage import storing
from ..words import plural
from .folders.gathering import take_out
from .records import RecordBase
from .store import RecordStore

FOLDER = "superseded"
# How file names of records end: with the beginning of the key.
_KEY = re.compile(r"-[0-9a-f]{16}\.parquet$")


def stem_of(file_name: str) -> str:
    """The part of a record's file name that says what was run; several runs may share it."""
    return _KEY.sub("", file_name)


def files_by_stem(store: RecordStore) -> dict[str, set[str]]:
    """The names of the records by their stems."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in store.names():
        found[stem_of(name)].add(name)
    return found


class Superseded:
    """The records of earlier versions of one results folder.

    Parameters
    ----------
    store : RecordStore
        The records that users read.
    say : callable
        Takes one line for the user.
    """

    def __init__(self, store: RecordStore, say: Callable[[str], None]) -> None:
        self.store, self.say = store, say
        self.folder = store.folder.parent / FOLDER
        self.n_moved = self.n_restored = 0

    @cached_property
    def _alike(self) -> dict[str, set[str]]:
        """The files by their stems; listed when first needed, when the folder is locked."""
        return files_by_stem(self.store)

    def restore(self, run: Run) -> None:
        """Take the record of a run back, if there is one that is not damaged."""
        aside, path = self.folder / run.file_name, self.store.folder / run.file_name
        if path.exists() or run.file_name in self.store.rows or not aside.is_file():
            return
        try:
            if self.store.read(aside).key != run.key:
                return
        except RecordError as error:
            self.say(f"{error}; it is not used again")
            return
        with storing(path):
            os.replace(aside, path)
        self.n_restored += 1

    def take_apart(self, runs: Iterable[Run]) -> None:
        """Give compacted records that planned runs replace files of their own."""
        planned = {run.file_name for run in runs}
        stems = {stem_of(name) for name in planned}
        take_out(
            self.store,
            [name for name in self.store.rows if name not in planned and stem_of(name) in stems],
        )

    def replaced_by(self, record: RecordBase) -> None:
        """Move the records away that a record replaces: of the same run, under other keys."""
        alike = self._alike[stem_of(record.file_name)]
        for name in sorted(alike - {record.file_name}):
            path = self.store.folder / name
            try:
                old = self.store.read(path)
            except LaterRecordError:
                # Of other code by its key; that release takes it back from there.
                self._move(path)
                alike.discard(name)
                continue
            except RecordError as error:
                if path.is_file():
                    self.say(f"{error}; moved to {self.store.move_aside(path)}")
                alike.discard(name)
                continue
            if _what_was_run(old) == _what_was_run(record):
                self._move(path)
                alike.discard(name)
        alike.add(record.file_name)

    def _move(self, path: Path) -> None:
        with storing(self.folder):
            self.folder.mkdir(exist_ok=True)
        target, number = self.folder / path.name, 1
        while target.exists():
            number += 1
            target = self.folder / f"{path.stem}-{number}.parquet"
        with storing(target):
            os.replace(path, target)
        self.n_moved += 1

    def tell(self) -> None:
        """Say what was moved since it was last said."""
        if self.n_restored:
            self.say(
                f"{plural(self.n_restored, 'record')} of this version taken back from {self.folder}"
            )
        if self.n_moved:
            self.say(f"{plural(self.n_moved, 'record')} of other versions moved to {self.folder}")
        self.n_moved = self.n_restored = 0


def _what_was_run(record: RecordBase) -> tuple[str, str, str, int]:
    return record.study, record.task, record.solver, record.seed
