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
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix, issparse

from .atomic import replacing
from .content import Content, Part, canonical, fingerprint
from .errors import CacheError, first_line
from .parameters import Value

SCHEMA_VERSION = 2
#: Rows, and numbers of X, of a row group: Arrow needs several times the memory of what it decodes.
GROUP_ROWS = 1 << 15
GROUP_ENTRIES = 1 << 22
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
    NotImplementedError,
)


@dataclass(frozen=True)
class Header:
    """What a file says of itself.

    Parameters
    ----------
    name : str
        The dataset.
    params : dict
        All parameters; empty for a dataset that takes none.
    source_fingerprint : str or None
        The pinned fingerprint of the raw content.
    transform_version : int
    decided : list of str
        What was decided when a user's file was read, a line each; empty for registered sources.
        Not compared when a file is read.
    schema_version : int
        Of the columns and metadata.
    """

    name: str
    params: dict[str, Value]
    source_fingerprint: str | None
    transform_version: int
    decided: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: read-only arrays, their fingerprint, and the header in the file."""

    content: Content
    fingerprint: str
    header: Header


class Unusable(Exception):
    """A file that does not hold the content that is asked for.

    Attributes
    ----------
    state : {"missing", "damaged", "outdated"}
        Outdated: whole, but made by another version of the source or of this module.
    """

    def __init__(self, state: Literal["missing", "damaged", "outdated"], detail: str) -> None:
        super().__init__(detail)
        self.state = state


def write(path: Path, header: Header, content: Content) -> None:
    """Write a dataset under its final name once all of it is on the disk.

    The caller holds the lock of `path`, whose folder exists. Labels are int8 or int64; X is float32
    or float64, dense or CSR. Raises `CacheError` if the file cannot be written.
    """
    about = asdict(header) | {
        "n_train": len(content.train.y),
        "n_test": len(content.test.y),
        "n_features": content.train.X.shape[1],
        "n_stored": 0,
        "fingerprint": fingerprint(content),
    }
    unfinished = path.with_name(partial_prefix(path) + "parquet")
    try:
        with replacing(path, unfinished) as sink, contextlib.ExitStack() as stack:
            writer: pq.ParquetWriter | None = None
            for role, part in content.parts():
                X = canonical(part.X) if issparse(part.X) else part.X
                n_entries = len(X.data) if issparse(X) else X.size
                about["n_stored"] += n_entries if issparse(X) else 0
                table = _table(role, X, part.y)
                if writer is None:
                    writer = stack.enter_context(
                        pq.ParquetWriter(
                            sink,
                            table.schema,
                            compression="lz4",
                            use_dictionary=["split"],
                            write_statistics=False,
                            write_page_checksum=True,
                        )
                    )
                # Rows of a usual length.
                fitting = GROUP_ENTRIES * len(table) // max(1, n_entries)
                writer.write_table(table, row_group_size=max(1, min(GROUP_ROWS, fitting)))
            if writer is not None:
                about["checksum"] = _checksum(about)
                writer.add_key_value_metadata({_KEY: json.dumps(about, sort_keys=True).encode()})
    except OSError as error:
        raise CacheError(
            f"{header.name}: cannot write the cache file {path} ({error.strerror or error}); set "
            "MARGINBENCH_CACHE to a folder with room that can be written"
        ) from None


def read(path: Path, header: Header) -> Stored:
    """Read a dataset; raises `Unusable` if the file is missing, damaged, or not what `header` says.

    The checksums in the file are checked, not its fingerprint.
    """
    with _opened(path) as file:
        about, expected = _about(file), asdict(header)
        for key in ("schema_version", "name", "params", "source_fingerprint", "transform_version"):
            if about[key] != expected[key]:
                # A file of another dataset cannot have got this name by an upgrade.
                raise Unusable(
                    "damaged" if key in ("name", "params") else "outdated",
                    f"{path}: {key} is {about[key]!r}, this release needs {expected[key]!r}",
                )
        return Stored(_content(file, about), str(about["fingerprint"]), _header(about))


def verify(path: Path, header: Header) -> Stored:
    """Read a dataset and compare its content with its fingerprint; raises `Unusable` as `read`."""
    found = read(path, header)
    got = fingerprint(found.content)
    if got != found.fingerprint:
        raise Unusable(
            "damaged",
            f"{path}: the content's fingerprint is {got}, its metadata say {found.fingerprint!r}",
        )
    return found


def read_header(path: Path) -> Header:
    """Read what a file says of itself, and nothing else of it; raises `Unusable`."""
    with _opened(path) as file:
        return _header(_about(file))


def partial_prefix(path: Path) -> str:
    """How the names of unfinished files that belong to `path` begin."""
    return f".{path.stem}.partial-"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        if not path.exists():
            raise Unusable("missing", f"{path}: not fetched yet")
        # Arrow checks the checksum of every page before it decodes it. A mapped file would count as
        # memory of the process.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise Unusable("damaged", f"{path}: not a dataset that can be read ({what})") from None


def _about(file: pq.ParquetFile) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(file.metadata.metadata[_KEY])
    stated = about.pop("checksum", None)
    if stated not in (None, _checksum(about)):
        raise ValueError("the metadata do not have their checksum")
    return about


def _checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _header(about: dict[str, Any]) -> Header:
    return Header(**{name: about[name] for name in Header.__annotations__ if name in about})


def _table(role: str, X: Any, y: Any) -> pa.Table:
    """Rows as columns, without a copy of their numbers where that is possible."""
    columns: dict[str, Any]
    if issparse(X):
        ends = pa.array(X.indptr, pa.int64())
        columns = {
            name: pa.LargeListArray.from_arrays(ends, items, type=pa.large_list(_element(items)))
            for name, items in (
                ("indices", pa.array(X.indices.astype(np.int32, copy=False))),
                ("values", pa.array(X.data)),
            )
        }
    else:
        items = pa.array(np.ascontiguousarray(X).ravel())
        kind = pa.list_(_element(items), X.shape[1])
        columns = {"X": pa.FixedSizeListArray.from_arrays(items, type=kind)}
    columns |= {"y": pa.array(y), "split": pa.repeat(role, len(y))}
    # Arrow reads columns without nulls markedly faster when the schema says so.
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _element(items: Any) -> pa.Field:
    return pa.field("element", items.type, nullable=False)


def _content(file: pq.ParquetFile, about: dict[str, Any]) -> Content:
    """All rows, a row group at a time: Arrow's copy of all of them would double the memory."""
    n_train, n, width = about["n_train"], about["n_train"] + about["n_test"], about["n_features"]
    sparse = "indices" in file.schema_arrow.names
    sizes = {"indices": about["n_stored"], "values": about["n_stored"]} if sparse else {}
    sizes = {**sizes, "y": n} if sparse else {"X": n * width, "y": n}
    arrays = {
        name: np.empty(size, _numbers_of(file.schema_arrow.field(name).type).to_pandas_dtype())
        for name, size in sizes.items()
    }
    lengths = np.zeros(n + 1, dtype=np.int64)
    done = dict.fromkeys(("rows", *sizes), 0)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, list(sizes), use_threads=False)
        for name, array in arrays.items():
            for chunk in table[name].chunks:
                if name == "indices":
                    rows = slice(done["rows"] + 1, done["rows"] + 1 + len(chunk))
                    lengths[rows] = chunk.value_lengths().to_numpy()
                    done["rows"] += len(chunk)
                items = chunk.flatten() if pa.types.is_nested(chunk.type) else chunk
                start, stop = done[name], done[name] + len(items)
                array[start:stop] = items.to_numpy(zero_copy_only=True)
                done[name] = stop
    for name, size in sizes.items():
        if done[name] != size or (sparse and done["rows"] != n):
            raise ValueError(f"the column {name!r} has not the numbers that the file tells")
        arrays[name].setflags(write=False)
    y = arrays["y"]
    if y.dtype not in (np.int8, np.int64):
        raise ValueError(f"the labels are of type {y.dtype}")
    train, test = slice(0, n_train), slice(n_train, n)
    if not sparse:
        X = arrays["X"].reshape(n, width)
        return Content(Part(X[train], y[train]), Part(X[test], y[test]))
    columns, data, indptr = arrays["indices"], arrays["values"], np.cumsum(lengths)
    # Compiled solvers do not check bounds, and the fingerprint does not know them.
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise ValueError(f"a feature is outside 0 to {width - 1}")
    return Content(
        *(
            Part(_csr(indptr[rows.start : rows.stop + 1], columns, data, width), y[rows])
            for rows in (train, test)
        )
    )


def _numbers_of(column: pa.DataType) -> pa.DataType:
    return column.value_type if pa.types.is_nested(column) else column


def _csr(indptr: Any, columns: Any, data: Any, width: int) -> csr_matrix:
    items = slice(indptr[0], indptr[-1])
    indptr = (indptr - indptr[0]).astype(columns.dtype if indptr[-1] < 2**31 else np.int64)
    X = cast(
        csr_matrix,
        csr_matrix((data[items], columns[items], indptr), shape=(len(indptr) - 1, width)),
    )
    # SciPy copies what is a small piece of a large array.
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X
