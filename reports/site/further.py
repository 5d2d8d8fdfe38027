"""Folders of static pages that others made, as parts of a site."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import ReportError
from ..naming import slug

#: Folders of the site that are its own.
_OWN = frozenset({"studies", "solvers", "timings"})
_INDEX = "index.html"


def folders_of(pages: Iterable[str]) -> dict[str, str]:
    """The folder of the site for further pages of each title.

    Raises
    ------
    ReportError
        If two titles ask for the same folder, or for one of the site's own.
    """
    found: dict[str, str] = {}
    for title in pages:
        folder = slug(title, "pages")
        if folder in _OWN or folder in found.values():
            raise ReportError(
                f"further pages {title!r}: their folder {folder}/ is taken; choose another title"
            )
        found[title] = folder
    return found


def check_pages(pages: Mapping[str, Path], site: Path) -> None:
    """Look at folders of further pages before anything is written.

    Raises
    ------
    ReportError
        If one has no ``index.html``; is, holds or lies in the site; holds a link or something else
        that is no file, a name that no address can have, or a folder that cannot be read.
    """
    for folder in pages.values():
        if not (folder / _INDEX).is_file():
            raise ReportError(f"{folder}: has no {_INDEX}; give a folder of static pages")
        here, there = folder.resolve(), site.resolve()
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise ReportError(f"{folder}: and the site {site} must be apart; choose another folder")
        for path in _paths(folder):
            _check_path(path)


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a folder of static pages, by their path in it; hidden ones are left out.

    Raises
    ------
    ReportError
        If one cannot be read.
    """
    for path in _paths(folder):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), _read(path)


def _paths(folder: Path) -> Iterator[Path]:
    for base, subfolders, names in os.walk(folder, onerror=_raise):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(base, name) for name in sorted(names) if not name.startswith("."))
        yield from (Path(base, name) for name in subfolders)


def _check_path(path: Path) -> None:
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        raise ReportError(f"{path}: is a link or no file; put a copy in its place")
    if not path.name.isprintable() or "\\" in path.name:
        raise ReportError(f"{str(path)!r}: no address can have this name; rename it")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(error) from None


def _raise(error: OSError) -> None:
    raise _unreadable(error) from None


def _unreadable(error: OSError) -> ReportError:
    return ReportError(f"{error.filename}: cannot be read ({error.strerror}); allow reading it")
