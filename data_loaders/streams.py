"""Files as streams of bytes, whatever they are packed in."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from typing import cast

from marginbench.data_loaders.errors import DataError, first_line
from marginbench.data_loaders.files import LocalFile

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
        If the file cannot be opened, or turns out to be damaged while the block reads it.
    """
    try:
        with contextlib.ExitStack() as stack:
            yield _open(file, stack)
    except _DAMAGE as error:
        raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None


def whole_lines(stream: BufferedIOBase, block_bytes: int) -> Iterator[bytes]:
    """Blocks of text of about `block_bytes` that end with a newline each."""
    rest = b""
    while chunk := stream.read(block_bytes):
        text = rest + chunk
        cut = text.rfind(b"\n") + 1
        rest = text[cut:]
        if cut:
            yield text[:cut]
    if rest:
        yield rest + b"\n"


def shown(text: bytes) -> str:
    """A word of a file, quoted, shortened and free of control characters."""
    word = repr(text.decode("utf-8", "replace"))
    return word if len(word) <= 40 else word[:36] + "...'"


def _open(file: LocalFile, stack: contextlib.ExitStack) -> BufferedIOBase:
    raw = stack.enter_context(file.path.open("rb"))
    if file.member is not None:
        raw = _member(file, raw, stack)
    # The first bytes tell the compression: a mirror may have changed it and kept the name.
    magic = raw.peek(6)
    if magic.startswith(b"BZh"):
        return stack.enter_context(bz2.open(raw))
    if magic.startswith(b"\x1f\x8b"):
        return stack.enter_context(gzip.open(raw))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return stack.enter_context(lzma.open(raw))
    return raw


def _member(file: LocalFile, raw: BufferedReader, stack: contextlib.ExitStack) -> BufferedReader:
    archive = stack.enter_context(zipfile.ZipFile(raw))
    names = archive.namelist()
    if file.member not in names:
        raise DataError(
            f"{file.path}: the archive has no file '{file.member}' (it has: {', '.join(names)})"
        )
    try:
        # A ZipExtFile can be peeked into like a BufferedReader.
        return cast(BufferedReader, stack.enter_context(archive.open(file.member)))
    except (NotImplementedError, RuntimeError) as error:  # an unknown method, or a password
        raise DataError(f"{file.origin}: cannot be read ({first_line(error)})") from None
