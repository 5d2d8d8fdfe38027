"""Places of one's own data in the cache: of files and code by content, of imported data by name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from .. import store
from ..cache import Entry, make_of_source
from ..errors import CacheError, DataError, suggest
from ..source import Source
from .blocks import printable
from .finding import Code, find_own, is_own
from .options import VERSION, Options

_FILES, _IMPORTED = "own", "imported"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def entry_of(
    name: str,
    params: Mapping[str, object] | None,
    folder: str | Path | None,
    datasets: Path,
    registered: tuple[str, ...],
) -> Entry:
    """The entry of a name that is not registered.

    Parameters
    ----------
    name : str
        That of imported data, a path, or "file.py:name".
    params : mapping or None
        Options.
    folder : path or None
        Where a relative path begins.
    datasets : Path
        The folder of the cached files.
    registered : tuple of str
        For the message about an unknown name.

    Raises
    ------
    DataError
        If there is nothing of that name.
    """
    if imported_path(name, datasets) is not None:
        return _imported_entry(name, params, datasets)
    if not isinstance(name, str) or not is_own(name, folder):
        known = (*registered, *imported_names(datasets))
        raise DataError(f"unknown dataset {name!r}{suggest(name, known)}")
    options: dict[str, Any] = dict(params or {})
    found = find_own(name, params, folder)
    identity = found.identity()
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode())
    path = datasets / _FILES / f"{digest.hexdigest()[:32]}.parquet"
    # The path of the file is no part of it: a file that moved stays the same data.
    header = store.Header(_FILES, identity, None, VERSION)
    if isinstance(found, Code):
        return Entry(name, options, header, path, partial(_make_of_code, found, header, path))

    def make(downloads: Path) -> None:
        from .making import make_of_files

        make_of_files(found, path, _FILES, identity)

    return Entry(name, options, header, path, make)


def imported_path(name: str, datasets: Path) -> Path | None:
    """The file of imported data; None if there is none of that name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    path = datasets / _IMPORTED / f"{name}.parquet"
    return path if path.is_file() else None


def new_imported_path(name: str, datasets: Path, registered: tuple[str, ...]) -> Path:
    """Where data are kept that are imported under a name.

    Raises
    ------
    DataError
        If the name is not valid, or that of a registered dataset.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(
            f"dataset name {name!r}: use up to 80 lower-case letters, digits, hyphens and "
            "underscores"
        )
    if name in registered:
        raise DataError(f"dataset name {name!r}: is that of a registered dataset; take another")
    return datasets / _IMPORTED / f"{name}.parquet"


def imported_names(datasets: Path) -> Iterator[str]:
    """The names of all imported data."""
    try:
        paths = sorted((datasets / _IMPORTED).glob("*.parquet"))
    except OSError as error:
        raise CacheError(
            f"{datasets / _IMPORTED}: cannot be read ({error.strerror or error}); set "
            "MARGINBENCH_CACHE to a folder that can be"
        ) from None
    for path in paths:
        if _NAME.fullmatch(path.stem):
            yield path.stem


def _imported_entry(name: str, params: Mapping[str, object] | None, datasets: Path) -> Entry:
    if params:
        raise DataError(
            f"{name}: was imported with its options; it takes none now, got {min(params)!r}"
        )
    path = datasets / _IMPORTED / f"{name}.parquet"

    def make(downloads: Path) -> None:
        raise DataError(f"{name}: was imported; import it again with 'marginbench data import'")

    try:
        header = store.read_header(path)
    except store.Unusable:
        header = store.Header(name, {}, None, VERSION)
    return Entry(name, {}, header, path, make)


def _make_of_code(code: Code, header: store.Header, path: Path, downloads: Path) -> None:
    from .making import parts_of, result_of, write

    made_of: Any = header.params["made_of"]
    if [code.file.sha256()] != made_of:
        raise DataError(f"{code.name}: changed while it was read; run the command again")
    result = result_of(code)
    if isinstance(result, Source):
        told = [f"source: {result.summary} ({result.format})", f"split: {result.split}"]
        told = list(map(printable, told))
        params = result.resolve(code.params)
        make_of_source(result, params, replace(header, decided=told), path, downloads)
        return
    options = Options.of(code.params, code.name)
    if options.test_file:
        raise DataError(f"{code.name}: return four arrays instead of test = {options.test!r}")
    write(path, header.name, header.params, parts_of(result, code.name), options)
