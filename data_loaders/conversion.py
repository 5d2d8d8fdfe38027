"""From a source to the cached file: fetch, parse, check, transform, write."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from . import store
from .content import check, fingerprint
from .errors import DataError
from .files import LocalFile, gather
from .parameters import Parameters
from .source import Source


def make_of_source(
    source: Source, params: Parameters, header: store.Header, path: Path, downloads: Path
) -> None:
    """Make the cached file of a source.

    Parameters
    ----------
    source : Source
    params : mapping
        All of its parameters, checked.
    header : Header
    path : Path
        The cached file; the caller holds its lock.
    downloads : Path
        The folder of its downloads, perhaps interrupted ones.

    Raises
    ------
    DataError
        If a file cannot be had, or the content is not what it should be.
    """
    files = gather(source.name, source.files, downloads, source.mirror_folder)
    try:
        _convert(source, params, header, path, files)
    except DataError:
        # Files that cannot be used must not be used again.
        shutil.rmtree(downloads, ignore_errors=True)
        raise
    shutil.rmtree(downloads, ignore_errors=True)


def _convert(
    source: Source,
    params: Parameters,
    header: store.Header,
    path: Path,
    files: Mapping[str, LocalFile],
) -> None:
    """Parse, check, transform and write."""
    try:
        raw = source.read(files, params)
    except MemoryError as error:
        raise DataError(f"{source.name}: does not fit into memory ({error})") from None
    if source.fingerprint is not None:
        got = fingerprint(raw)
        if got != source.fingerprint:
            origins = ", ".join(file.origin for file in files.values()) or source.format
            raise DataError(
                f"{source.name}: the content of {origins} is not the expected one: "
                f"expected fingerprint {source.fingerprint}, got {got}"
            )
    content = source.transform(raw, params)
    del raw  # as large as the content, and writing takes memory too
    check(content, source.name)
    store.write(path, header, content)
