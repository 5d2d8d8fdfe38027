"""The Parquet file of a dataset: written at once or not at all, verified before it is used.

`layout` has the columns. The file's metadata hold a JSON object under the key ``marginbench``: the
`Header`, the shape, and the fingerprint of the content.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from . import layout, stamps
from .atomic import replacing
from .content import Content, Fingerprint, Part, canonical, fingerprint
from .errors import CacheError, first_line
from .header import (
    SCHEMA_VERSION,
    Header,
    Unusable,
    compare,
    header_of,
)

__all__ = [
    "SCHEMA_VERSION",
    "Header",
    "Stored",
    "Unusable",
    "Writer",
    "partial_prefix",
    "read",
    "read_header",
    "verify",
    "write",
]

_KEY = b"marginbench"

#: What Arrow, json and NumPy raise when they meet bytes that are not what was written.
_DAMAGE = (
    OSError,
    pa.ArrowException,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds.

    Parameters
    ----------
    content : Content
        Read-only arrays.
    fingerprint : str
        Of the content.
    header : Header
        As it stands in the file.
    """

    content: Content
    fingerprint: str
    header: Header


class Writer:
    """Writes a dataset block by block; the file gets its name once all of it is on the disk.

    A context manager. If its block raises, what stood at `path` stays. The caller holds the lock
    of `path`.

    Parameters
    ----------
    path : Path
        Its folder exists.
    header : Header
    n_features : int
    sparse : bool
        Whether parts are CSR matrices.
    dtype : dtype
        Of the points: float32 or float64.

    Attributes
    ----------
    fingerprint : str
        Of the content, once the file is written.

    Examples
    --------
    The training part in blocks, then the test part::

        with Writer(path, header, n_features=8, sparse=False, dtype=np.float32) as writer:
            for block in blocks:
                writer.append("train", block)
            writer.append("test", Part(X_test, y_test))
    """

    fingerprint: str

    def __init__(
        self, path: Path, header: Header, *, n_features: int, sparse: bool, dtype: DTypeLike
    ) -> None:
        self._path = path
        self._header = header
        self._n_features = n_features
        self._sparse = sparse
        self._dtype = np.dtype(dtype)
        self._hash = Fingerprint()
        self._n_rows = {"train": 0, "test": 0}
        self._n_stored = 0
        self._open = contextlib.ExitStack()
        self._sink: Any = None
        self._parquet: pq.ParquetWriter | None = None
        self._group: list[pa.RecordBatch] = []
        self._group_rows = self._group_entries = 0

    def __enter__(self) -> Self:
        unfinished = self._path.with_name(partial_prefix(self._path) + "parquet")
        with self._explained():
            self._sink = self._open.enter_context(replacing(self._path, unfinished))
        return self

    def append(self, role: Literal["train", "test"], part: Part) -> None:
        """Add rows; those of the training part come first.

        Parameters
        ----------
        role : {"train", "test"}
        part : Part
            Any number of rows. Labels are int8 or int64, of one type in all blocks. The arrays must
            not change until the file is written.

        Raises
        ------
        CacheError
            If the file cannot be written.
        ValueError
            If the storage, type or width of the points is not that of the file, or training rows
            come after test rows.
        """
        self._check(role, part)
        if issparse(part.X):
            part = Part(canonical(part.X), part.y)
            self._n_stored += layout.n_entries(part)
        self._hash.update(role, part)
        self._n_rows[role] += len(part.y)
        room = layout.GROUP_ROWS - self._group_rows, layout.GROUP_ENTRIES - self._group_entries
        for piece in layout.pieces(part, *room):
            self._add(role, piece)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._abandon(error)
            return
        try:
            with self._explained():
                self._finish()
                self._open.close()
        except BaseException as failure:
            self._abandon(failure)
            raise

    def _check(self, role: str, part: Part) -> None:
        found = (issparse(part.X), part.X.dtype, part.X.shape[1])
        expected = (self._sparse, self._dtype, self._n_features)
        if found != expected:
            raise ValueError(
                f"{self._header.name}: points (sparse, type, features) {found} in a file of "
                f"{expected}"
            )
        if role == "train" and self._n_rows["test"]:
            raise ValueError(f"{self._header.name}: training rows after test rows")

    def _add(self, role: str, piece: Part) -> None:
        """Put a piece into the current row group, which is written first if there is no room."""
        rows, entries = len(piece.y), layout.n_entries(piece)
        if self._group and (
            self._group_rows + rows > layout.GROUP_ROWS
            or self._group_entries + entries > layout.GROUP_ENTRIES
        ):
            self._flush()
        self._group.append(layout.batch(role, piece))
        self._group_rows += rows
        self._group_entries += entries

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._group)
        self._group, self._group_rows, self._group_entries = [], 0, 0
        with self._explained():
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(
                    self._sink,
                    table.schema,
                    compression="lz4",
                    use_dictionary=["split"],
                    write_statistics=False,
                    write_page_checksum=True,
                )
            self._parquet.write_table(table, row_group_size=max(1, len(table)))

    def _finish(self) -> None:
        if self._group:
            self._flush()
        if self._parquet is None:
            raise ValueError(f"{self._header.name}: no rows to write")
        self.fingerprint = self._hash.hexdigest()
        shape = layout.Shape(
            self._n_rows["train"], self._n_rows["test"], self._n_features, self._n_stored
        )
        about = asdict(self._header) | asdict(shape) | {"fingerprint": self.fingerprint}
        self._parquet.add_key_value_metadata({_KEY: json.dumps(about, sort_keys=True).encode()})
        self._parquet.close()

    def _abandon(self, error: BaseException) -> None:
        if self._parquet is not None:
            # Otherwise it would write its end to a closed file when it is collected.
            with contextlib.suppress(OSError, pa.ArrowException, ValueError):
                self._parquet.close()
        with contextlib.suppress(type(error)):
            self._open.__exit__(type(error), error, error.__traceback__)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CacheError(
                f"{self._header.name}: cannot write the cache file {self._path} "
                f"({error.strerror or error}); set MARGINBENCH_CACHE to a folder with room that "
                "can be written"
            ) from None


def write(path: Path, header: Header, content: Content) -> None:
    """Write a dataset under its final name once all of it is on the disk.

    The caller holds the lock of `path`.

    Parameters
    ----------
    path : Path
        Its folder exists.
    header : Header
    content : Content
        Labels are int8 or int64; X is float32 or float64, dense or CSR.

    Raises
    ------
    CacheError
        If the file cannot be written.
    """
    X = content.train.X
    with Writer(path, header, n_features=X.shape[1], sparse=issparse(X), dtype=X.dtype) as writer:
        writer.append("train", content.train)
        writer.append("test", content.test)


def partial_prefix(path: Path) -> str:
    """How the names of unfinished files that belong to `path` begin."""
    return f".{path.stem}.partial-"


def read_header(path: Path) -> Header:
    """Read what a file says of itself, and nothing else of it.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Header
        Of any version.

    Raises
    ------
    Unusable
        If the file is missing or its metadata cannot be read.
    """
    with _opened(path) as file:
        return header_of(_about(file))


def read(path: Path, header: Header) -> Stored:
    """Read a dataset that was verified before, or verify it and leave a stamp that says so.

    Parameters
    ----------
    path : Path
    header : Header
        What the file should be.

    Returns
    -------
    Stored

    Raises
    ------
    Unusable
        If the file is missing, damaged or outdated.
    """
    file = stamps.identity(path)
    stamped = stamps.fingerprint(path, file)
    if stamped is not None:
        found = _read(path, header)
        # Another process may have replaced the file while it was read.
        if found.fingerprint == stamped and stamps.identity(path) == file:
            return found
        file = stamps.identity(path)
    found = verify(path, header)
    unfinished = path.with_name(f"{partial_prefix(path)}{os.getpid()}.stamp")
    stamps.leave(path, file, found.fingerprint, unfinished)
    return found


def verify(path: Path, header: Header) -> Stored:
    """Read a dataset and compare its content with its fingerprint, whatever a stamp says.

    Parameters
    ----------
    path : Path
    header : Header
        What the file should be.

    Returns
    -------
    Stored

    Raises
    ------
    Unusable
        If the file is missing, damaged or outdated.
    """
    found = _read(path, header)
    got = fingerprint(found.content)
    if got != found.fingerprint:
        raise Unusable(
            "damaged",
            f"{path}: the content's fingerprint is {got}, its metadata say {found.fingerprint!r}",
        )
    return found


def _read(path: Path, header: Header) -> Stored:
    with _opened(path) as file:
        about = _about(file)
        compare(path, about, header)
        shape = layout.Shape(**{name: about[name] for name in layout.Shape.__annotations__})
        return Stored(layout.read(file, shape), str(about["fingerprint"]), header_of(about))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        if not path.exists():
            raise Unusable("missing", f"{path}: not fetched yet")
        # Arrow checks the checksum of every page before it decodes it. A mapped file would count as
        # memory of the process.
        with pq.ParquetFile(
            path, page_checksum_verification=True, read_dictionary=["split"]
        ) as file:
            yield file
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise Unusable("damaged", f"{path}: not a dataset that can be read ({what})") from None


def _about(file: pq.ParquetFile) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(file.metadata.metadata[_KEY])
    return about
