"""A results folder of this machine that is brought up to date from a store, and pushed to it.

For each file three states are compared: what it is here, what it is in the store, and what it was
when both were the same (:class:`Index`). What has changed on one side is copied to the other, and
what has gone on one side is removed on the other. Where both have changed, of two records the later
one stays; of all else that of the store, since the next command makes it anew.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ....data_loaders.atomic import UNFINISHED
from ...errors import RecordError
from ...storage import storing
from ..description import FILE_NAME
from ..folders.compacted import CompactedFile, is_compacted
from ..sealing import seal_of
from ..store import read_record
from .index import Common, Index, stamp_of
from .objects import Entry, MissingObject, Objects

RUNS = "runs"
#: The page of a results folder.
PAGE = "report.html"
_FOLDERS = (RUNS, "superseded", "sources")
_FILES = (FILE_NAME, PAGE)
#: Requests at the same time.
THREADS = 16


class Mirror:
    """The mirror of a store. One process at a time may use it.

    Parameters
    ----------
    objects : Objects
    folder : Path
        The results folder.
    index : Path
        The file that tells what is common.
    """

    def __init__(self, objects: Objects, folder: Path, index: Path) -> None:
        self.objects, self.folder = objects, folder
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._index = Index(index)

    def pull(self) -> None:
        """Bring the folder up to date; only what has changed is fetched."""
        # Before the store is asked: what is pushed meanwhile has not gone.
        known = self._index.names()
        listing = self._listed()
        if any(name not in listing for name in known):
            # A list of many parts is not of one moment: what was replaced meanwhile may be in none.
            listing = self._listed()
        changed = [name for name, entry in listing.items() if self._is_new(name, entry)]
        # What takes the place of others comes before they go.
        self._at_once(self.fetch, changed)
        for name in known:
            if name not in listing:
                self._forget(name)

    def _listed(self) -> dict[str, Entry]:
        return {name: e for name, e in self.objects.list("").items() if _is_mirrored(name)}

    def _is_new(self, name: str, entry: Entry) -> bool:
        common = self._index[name]
        return common is None or common.tag != entry.tag

    def fetch(self, name: str) -> None:
        """Take over a file from the store, unless there is a later record of this name here."""
        path = self.folder / name
        common, stamp = self._index[name], stamp_of(path)
        try:
            content, tag = self.objects.get(name)
        except MissingObject:
            return  # it was replaced meanwhile; the next pull tells by what
        is_ours = stamp is not None and (common is None or common.stamp != stamp)
        if is_ours and path.read_bytes() != content and self._is_later(path, content):
            # Pushed by the next push.
            self._index.put(name, Common(tag))
            return
        with storing(path):
            path.parent.mkdir(exist_ok=True)
            self._index.put(name, Common(tag, *_write(path, content)))

    def _is_later(self, path: Path, content: bytes) -> bool:
        """Whether a record here is later than the one that the store has."""
        if path.parent.name != RUNS or is_compacted(path):
            return False
        try:
            ours = read_record(path).started_at
        except RecordError:
            return False
        temporary = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}.part")
        try:
            temporary.write_bytes(content)
            return ours > read_record(temporary).started_at
        except RecordError:
            return True
        finally:
            temporary.unlink(missing_ok=True)

    def _forget(self, name: str) -> None:
        """Remove a file that the store no longer has, unless it has changed here."""
        path, common = self.folder / name, self._index[name]
        if common is not None and stamp_of(path) == common.stamp:
            with storing(path):
                path.unlink(missing_ok=True)
        self._index.put(name, None)

    def push(self) -> None:
        """Push all that has changed here; what others take the place of is removed last."""
        here = set(self._files())
        self._at_once(self.push_file, sorted(name for name in here if self._is_changed(name)))
        gone = [name for name in self._index.names() if name not in here]
        self.objects.delete(gone)
        for name in gone:
            self._index.put(name, None)

    def _is_changed(self, name: str) -> bool:
        common = self._index[name]
        return common is None or common.stamp != stamp_of(self.folder / name)

    @property
    def is_ahead(self) -> bool:
        """Whether something here has not been pushed."""
        here = set(self._files())
        return any(map(self._is_changed, here)) or any(n not in here for n in self._index.names())

    def push_changed(self, name: str) -> None:
        """Push one file, if it has changed here."""
        if self._is_changed(name):
            self.push_file(name)

    def push_file(self, name: str) -> None:
        """Push one file, if it is still there."""
        path = self.folder / name
        stamp = stamp_of(path)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        tag = self.objects.put(name, content)
        # As it was before it was read: what has changed since is pushed again.
        self._index.put(name, Common(tag, *(stamp or (0, 0))))

    def refresh(self, name: str) -> None:
        """Fetch a file if the store has another one."""
        entry = self.objects.entry(name)
        if entry is not None and self._is_new(name, entry):
            self.fetch(name)

    def tag(self, name: str) -> str | None:
        """That of a file when it was last the same here and there; None if it never was."""
        common = self._index[name]
        return None if common is None else common.tag

    def verify(self) -> None:
        """Fetch again what was damaged on the way or on the disk here; the store may be whole."""
        damaged = [name for name in self._files(RUNS) if not _is_whole(self.folder / name)]
        self._at_once(self.fetch, [name for name in damaged if not self._is_changed(name)])

    def _files(self, *folders: str) -> Iterator[str]:
        """The names of the files here that a store has as well."""
        for name in () if folders else _FILES:
            if (self.folder / name).is_file():
                yield name
        for folder in folders or _FOLDERS:
            with contextlib.suppress(FileNotFoundError), os.scandir(self.folder / folder) as found:
                for entry in found:
                    name = f"{folder}/{entry.name}"
                    if _is_mirrored(name) and entry.is_file():
                        yield name

    def _at_once(self, what: Callable[[str], None], names: Iterable[str]) -> None:
        """Do something with many files, several at a time; the first error is raised."""
        names = list(names)
        if len(names) < 2:
            for name in names:
                what(name)
            return
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for _ in pool.map(what, names):
                    pass
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def _is_mirrored(name: str) -> bool:
    """Whether a name is one of a results folder; others may stand beside them in a store."""
    folder, _, file = name.rpartition("/")
    if not folder:
        return name in _FILES
    return folder in _FOLDERS and not file.startswith(".") and "\\" not in file


def _is_whole(path: Path) -> bool:
    try:
        if is_compacted(path):
            return not CompactedFile(path).damaged
        if path.suffix == ".parquet":
            seal_of(path)
    except RecordError:
        return False
    return True


def _write(path: Path, content: bytes) -> tuple[int, int]:
    """Write a file of the mirror; its stamp. It is not waited for the disk: the store has it."""
    temporary = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}.part")
    temporary.write_bytes(content)
    at = temporary.stat()
    os.replace(temporary, path)
    return at.st_size, at.st_mtime_ns
