"""The Parquet file of a dataset: written at once or not at all, verified before it is used.

One row per point, training part first. Columns: ``X``, a fixed-size list per row (dense), or
``indices`` (from 0) and ``values``, lists (sparse); ``y``; ``split``, "train" or "test". The file's
metadata hold a JSON object under the key ``marginbench``: the `Header`, the shape, and the
fingerprint of the content.

Hashing all numbers takes several times as long as reading them, so it is done when the file has
been made. Later the checksum of every page, which Arrow checks whenever it reads, and that of the
JSON object tell damage.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .atomic import replacing
from .content import Content, Part, canonical, fingerprint, issparse
from .errors import CacheError, first_line
from .parameters import Value

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SCHEMA_VERSION = 2
#: Rows, and numbers of X, of a row group: Arrow needs several times the memory of what it decodes.
GROUP_ROWS = 1 << 15
GROUP_ENTRIES = 1 << 22
_KEY = b"marginbench"


@dataclass(frozen=True)
class Header:
    """The header of a file."""

    name: str
    params: dict[str, Value]  # all parameters; empty for a dataset that takes none
    source_fingerprint: str | None  # the pinned fingerprint of the raw content
    transform_version: int
    # What was decided when a user's file was read, a line each; empty for registered sources. Not
    # compared when a file is read.
    decided: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION  # of the columns and metadata


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: read-only arrays, their fingerprint, and the header in the file."""

    content: Content
    fingerprint: str
    header: Header


class Unusable(Exception):
    """A file that does not hold the requested content.

    Outdated is one that is whole, but made by another version of the source or of this module.
    """

    def __init__(self, state: Literal["missing", "damaged", "outdated"], detail: str) -> None:
        super().__init__(detail)
        self.state = state


def write(path: Path, header: Header, content: Content) -> None:
    """Write a dataset under its final name once all of it is on the disk.

    The caller holds the lock of `path`, whose folder exists. Labels are int8 or int64; X is float32
    or float64, dense or CSR. Raises `CacheError` if the file cannot be written.
    """
    parts = [(role, canonical(part.X), part.y) for role, part in content.parts()]
    stored = [len(X.data) if issparse(X) else X.size for _, X, _ in parts]
    about = asdict(header) | {
        "n_train": len(content.train.y),
        "n_test": len(content.test.y),
        "n_features": content.train.X.shape[1],
        "n_stored": sum(stored) if issparse(content.train.X) else 0,
        "fingerprint": fingerprint(content),
    }
    about["checksum"] = _checksum(about)
    tables = [_table(*part) for part in parts]
    try:
        with (
            replacing(path, path.with_name(partial_prefix(path) + "parquet")) as sink,
            pq.ParquetWriter(
                sink,
                tables[0].schema,
                compression="lz4",
                use_dictionary=["split"],
                write_statistics=False,
                write_page_checksum=True,
            ) as writer,
        ):
            for table, n_entries in zip(tables, stored, strict=True):
                # Rows of a usual length.
                fitting = GROUP_ENTRIES * len(table) // max(1, n_entries)
                writer.write_table(table, row_group_size=max(1, min(GROUP_ROWS, fitting)))
            writer.add_key_value_metadata({_KEY: json.dumps(about, sort_keys=True).encode()})
    except OSError as error:
        raise CacheError.of(header.name, f"write the cache file {path}", error) from None


def read(path: Path, header: Header | None) -> Stored:
    """Read a dataset; raises `Unusable` if the file is missing, damaged, or not what `header` says,
    if there is one.

    The checksums in the file are checked, not its fingerprint.
    """
    with _opened(path) as (file, about):
        expected = about if header is None else asdict(header)
        for key in ("schema_version", "name", "params", "source_fingerprint", "transform_version"):
            if about[key] != expected[key]:
                # A file of another dataset cannot have got this name by an upgrade.
                raise Unusable(
                    "damaged" if key in ("name", "params") else "outdated",
                    f"{path}: {key} is {about[key]!r}, this release needs {expected[key]!r}",
                )
        return Stored(_content(file, about), str(about["fingerprint"]), _header(about))


def verify(path: Path, header: Header | None) -> Stored:
    """Read a dataset and compare its content with its fingerprint; raises `Unusable` as `read`."""
    stored = read(path, header)
    got = fingerprint(stored.content)
    if got != stored.fingerprint:
        raise Unusable(
            "damaged",
            f"{path}: the content's fingerprint is {got}, its metadata say {stored.fingerprint!r}",
        )
    return stored


def read_header(path: Path) -> Header:
    """Read the header of a file and nothing else; raises `Unusable`."""
    with _opened(path) as (_, about):
        return _header(about)


def partial_prefix(path: Path) -> str:
    """How the names of unfinished files that belong to `path` begin."""
    return f".{path.stem}.partial-"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pq.ParquetFile, dict[str, Any]]]:
    """The open file and the JSON object of its metadata."""
    try:
        if not path.exists():
            raise Unusable("missing", f"{path}: not fetched yet")
        # Arrow checks the checksum of every page before it decodes it. A mapped file would count as
        # memory of the process.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            about: dict[str, Any] = json.loads(file.metadata.metadata[_KEY])
            stated = about.pop("checksum", None)
            if stated not in (None, _checksum(about)):
                raise ValueError("the metadata do not have their checksum")
            yield file, about
    except Unusable:
        raise
    except Exception as error:  # noqa: BLE001 - damaged bytes make Arrow, json and NumPy raise any
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise Unusable("damaged", f"{path}: not a dataset that can be read ({reason})") from None


def _checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _header(about: dict[str, Any]) -> Header:
    return Header(**{name: about[name] for name in Header.__annotations__ if name in about})


def _table(role: str, X: Any, y: Any) -> pa.Table:
    """Rows as columns, without a copy of their numbers where that is possible."""
    columns: dict[str, Any] = {}
    if issparse(X):
        ends = pa.array(X.indptr, pa.int64())
        items = {"indices": X.indices.astype(np.int32, copy=False), "values": X.data}
        for name, numbers in items.items():
            kind = pa.large_list(_element(numbers))
            columns[name] = pa.LargeListArray.from_arrays(ends, pa.array(numbers), type=kind)
    else:
        kind = pa.list_(_element(X), X.shape[1])
        numbers = pa.array(np.ascontiguousarray(X).ravel())
        columns["X"] = pa.FixedSizeListArray.from_arrays(numbers, type=kind)
    columns |= {"y": pa.array(y), "split": pa.repeat(role, len(y))}
    # Arrow reads columns without nulls markedly faster when the schema says so.
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _element(numbers: Any) -> pa.Field:
    return pa.field("element", pa.from_numpy_dtype(numbers.dtype), nullable=False)


def _content(file: pq.ParquetFile, about: dict[str, Any]) -> Content:
    n_train, n, width = about["n_train"], about["n_train"] + about["n_test"], about["n_features"]
    y, _ = _numbers(file, "y", n)
    if y.dtype not in (np.int8, np.int64):
        raise ValueError(f"the labels are of type {y.dtype}")
    parts = slice(0, n_train), slice(n_train, n)
    if "indices" not in file.schema_arrow.names:
        X = _numbers(file, "X", n * width)[0].reshape(n, width)
        return Content(*(Part(X[rows], y[rows]) for rows in parts))
    columns, lengths = _numbers(file, "indices", about["n_stored"])
    data, _ = _numbers(file, "values", about["n_stored"])
    # Compiled solvers do not check bounds, and the fingerprint does not know them.
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise ValueError(f"a feature is outside 0 to {width - 1}")
    indptr = np.concatenate([[0], *lengths]).cumsum()
    if len(indptr) != n + 1:
        raise ValueError(f"there are {len(indptr) - 1} rows of features for {n} labels")
    return Content(
        *(
            Part(_csr(indptr[rows.start : rows.stop + 1], columns, data, width), y[rows])
            for rows in parts
        )
    )


def _numbers(file: pq.ParquetFile, name: str, size: int) -> tuple[Any, list[Any]]:
    """All numbers of a column, read-only, and how many each row has if their number differs.

    A row group at a time: Arrow's copy of all of them would double the memory.
    """
    kind = file.schema_arrow.field(name).type
    nested = pa.types.is_nested(kind)
    numbers = np.empty(size, (kind.value_type if nested else kind).to_pandas_dtype())
    lengths, stop = [], 0
    for group in range(file.num_row_groups):
        for chunk in file.read_row_group(group, [name], use_threads=False)[name].chunks:
            if pa.types.is_large_list(kind):
                lengths.append(np.from_dlpack(chunk.value_lengths()))
            items = chunk.flatten() if nested else chunk
            # Arrow's to_numpy imports pandas.
            numbers[stop : stop + len(items)] = np.from_dlpack(items)
            stop += len(items)
    if stop != size:
        raise ValueError(f"the column {name!r} has {stop} numbers, not {size}")
    numbers.setflags(write=False)
    return numbers, lengths


def _csr(indptr: Any, columns: Any, data: Any, width: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    items = slice(indptr[0], indptr[-1])
    indptr = (indptr - indptr[0]).astype(columns.dtype if indptr[-1] < 2**31 else np.int64)
    X: Any = csr_matrix((data[items], columns[items], indptr), shape=(len(indptr) - 1, width))
    # SciPy copies what is a small piece of a large array.
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X
