"""Files as streams of bytes, whatever they are packed in."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast

from . import limits
from .errors import DataError, first_line
from .files import LocalFile

#: Bytes that the buffer of an unpacked file takes in at a time.
_BUFFER_BYTES = 1 << 16
#: The methods of ISO/IEC 21320-1. Of the others, zipfile unpacks whatever it is given at once.
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Names of an archive that a message lists.
_LISTED = 10
#: How compressed files begin, and what opens them.
_PACKED: dict[bytes, Any] = {b"BZh": bz2, b"\x1f\x8b": gzip, b"\xfd7zXZ\x00": lzma}
#: What the standard library raises when it meets bytes that are not what was packed.
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@contextmanager
def reading(file: LocalFile) -> Iterator[BufferedIOBase]:
    """Open a file, taken out of its archive and decompressed, for as long as it can be read.

    Parameters
    ----------
    file : LocalFile
        Plain, or compressed with bzip2, gzip or xz; in a zip archive, or by itself.

    Yields
    ------
    binary stream

    Raises
    ------
    DataError
        If the file cannot be opened, turns out to be damaged while the block reads it, or expands
        to more than its limit.
    """
    try:
        with contextlib.ExitStack() as stack:
            yield _open(file, stack)
    except _DAMAGE as error:
        raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None


def is_packed(path: Path) -> bool:
    """Whether the first bytes of a file are those of a compressed one."""
    with path.open("rb") as stream:
        return stream.read(6).startswith(tuple(_PACKED))


def shown(text: bytes) -> str:
    """A word of a file, quoted, shortened and free of control characters."""
    word = repr(text.decode("utf-8", "replace"))
    return word if len(word) <= 40 else word[:36] + "...'"


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
                f"file, set {limits.BYTES_VARIABLE} to a higher limit"
            )
        return n_read


def _open(file: LocalFile, stack: contextlib.ExitStack) -> BufferedIOBase:
    raw = stack.enter_context(file.path.open("rb"))
    if file.member is not None:
        raw = _bounded(_member(file, raw, stack), file)
    # The first bytes tell the compression: a mirror may have changed it and kept the name.
    start = raw.peek(6)
    for magic, module in _PACKED.items():
        if start.startswith(magic):
            return _bounded(stack.enter_context(module.open(raw)), file)
    return raw


def _bounded(source: Any, file: LocalFile) -> BufferedReader:
    limit = limits.max_expanded(file.max_bytes, file.path.stat().st_size)
    return BufferedReader(_Bounded(source, limit, file.origin), _BUFFER_BYTES)


def _member(
    file: LocalFile, raw: BufferedReader, stack: contextlib.ExitStack
) -> zipfile.ZipExtFile:
    try:
        archive = stack.enter_context(zipfile.ZipFile(raw))
        entry = _entry(file, archive)
        return cast(zipfile.ZipExtFile, stack.enter_context(archive.open(entry)))
    # A password, an unknown flag, version or code of a name, a field that is cut short.
    except (RuntimeError, ValueError, struct.error) as error:
        raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None


def _entry(file: LocalFile, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one entry of the archive that has the name of the file."""
    found = [entry for entry in archive.infolist() if entry.filename == file.member]
    if not found:
        raise DataError(
            f"{file.path}: the archive has no file '{file.member}' (it has: {_listed(archive)})"
        )
    if len(found) > 1:
        raise DataError(
            f"{file.path}: the archive has {len(found)} files '{file.member}', and it is not "
            "clear which one counts; pack it again"
        )
    if found[0].compress_type not in _ZIP_METHODS:
        raise DataError(
            f"{file.origin}: is packed by method {found[0].compress_type}; only 0 (stored) and 8 "
            "(deflate) are read, pack the archive again"
        )
    return found[0]


def _listed(archive: zipfile.ZipFile) -> str:
    names = archive.namelist()
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    # Names come from outside: one that holds a newline must not break the message.
    quoted = [name if name.isprintable() else shown(name.encode()) for name in names[:_LISTED]]
    return ", ".join([*quoted, *more])
