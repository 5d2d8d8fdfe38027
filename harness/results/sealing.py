"""The bytes of a record file: one row of Parquet under checksums that damage cannot get past.

Three checks lie one inside the other. A SHA-256 of all bytes of the file is verified before Arrow
sees any of them: on a damaged footer Arrow may fail in odd ways. Page checksums are verified as
pages are read. A SHA-256 of the values is compared with the values that Arrow hands back.

The first digest is stored in the footer's metadata, so it is a part of what it covers; it is that
of the file with zeros in its own place.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import RecordError, first_line

#: The first version of the schema whose records are sealed.
FIRST_SEALED_VERSION = 5

# A record takes kilobytes; more than this is none, and is not read.
_LARGEST = 256 * 2**20
_MAGIC = b"PAR1"
_MARK = b"marginbench-file-sha256:"
_BLANK = b"0" * 64
# Names of columns that only sealed records have: in a footer whose mark is damaged they remain.
_SEALED_COLUMNS = (b"key_parts", b"claimed")
_FILE_KEY, _CONTENT_KEY = "marginbench.file", "marginbench.content"
# The version of the canonical form goes before the digest.
_CONTENT_FORM = "v1:"
# A row has some seventy pages of a few bytes. A dictionary doubles their number, and setting up
# zstd for each takes three times as long to read as all the rest; neither makes the file smaller.
# The statistics of one row repeat its values, in nearly half of the file.
_ENCODING: dict[str, Any] = {
    "compression": "snappy",
    "use_dictionary": False,
    "write_statistics": False,
}
#: Bounds on what a footer may ask Arrow to allocate.
THRIFT_LIMITS = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 2**20}


def sealed(table: pa.Table) -> bytes:
    """A table of one row as the bytes of a record file.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    bytes
    """
    (row,) = table.to_pylist()
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True, **_ENCODING) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {_CONTENT_KEY: content_digest(row), _FILE_KEY: (_MARK + _BLANK).decode()}
        )
    content = sink.getvalue()
    place = content.rindex(_MARK) + len(_MARK)
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[:place] + digest + content[place + len(_BLANK) :]


def unsealed(path: Path) -> dict[str, Any]:
    """The row of a record file, after all its checks.

    Records of schemas before version 5 have no checksums; they are read as they are.

    Parameters
    ----------
    path : Path

    Raises
    ------
    RecordError
        If the file cannot be read, is damaged or holds no record; the message says why, without
        the path.
    """
    return _checked(content_of(path))[1]


def unsealed_table(content: bytes) -> tuple[pa.Table, dict[str, Any], bool]:
    """The row of a record file as a table without metadata and as values.

    Parameters
    ----------
    content : bytes
        Of the whole file.

    Returns
    -------
    tuple
        The table, the row, and whether the file has checksums.

    Raises
    ------
    RecordError
        As :func:`unsealed`.
    """
    table, row, has_checksums = _checked(content)
    return table.replace_schema_metadata(None), row, has_checksums


def seal_of(path: Path) -> str:
    """The SHA-256 that a record file says it has, after a check that it has it.

    Nothing of the file is interpreted. It takes a hundredth of the time of reading the record.

    Parameters
    ----------
    path : Path

    Raises
    ------
    RecordError
        If the file is damaged or has no checksum; the message says why, without the path.
    """
    content = content_of(path)
    if not _check_bytes(content):
        raise RecordError("without a checksum")
    place = content.rfind(_MARK) + len(_MARK)
    return content[place : place + len(_BLANK)].decode()


def _checked(content: bytes) -> tuple[pa.Table, dict[str, Any], bool]:
    """The row of a record file as a table and as values, and whether it has checksums."""
    checked = _check_bytes(content)
    try:
        file = pq.ParquetFile(
            pa.BufferReader(content), page_checksum_verification=True, **THRIFT_LIMITS
        )
        # One row: handing its columns to threads costs more than reading them.
        table = file.read(use_threads=False)
        rows = table.to_pylist()
        metadata = file.metadata.metadata or {}
    except Exception as error:  # noqa: BLE001 - damaged bytes of old records raise anything
        raise RecordError(f"not a readable record ({first_line(error)})") from None
    if len(rows) != 1:
        raise RecordError(f"not a readable record (it has {len(rows)} rows, not 1)")
    row: dict[str, Any] = rows[0]
    version = row.get("schema_version")
    if not checked:
        if not isinstance(version, int) or version >= FIRST_SEALED_VERSION:
            raise RecordError("damaged (its checksum is missing)")
    elif metadata.get(_CONTENT_KEY.encode(), b"").decode("ascii", "replace") != content_digest(row):
        raise RecordError("damaged (its values do not match their checksum)")
    return table, row, checked


def content_of(path: Path) -> bytes:
    """The bytes of a record file, if they look like those of a Parquet file.

    Raises
    ------
    RecordError
        If they do not, or cannot be read; the message says why, without the path.
    """
    try:
        with path.open("rb") as source:
            too_large = os.fstat(source.fileno()).st_size > _LARGEST
            content = b"" if too_large else source.read(_LARGEST)
    except OSError as error:
        raise RecordError(f"not a readable record ({error.strerror or error})") from None
    if too_large:
        raise RecordError(f"not a readable record (larger than {_LARGEST >> 20} MiB)")
    # Two magic words, a footer of at least a byte and its length.
    if len(content) <= 3 * len(_MAGIC):
        raise RecordError(f"not a readable record (only {len(content)} bytes)")
    if not (content.startswith(_MAGIC) and content.endswith(_MAGIC)):
        raise RecordError("not a readable record (not a whole Parquet file)")
    return content


def _check_bytes(content: bytes) -> bool:
    """Whether the file has a checksum of its bytes, which then is right.

    Raises
    ------
    RecordError
        If it is wrong, or missing from a file that must have one.
    """
    place = content.rfind(_MARK)
    if place < 0:
        if any(name in content for name in _SEALED_COLUMNS):
            raise RecordError("damaged (its checksum is missing)")
        return False
    start = place + len(_MARK)
    end = start + len(_BLANK)
    digest = hashlib.sha256(content[:start] + _BLANK + content[end:]).hexdigest()
    if content[start:end] != digest.encode():
        raise RecordError("damaged (its bytes do not match their checksum)")
    return True


def content_digest(row: dict[str, Any]) -> str:
    """SHA-256 of the values of a row as Arrow hands them back, by name, floats exactly.

    JSON writes a float by its shortest exact digits, and NaN and infinity by name. A map is a list
    of pairs in the order in which it is stored.
    """
    text = json.dumps(row, sort_keys=True, separators=(",", ":"), default=repr)
    return _CONTENT_FORM + hashlib.sha256(text.encode()).hexdigest()
