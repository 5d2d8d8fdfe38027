"""The Parquet file of a dataset: written at once or not at all, verified whenever it is read.

One row per point, training part first. Columns: ``X``, a fixed-size list per row (dense), or
``indices`` (from 0) and ``values``, lists (sparse); ``y``; ``split``, "train" or "test". The
schema's metadata holds a JSON object under the key ``marginbench``: see `Header`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix, issparse

from marginbench.data_loaders.atomic import replacing
from marginbench.data_loaders.content import Content, Part, canonical, fingerprint
from marginbench.data_loaders.errors import CacheError, first_line
from marginbench.data_loaders.parameters import Value

SCHEMA_VERSION = 1
_KEY = b"marginbench"
#: Rows that are written, and read, together: fewer where they are wide, as Arrow needs several
#: times the memory of what it decodes.
_ROW_GROUP = 1 << 15
_ROW_GROUP_ENTRIES = 1 << 22

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
    schema_version : int
        Of this layout.
    """

    name: str
    params: dict[str, Value]
    source_fingerprint: str | None
    transform_version: int
    schema_version: int = SCHEMA_VERSION


class Unusable(Exception):
    """A file that does not hold the content that is asked for.

    Attributes
    ----------
    state : {"missing", "damaged", "outdated"}
        Outdated: whole, but made by another version of the source or of this layout.
    """

    def __init__(self, state: Literal["missing", "damaged", "outdated"], detail: str) -> None:
        super().__init__(detail)
        self.state = state


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
    table = _table(header, content)
    unfinished = path.with_name(partial_prefix(path) + "parquet")
    try:
        with replacing(path, unfinished) as sink:
            pq.write_table(
                table,
                sink,
                compression="zstd",
                use_dictionary=["split"],
                write_statistics=False,
                write_page_checksum=True,
                row_group_size=_row_group(content),
            )
    except OSError as error:
        raise CacheError(
            f"{header.name}: cannot write the cache file {path} ({error.strerror or error}); "
            "set MARGINBENCH_CACHE to a folder with room that can be written"
        ) from None


def partial_prefix(path: Path) -> str:
    """How the names of unfinished files that belong to `path` begin."""
    return f".{path.stem}.partial-"


def read(path: Path, header: Header) -> tuple[Content, str]:
    """Read a dataset and verify its fingerprint.

    Parameters
    ----------
    path : Path
    header : Header
        What the file should be.

    Returns
    -------
    content : Content
        Read-only arrays.
    fingerprint : str

    Raises
    ------
    Unusable
        If the file is missing, damaged or outdated.
    """
    try:
        if not path.exists():
            raise Unusable("missing", f"{path}: not fetched yet")
        # Arrow checks the checksum of every page before it decodes it.
        with pq.ParquetFile(path, memory_map=True, page_checksum_verification=True) as file:
            found = json.loads(file.schema_arrow.metadata[_KEY])
            _compare(path, found, header)
            names = file.schema_arrow.names
            dense = _dense_rows(file, found["n_features"]) if "X" in names else None
            table = file.read([name for name in names if name != "X"], use_threads=False)
        content = _content(table, dense, found["n_features"])
        stored, got = str(found["fingerprint"]), fingerprint(content)
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise Unusable("damaged", f"{path}: not a dataset that can be read ({what})") from None
    if got != stored:
        raise Unusable(
            "damaged",
            f"{path}: the content's fingerprint is {got}, its metadata say {stored!r}",
        )
    return content, got


def _row_group(content: Content) -> int:
    X = content.train.X
    width = 1 if issparse(X) else X.shape[1]
    return max(1, min(_ROW_GROUP, _ROW_GROUP_ENTRIES // width))


def _compare(path: Path, found: dict[str, Any], header: Header) -> None:
    expected = asdict(header)
    for key in ("schema_version", "name", "params", "source_fingerprint", "transform_version"):
        if found[key] != expected[key]:
            # A file of another dataset cannot have got this name by an upgrade.
            state: Literal["damaged", "outdated"] = (
                "damaged" if key in ("name", "params") else "outdated"
            )
            raise Unusable(
                state, f"{path}: {key} is {found[key]!r}, this release needs {expected[key]!r}"
            )


def _table(header: Header, content: Content) -> pa.Table:
    X, y = zip(*((part.X, part.y) for _, part in content.parts()), strict=True)
    columns: dict[str, pa.ChunkedArray] = {}
    if issparse(X[0]):
        rows = [canonical(part) for part in X]
        columns["indices"] = pa.chunked_array(
            [_lists(part.indptr, part.indices.astype(np.int32)) for part in rows]
        )
        columns["values"] = pa.chunked_array([_lists(part.indptr, part.data) for part in rows])
    else:
        columns["X"] = pa.chunked_array([_fixed_lists(part) for part in X])
    columns["y"] = pa.chunked_array([pa.array(part) for part in y])
    columns["split"] = pa.chunked_array(
        [pa.repeat(role, len(part.y)) for role, part in content.parts()]
    )
    about = asdict(header) | {
        "n_features": X[0].shape[1],
        "fingerprint": fingerprint(content),
    }
    # Arrow reads columns without nulls markedly faster when the schema says so.
    schema = pa.schema(
        [pa.field(name, column.type, nullable=False) for name, column in columns.items()],
        metadata={_KEY: json.dumps(about, sort_keys=True).encode()},
    )
    return pa.table(list(columns.values()), schema=schema)


def _lists(indptr: Any, items: Any) -> pa.LargeListArray:
    values = pa.array(items)
    kind = pa.large_list(pa.field("element", values.type, nullable=False))
    return pa.LargeListArray.from_arrays(pa.array(indptr, pa.int64()), values, type=kind)


def _fixed_lists(X: Any) -> pa.FixedSizeListArray:
    values = pa.array(np.ascontiguousarray(X).ravel())
    kind = pa.list_(pa.field("element", values.type, nullable=False), X.shape[1])
    return pa.FixedSizeListArray.from_arrays(values, type=kind)


def _dense_rows(file: pq.ParquetFile, width: int) -> Any:
    """The column X, a row group at a time: Arrow's copy of all of it would double the memory."""
    kind = file.schema_arrow.field("X").type.value_type
    X = np.empty((file.metadata.num_rows, width), dtype=kind.to_pandas_dtype())
    stop = 0
    for group in range(file.num_row_groups):
        for chunk in file.read_row_group(group, ["X"], use_threads=False)["X"].chunks:
            start, stop = stop, stop + len(chunk)
            X[start:stop] = _numbers(chunk.flatten()).reshape(-1, width)
    X.setflags(write=False)
    return X


def _content(table: pa.Table, X: Any, width: int) -> Content:
    is_test = pc.equal(table["split"], "test").combine_chunks().to_numpy(zero_copy_only=False)
    n_train = int(np.count_nonzero(~is_test))
    if is_test[:n_train].any():
        raise ValueError("the rows of the training and the test part are mixed")
    y = _numbers(table["y"].combine_chunks())
    if y.dtype not in (np.int8, np.int64):
        raise ValueError(f"the labels are of type {y.dtype}")
    if X is not None:
        return Content(Part(X[:n_train], y[:n_train]), Part(X[n_train:], y[n_train:]))
    indices, values = table["indices"].combine_chunks(), table["values"].combine_chunks()
    indptr = np.concatenate(([0], np.cumsum(_numbers(indices.value_lengths()))))
    columns, data = _numbers(indices.flatten()), _numbers(values.flatten())
    # Compiled solvers do not check bounds, and the fingerprint does not know them.
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise ValueError(f"a feature is outside 0 to {width - 1}")
    train, test = (
        Part(_csr(indptr[part.start : part.stop + 1], columns, data, width), y[part])
        for part in (slice(0, n_train), slice(n_train, len(y)))
    )
    return Content(train, test)


def _csr(indptr: Any, columns: Any, data: Any, width: int) -> csr_matrix:
    items = slice(indptr[0], indptr[-1])
    indptr = (indptr - indptr[0]).astype(columns.dtype if indptr[-1] < 2**31 else np.int64)
    X = csr_matrix((data[items], columns[items], indptr), shape=(len(indptr) - 1, width))
    # SciPy copies what is a small piece of a large array.
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X


def _numbers(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=True)
