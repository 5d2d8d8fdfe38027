"""The files of a dataset: where they come from, how much they may hold, and how they are opened.

A mirror comes first, then the public addresses. Files are opened as streams of bytes, whatever they
are packed in. What they unpack to is bounded by what their dataset needs: a small
archive that unpacks to terabytes cannot fill the memory.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from .atomic import DISK_ERRORS, replacing
from .errors import CacheError, DataError, first_line, without_credentials

MIRROR_VARIABLE = "MARGINBENCH_MIRROR"
BYTES_VARIABLE = "MARGINBENCH_MAX_FILE_BYTES"

MIB = 1 << 20
#: Of a file whose source states no limit.
DEFAULT_MAX_BYTES = 8192 * MIB
#: Seconds that a server may keep silent.
TIMEOUT_S = 30.0
#: Bytes that the buffer of an unpacked file takes in at a time.
_BUFFER_BYTES = 1 << 16
#: How compressed files begin, and what opens them.
_PACKED: dict[bytes, Any] = {b"BZh": bz2, b"\x1f\x8b": gzip, b"\xfd7zXZ\x00": lzma}
#: What the standard library raises when it meets bytes that are not what was packed.
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


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
        The most bytes that the file may unpack to: a few times what its content takes.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    archive: str | None = None
    installed: str | None = None
    max_bytes: int = DEFAULT_MAX_BYTES


@dataclass(frozen=True)
class LocalFile:
    """A file at hand: where to read it, and what to call it in messages."""

    path: Path
    origin: str  # the path in a mirror folder, or the address that it was downloaded from
    member: str | None = None  # its name in the zip archive ``path``
    max_bytes: int = DEFAULT_MAX_BYTES  # the most that it may unpack to


def gather(
    dataset: str, files: tuple[RemoteFile, ...], downloads: Path, folder: str | None = None
) -> dict[str, LocalFile]:
    """Find or download every file of a dataset; by name.

    Files of a mirror folder are used where they stand. `downloads` is a folder which no other
    process uses; what stands there of an interrupted call is used. `folder` is that of the files in
    a mirror. Raises `DataError` if a file is in none of the places, or its SHA-256 is wrong, and
    `CacheError` if a download cannot be written.
    """
    return {file.name: _locate(dataset, file, downloads, folder or dataset) for file in files}


def _locate(dataset: str, file: RemoteFile, downloads: Path, folder: str) -> LocalFile:
    tried = []
    for at, member in _locations(file, folder):
        shown = without_credentials(at) if isinstance(at, str) else str(at)
        origin = shown if member is None else f"{shown}:{member}"
        try:
            if isinstance(at, str):
                at = _download(at, member, file, downloads)
            elif not at.is_file():
                tried.append(f"{origin} (no such file)")
                continue
            elif member is None and not _is_known(at, file.sha256):
                raise DataError(f"{at}: SHA-256 is not {file.sha256}; replace the file")
            return LocalFile(at, origin, member, file.max_bytes)
        # Downloads raise OSErrors, or ValueError for a wrong hash or size.
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                what = f"write '{file.name}' to the cache folder {downloads.parent}"
                raise CacheError.of(dataset, what, error) from None
            tried.append(f"{origin} ({_reason(error)})")
    where = "; ".join(
        (["it has no public address"] if not file.urls else [])
        + ([f"tried {', '.join(tried)}"] if tried else [])
    )
    raise DataError(
        f"{dataset}: cannot fetch '{file.name}'; {where}; put the file at "
        f"FOLDER/{folder}/{file.name} and set {MIRROR_VARIABLE}=FOLDER (a folder or an http "
        "address)"
    )


def _locations(file: RemoteFile, folder: str) -> Iterator[tuple[Path | str, str | None]]:
    """Where a file may be: at a path or an address, perhaps of an archive, and its name in it."""
    mirror = os.environ.get(MIRROR_VARIABLE, "").strip()
    if mirror:
        yield _in_mirror(mirror, folder, file.name), None
        if file.archive is not None:
            yield _in_mirror(mirror, folder, file.archive), file.name
    if file.installed is not None:
        yield Path(file.installed), None
    yield from ((url, None) for url in file.urls)


def _in_mirror(mirror: str, folder: str, name: str) -> Path | str:
    if "://" in mirror:
        address, mark, query = mirror.partition("?")
        return f"{address.rstrip('/')}/{quote(folder)}/{quote(name)}{mark}{query}"
    return Path(mirror).expanduser() / folder / name


def _download(url: str, member: str | None, file: RemoteFile, downloads: Path) -> Path:
    # By address: what one of them has sent must not be taken for another's.
    folder = downloads / hashlib.sha256(url.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    # The bytes of the file itself, not compressed once more.
    import pooch  # which takes a tenth of a second, and few commands download

    downloader = pooch.HTTPDownloader(
        chunk_size=_BUFFER_BYTES, timeout=TIMEOUT_S, headers={"Accept-Encoding": "identity"}
    )
    try:
        # Two files of one archive: it is downloaded once.
        path = folder / (file.name if member is None else str(file.archive))
        if not path.is_file():
            with replacing(path) as sink:
                downloader(url, _Limited(sink, max_bytes(file.max_bytes)), None)
        if member is None and not _is_known(path, file.sha256):
            path.unlink()
            raise ValueError("SHA-256 differs from the known one")
        return path
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            folder.rmdir()


class _Limited:
    """Ends a download that is larger than its file may be."""

    def __init__(self, sink: BinaryIO, most: int) -> None:
        self._sink, self._most, self.flush = sink, most, sink.flush

    def write(self, chunk: bytes) -> None:
        if self._sink.tell() + len(chunk) > self._most:
            raise ValueError(
                f"larger than the limit of {self._most} bytes; if you trust the address, set "
                f"{BYTES_VARIABLE} to a higher limit"
            )
        self._sink.write(chunk)


def _is_known(path: Path, sha256: str | None) -> bool:
    if sha256 is None:
        return True
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def _reason(error: OSError | ValueError) -> str:
    """A short reason from an error of a download, without a password in an address."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.RequestException):
        return f"download failed: {type(error).__name__}"
    return first_line(error)


@contextlib.contextmanager
def reading(file: LocalFile) -> Iterator[BufferedIOBase]:
    """Open a file for as long as it can be read, taken out of its zip archive and decompressed.

    Raises `DataError` if the file cannot be opened, turns out to be damaged while the block reads
    it, or expands to more than its limit.
    """
    try:
        with contextlib.ExitStack() as stack:
            yield _open(file, stack)
    except _DAMAGE as error:
        raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None


class _Bounded(RawIOBase):
    """A stream that raises once it has given more than its limit."""

    def __init__(self, source: Any, limit: int, origin: str) -> None:
        self._source = source
        self._limit = limit
        self._left = limit
        self._origin = origin

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        n_read: int = self._source.readinto(buffer)
        self._left -= n_read
        if self._left < 0:
            raise DataError(
                f"{self._origin}: expands to more than {self._limit} bytes; if you trust the "
                f"file, set {BYTES_VARIABLE} to a higher limit"
            )
        return n_read


def _open(file: LocalFile, stack: contextlib.ExitStack) -> BufferedIOBase:
    raw: Any = stack.enter_context(file.path.open("rb"))
    stream: Any = raw if file.member is None else _member(file, raw, stack)
    # The first bytes tell the compression: a mirror may have changed it and kept the name.
    start = stream.peek(6)
    for magic, module in _PACKED.items():
        if start.startswith(magic):
            stream = stack.enter_context(module.open(stream))
            break
    if stream is raw:
        return cast(BufferedIOBase, raw)
    return BufferedReader(_Bounded(stream, max_bytes(file.max_bytes), file.origin), _BUFFER_BYTES)


def _member(file: LocalFile, raw: Any, stack: contextlib.ExitStack) -> Any:
    try:
        archive = stack.enter_context(zipfile.ZipFile(raw))
        return stack.enter_context(archive.open(str(file.member)))
    except KeyError:
        from .own.words import listed

        raise DataError(
            f"{file.path}: the archive has no file '{file.member}' "
            f"(it has: {listed(archive.namelist(), 10)})"
        ) from None
    # A password, an unknown flag, version or code of a name, a field that is cut short.
    except (RuntimeError, ValueError, struct.error) as error:
        raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None


def max_bytes(stated: int) -> int:
    """The most bytes of a file, unpacked: the user's limit, else the stated one."""
    text = os.environ.get(BYTES_VARIABLE, "").strip()
    if not text:
        return stated
    # More digits than any size has; int() of thousands of digits raises an error of its own.
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
        raise DataError(f"{BYTES_VARIABLE} is {text[:40]!r}; set it to a positive whole number")
    return int(text)
