"""What a mirror and its store had in common when they were last compared, file by file."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from ....data_loaders.atomic import replacing

Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Common:
    """A file that is the same here and there.

    Attributes
    ----------
    tag : str
        That of the object.
    size, changed_ns : int
        Those of the file; both 0 if the file here is to go to the store.
    """

    tag: str
    size: int = 0
    changed_ns: int = 0

    @property
    def stamp(self) -> Stamp:
        """Another one after each change of the file."""
        return self.size, self.changed_ns


def stamp_of(path: Path) -> Stamp | None:
    """That of a file as it is now; None if there is none."""
    try:
        at = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return at.st_size, at.st_mtime_ns


class Index:
    """The common files of a mirror, by name; kept on disk, line by line as they change.

    A line that is lost, because the process was killed, costs a comparison.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Common] = dict(_read(path))
        self._lock = threading.Lock()
        with replacing(path) as sink:
            for name, common in self._known.items():
                sink.write(_line(name, common))

    def __getitem__(self, name: str) -> Common | None:
        return self._known.get(name)

    def names(self) -> list[str]:
        """The names of all common files."""
        with self._lock:
            return list(self._known)

    def put(self, name: str, common: Common | None) -> None:
        """What is common of a file now; None if it is gone on both sides."""
        with self._lock:
            if common is None:
                self._known.pop(name, None)
            else:
                self._known[name] = common
            # Opened each time: whoever has it open would hinder a removal of the folder.
            with self._path.open("ab") as sink:
                sink.write(_line(name, common))


def _line(name: str, common: Common | None) -> bytes:
    values = [] if common is None else astuple(common)
    return json.dumps([name, *values]).encode() + b"\n"


def _read(path: Path) -> Iterator[tuple[str, Common]]:
    known: dict[str, Common] = {}
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_bytes().split(b"\n"):
            with contextlib.suppress(ValueError, TypeError):
                name, *values = json.loads(line)
                if values:
                    known[name] = Common(*values)
                else:
                    known.pop(name, None)
    yield from known.items()
