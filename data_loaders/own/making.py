"""From one's own data to the cached file."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import vstack

from .. import store
from ..content import Content, Part
from ..errors import DataError, first_line
from ..files import LocalFile
from ..streams import reading
from . import sparse_rows, tables
from .arff_table import read_arff
from .arrays import (
    Parts,
    parts_of_arrays,
    parts_of_mapping,
    read_npz,
    read_parquet,
    rows_of_arrays,
    table_of_frame,
)
from .blocks import SparseRows, Table, printable, spool
from .csv_table import read_csv
from .finding import Code, Files, OwnFile
from .libsvm_rows import read_libsvm
from .options import VERSION, Options

#: How files begin that are packed.
_PACKED = (b"BZh", b"\x1f\x8b", b"\xfd7zXZ\x00")


def make_of_files(found: Files, path: Path, name: str, params: Mapping[str, Any]) -> None:
    """Make the cached file of a user's files.

    Parameters
    ----------
    found : Files
    path : Path
        The cached file; the caller holds its lock.
    name, params : str, mapping
        Of its header; the caller took the hashes of the files that are in `params`.

    Raises
    ------
    DataError
        If the files are not what they should be, or change meanwhile.
    """
    stamps = [file.stamp() for file in found.files]
    if [file.sha256() for file in found.files] != params["made_of"]:
        raise _changed(found.name)
    with _unpacked(found.files, found.options, path) as unpacked:
        parts = [
            _read(file, local, found.options)
            for file, local in zip(found.files, unpacked, strict=True)
        ]
        if len(parts) > 1 and any(part[1] is not None for part in parts):
            raise DataError(f"{found.name}: has a test part already; remove test")
        train = parts[0][0]
        test = parts[1][0] if len(parts) > 1 else parts[0][1]
        write(path, name, params, (train, test), found.options)
        if [file.stamp() for file in found.files] != stamps:
            path.unlink(missing_ok=True)
            raise _changed(found.name)


def result_of(code: Code) -> Any:
    """What a user's code makes: the object of that name, or what the function of it returns.

    Raises
    ------
    DataError
        If importing or calling it raises, or there is no such name.
    """
    path = code.file.path.resolve()
    name = f"_marginbench_data_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if str(path.parent) not in sys.path:
        # As for a script: the modules beside the file come first.
        sys.path.insert(0, str(path.parent))
    description = importlib.util.spec_from_file_location(name, path)
    if description is None or description.loader is None:
        raise DataError(f"{code.file.name}: not a Python file")
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module
    try:
        description.loader.exec_module(module)
        found = getattr(module, code.attribute)
        return found() if callable(found) else found
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, and exit
        raise DataError(
            f"{code.name}: raised {type(error).__name__}: {first_line(error)}"
        ) from None
    finally:
        # An edited file must not meet the module that it was.
        sys.modules.pop(name, None)


def parts_of(result: Any, origin: str) -> Parts:
    """The parts that an object is.

    Parameters
    ----------
    result : object
        A Bunch or another mapping of arrays, (X, y), (X_train, y_train, X_test, y_test), or a
        table of pandas, polars or Arrow.
    origin : str

    Raises
    ------
    DataError
        If it is none of these.
    """
    if isinstance(result, Mapping):
        return parts_of_mapping(result, origin)
    if isinstance(result, tuple | list):
        if len(result) == 2:
            return rows_of_arrays(result[0], result[1], origin), None
        if len(result) == 4:
            X_train, y_train, X_test, y_test = result
            return parts_of_arrays(X_train, y_train, X_test, y_test, origin)
    elif hasattr(result, "columns") or hasattr(result, "__arrow_c_stream__"):
        return table_of_frame(result, origin), None
    raise DataError(
        f"{origin}: is a {type(result).__name__}; expected a table, a Bunch, (X, y), or (X_train, "
        "y_train, X_test, y_test)"
    )


def write(path: Path, name: str, params: Mapping[str, Any], parts: Parts, options: Options) -> None:
    """Prepare the parts and write them to the cached file.

    Parameters
    ----------
    path : Path
        The cached file; the caller holds its lock.
    name, params : str, mapping
        Of its header.
    parts : tuple
    options : Options

    Raises
    ------
    DataError
    """
    given = [tables.with_numbers(part, options) for part in parts if part is not None]
    if len({isinstance(part, SparseRows) for part in given}) > 1:
        raise DataError(f"{given[1].origin}: one part is a table and the other one sparse rows")
    if len(given) > 1 and (options.test or options.split != ""):
        option = "test" if options.test_file == "" and options.test else "split"
        if options.split != "" or options.last_rows is not None:
            raise DataError(f"{given[0].origin}: has a test part already; remove {option}")
    with contextlib.ExitStack() as stack:
        spooled = []
        try:
            for part, role in zip(given, ("train", "test"), strict=False):
                place = path.with_name(f"{store.partial_prefix(path)}{role}.arrow")
                stack.callback(place.unlink, missing_ok=True)
                spooled.append(spool(part, place))
            _write_prepared(path, name, params, spooled, options)
        except MemoryError as error:
            raise DataError(f"{given[0].origin}: does not fit into memory ({error})") from None


def _write_prepared(
    path: Path, name: str, params: Mapping[str, Any], spooled: Sequence[Any], options: Options
) -> None:
    sparse = spooled[0].sparse
    prepared: tables.Prepared | sparse_rows.Prepared = (
        sparse_rows.prepare(spooled, options) if sparse else tables.prepare(spooled, options)
    )
    decided = list(map(printable, prepared.decided))
    header = store.Header(name, dict(params), None, VERSION, decided)
    parts = []
    for role in ("train", "test"):
        blocks = list(prepared.parts(role))
        stack = vstack if prepared.sparse else np.vstack
        y = np.concatenate([block.y for block in blocks])
        parts.append(Part(stack([block.X for block in blocks]), y))
    store.write(path, header, Content(*parts))


def _read(file: OwnFile, local: LocalFile, options: Options) -> Parts:
    format = file.format(options)
    if format == "npz":
        return read_npz(local.path, file.name)
    source: Table | SparseRows
    if format == "parquet":
        source = read_parquet(local.path, file.name)
    elif format == "arff":
        source = read_arff(local)
    elif format == "libsvm":
        source = read_libsvm(local)
    else:
        source = read_csv(local, options, format)
    return source, None


@contextlib.contextmanager
def _unpacked(files: Sequence[OwnFile], options: Options, path: Path) -> Iterator[list[LocalFile]]:
    """The files as they can be read; formats that are not streams of text are unpacked first."""
    with contextlib.ExitStack() as stack:
        local = []
        for number, file in enumerate(files):
            found = LocalFile(file.path, file.name)
            if file.format(options) in ("npz", "parquet") and _is_packed(file):
                place = path.with_name(f"{store.partial_prefix(path)}unpacked-{number}")
                stack.callback(place.unlink, missing_ok=True)
                with reading(found) as stream, place.open("wb") as sink:
                    shutil.copyfileobj(stream, sink, 1 << 20)
                found = LocalFile(place, file.name)
            local.append(found)
        yield local


def _is_packed(file: OwnFile) -> bool:
    with file.path.open("rb") as stream:
        return stream.read(6).startswith(_PACKED)


def _changed(name: str) -> DataError:
    return DataError(f"{name}: changed while it was read; run the command again")
