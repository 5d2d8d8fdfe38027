"""Where the files of a dataset come from: a mirror first, then the public addresses."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pooch

from . import limits
from .atomic import DISK_ERRORS
from .errors import CacheError, DataError, first_line, without_credentials

MIRROR_VARIABLE = "MARGINBENCH_MIRROR"


@dataclass(frozen=True)
class RemoteFile:
    """One file of a dataset as its publisher offers it.

    Parameters
    ----------
    name : str
        Its name in the dataset's folder of a mirror.
    urls : tuple of str
        Public addresses, tried in this order; empty if there is none.
    sha256 : str, optional
        Of the file as it is downloaded. Where it is not given, the fingerprint of the parsed
        content alone vouches for the file.
    archive : str, optional
        Name of a zip archive of a mirror that may hold the file, under the same name.
    installed : str, optional
        Where a package of the operating system puts the file.
    max_bytes : int
        The most bytes of the file, downloaded (it or `archive`) or unpacked: a few times what
        its content takes.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    archive: str | None = None
    installed: str | None = None
    max_bytes: int = limits.DEFAULT_MAX_BYTES


@dataclass(frozen=True)
class LocalFile:
    """A file at hand: where to read it, and what to call it in messages.

    Parameters
    ----------
    path : Path
    origin : str
        The path in a mirror folder, or the address that it was downloaded from.
    member : str, optional
        Name of the file in the zip archive `path`.
    max_bytes : int
        The most bytes that it may unpack to.
    """

    path: Path
    origin: str
    member: str | None = None
    max_bytes: int = limits.DEFAULT_MAX_BYTES


@dataclass(frozen=True)
class _Place:
    """Where a file may be: a path or an address, or that of a zip archive and a name in it."""

    at: Path | str
    member: str | None = None

    def __str__(self) -> str:
        at = without_credentials(self.at) if isinstance(self.at, str) else str(self.at)
        return at if self.member is None else f"{at}:{self.member}"


def gather(
    dataset: str, files: tuple[RemoteFile, ...], downloads: Path, folder: str | None = None
) -> dict[str, LocalFile]:
    """Find or download every file of a dataset.

    Parameters
    ----------
    dataset : str
        The dataset's name.
    files : tuple of RemoteFile
    downloads : Path
        Existing folder for downloads, which no other process uses; what stands there of an
        interrupted call is used. Files of a mirror folder are used where they stand.
    folder : str, optional
        The folder of the files in a mirror; by default the dataset's name.

    Returns
    -------
    dict of str to LocalFile
        By file name.

    Raises
    ------
    DataError
        If a file is in none of the places, or its SHA-256 is wrong.
    CacheError
        If a download cannot be written.
    """
    return {file.name: _locate(dataset, file, downloads, folder or dataset) for file in files}


def _locate(dataset: str, file: RemoteFile, downloads: Path, folder: str) -> LocalFile:
    tried = []
    for place in _places(file, folder):
        if isinstance(place.at, Path):
            if place.at.is_file():
                if place.member is None:
                    _check_sha256(place.at, file.sha256)
                return LocalFile(place.at, str(place), place.member, file.max_bytes)
            tried.append(f"{place} (no such file)")
            continue
        try:
            path = _download(place, file, downloads)
            return LocalFile(path, str(place), place.member, file.max_bytes)
        # Downloads raise OSErrors; pooch raises ValueError for a wrong hash or protocol.
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                raise CacheError(
                    f"{dataset}: cannot write '{file.name}' to the cache folder "
                    f"{downloads.parent} ({error.strerror}); set MARGINBENCH_CACHE to a folder "
                    "with room that can be written"
                ) from None
            tried.append(f"{place} ({_reason(error)})")
    where = "; ".join(
        (["it has no public address"] if not file.urls else [])
        + ([f"tried {', '.join(tried)}"] if tried else [])
    )
    raise DataError(
        f"{dataset}: cannot fetch '{file.name}'; {where}; put the file at "
        f"FOLDER/{folder}/{file.name} and set {MIRROR_VARIABLE}=FOLDER (a folder or an http "
        "address)"
    )


def _places(file: RemoteFile, folder: str) -> Iterator[_Place]:
    mirror = os.environ.get(MIRROR_VARIABLE, "").strip()
    if mirror:
        yield _Place(_in_mirror(mirror, folder, file.name))
        if file.archive is not None:
            yield _Place(_in_mirror(mirror, folder, file.archive), member=file.name)
    if file.installed is not None:
        yield _Place(Path(file.installed))
    for url in file.urls:
        yield _Place(url)


def _in_mirror(mirror: str, folder: str, name: str) -> Path | str:
    if "://" in mirror:
        address, mark, query = mirror.partition("?")
        return f"{address.rstrip('/')}/{quote(folder)}/{quote(name)}{mark}{query}"
    return Path(mirror).expanduser() / folder / name


def _download(place: _Place, file: RemoteFile, downloads: Path) -> Path:
    # Imported here: requests would slow down every start of the command line.
    from .downloads import Downloader

    # Two files of one archive: pooch downloads it once.
    archive = file.archive if place.member is not None else None
    known = None if archive is not None or file.sha256 is None else f"sha256:{file.sha256}"
    name = archive or file.name
    url = str(place.at)
    # By address: what one of them has sent must not be taken for another's.
    folder = downloads / hashlib.sha256(url.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    downloader = Downloader(folder / f"{name}.part", limits.max_bytes(file.max_bytes))
    try:
        with _quiet_pooch():
            return Path(pooch.retrieve(url, known, name, folder, downloader=downloader))
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            folder.rmdir()


@contextlib.contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Pooch reports every download on the user's terminal unless its logger is told not to."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _check_sha256(path: Path, expected: str | None) -> None:
    if expected is None:
        return
    with path.open("rb") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
    if got != expected:
        raise DataError(f"{path}: SHA-256 is {got}, expected {expected}; replace the file")


def _reason(error: OSError | ValueError) -> str:
    """Few words for what pooch tells in many."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "SHA-256 differs from the known one"
    return first_line(error)
