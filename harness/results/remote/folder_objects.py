"""A folder, perhaps on a file system that several machines share, as a store of objects."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from ....data_loaders.atomic import UNFINISHED, replacing
from .objects import Entry, MissingObject, StoreError

_T = TypeVar("_T")
_ATTEMPTS = 5


class FolderObjects:
    """The files below a folder; see :class:`Objects`.

    Parameters
    ----------
    folder : str
    place : str
        How messages name it.
    """

    def __init__(self, folder: str, place: str) -> None:
        self.folder, self.place = Path(folder), place

    def list(self, prefix: str) -> dict[str, Entry]:
        """Name of each file -> its entry; hidden files are left out."""
        with self._told():
            return dict(self._below(prefix.rstrip("/")))

    def _below(self, name: str) -> Iterator[tuple[str, Entry]]:
        try:
            entries = list(os.scandir(self.folder / name))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            below = f"{name}/{entry.name}" if name else entry.name
            if entry.is_dir():
                yield from self._below(below)
            else:
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    yield below, _entry(entry.stat())

    def get(self, name: str) -> tuple[bytes, str]:
        """The content and the tag of a file."""
        with self._told():
            try:
                with (self.folder / name).open("rb") as source:
                    return source.read(), _entry(os.fstat(source.fileno())).tag
            except FileNotFoundError:
                raise MissingObject(name) from None

    def entry(self, name: str) -> Entry | None:
        """The entry of a file; None if there is none."""
        with self._told():
            try:
                return _entry((self.folder / name).stat())
            except FileNotFoundError:
                return None

    def put(self, name: str, content: bytes) -> str:
        """Replace a file atomically; its tag."""

        def replaced(path: Path) -> str:
            with replacing(path, _temporary(path)) as sink:
                sink.write(content)
                sink.flush()
                # Renaming changes none of it.
                return _entry(os.fstat(sink.fileno())).tag

        return self._in_folder(name, replaced)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none of this name.

        A link to a whole file: atomic on network file systems, and never seen half written.
        """

        def created(path: Path) -> bool:
            temporary = _temporary(path)
            try:
                temporary.write_bytes(content)
                os.link(temporary, path)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
            return True

        return self._in_folder(name, created)

    def delete(self, names: Iterable[str]) -> None:
        """Remove files, and the folders that are empty then: a store of objects has none."""
        with self._told():
            for name in names:
                path = self.folder / name
                path.unlink(missing_ok=True)
                if path.parent != self.folder:
                    with contextlib.suppress(OSError):
                        path.parent.rmdir()

    def _in_folder(self, name: str, write: Callable[[Path], _T]) -> _T:
        """Write a file; another command may remove its folder while it is empty."""
        path = self.folder / name
        with self._told():
            for _ in range(_ATTEMPTS):
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    return write(path)
                except FileNotFoundError:
                    continue
            raise FileNotFoundError(f"{path.parent} is removed again and again")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an error of the system into one line."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{self.place}: cannot be read or written ({reason})") from None


def _temporary(path: Path) -> Path:
    """The unfinished file; process numbers are not unique among machines."""
    return path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}.part")


def _entry(at: os.stat_result) -> Entry:
    return Entry(f"{at.st_ino:x}-{at.st_size:x}-{at.st_mtime_ns:x}", at.st_mtime)
