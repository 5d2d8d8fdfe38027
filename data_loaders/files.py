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

from data_loaders.errors import DataError, first_line

MIRROR_VARIABLE = "MARGINBENCH_MIRROR"
#: Seconds that a server may keep silent, on connecting and between two pieces of the answer.
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class RemoteFile:
    """One file of a dataset as its publisher offers it.

    Parameters
    ----------
    name : str
        Its name in a mirror, below the dataset's name.
    urls : tuple of str
        Public addresses, tried in this order.
    sha256 : str, optional
        Of the file as it is downloaded. Where it is not given, the fingerprint of the parsed
        content alone vouches for the file.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class LocalFile:
    """A file at hand: where to read it, and what to call it in messages.

    Parameters
    ----------
    path : Path
    origin : str
        The path in a mirror folder, or the address that it was downloaded from.
    """

    path: Path
    origin: str


def gather(dataset: str, files: tuple[RemoteFile, ...], scratch: Path) -> dict[str, LocalFile]:
    """Find or download every file of a dataset.

    Parameters
    ----------
    dataset : str
        The dataset's name: the folder of its files in a mirror.
    files : tuple of RemoteFile
    scratch : Path
        Existing folder for downloads. Files of a mirror folder are used where they stand.

    Returns
    -------
    dict of str to LocalFile
        By file name.

    Raises
    ------
    DataError
        If a file is in none of the places, or its SHA-256 is wrong.
    """
    return {file.name: _locate(dataset, file, scratch) for file in files}


def _locate(dataset: str, file: RemoteFile, scratch: Path) -> LocalFile:
    tried = []
    for place in _places(dataset, file):
        if isinstance(place, Path):
            if place.is_file():
                _check_sha256(place, file.sha256)
                return LocalFile(place, str(place))
            tried.append(f"{place} (no such file)")
            continue
        try:
            return LocalFile(_download(place, file, scratch), place)
        # requests raises OSErrors; pooch raises ValueError for a wrong hash or protocol.
        except (OSError, ValueError) as error:
            tried.append(f"{place} ({_reason(error)})")
    raise DataError(
        f"{dataset}: cannot fetch '{file.name}'; tried {', '.join(tried)}; put the file at "
        f"FOLDER/{dataset}/{file.name} and set {MIRROR_VARIABLE}=FOLDER (a folder or an http "
        "address)"
    )


def _places(dataset: str, file: RemoteFile) -> Iterator[Path | str]:
    mirror = os.environ.get(MIRROR_VARIABLE, "").strip()
    if mirror.startswith(("http://", "https://")):
        yield f"{mirror.rstrip('/')}/{quote(dataset)}/{quote(file.name)}"
    elif mirror:
        yield Path(mirror).expanduser() / dataset / file.name
    yield from file.urls


def _download(url: str, file: RemoteFile, scratch: Path) -> Path:
    with _quiet_pooch():
        return Path(
            pooch.retrieve(
                url,
                known_hash=file.sha256 and f"sha256:{file.sha256}",
                fname=file.name,
                path=scratch,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT_S, progressbar=False),
            )
        )


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
    """Few words for what requests tells in many."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"HTTP status {status}"
    if "hash" in str(error):
        return "SHA-256 differs from the known one"
    if type(error).__name__ in {"ConnectTimeout", "ReadTimeout"}:
        return f"no answer in {TIMEOUT_S:g} s"
    if type(error).__module__.startswith("requests"):
        return {"ConnectionError": "no connection"}.get(
            type(error).__name__, "download failed: " + type(error).__name__
        )
    return first_line(error)
