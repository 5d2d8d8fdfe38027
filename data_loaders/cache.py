"""Loading datasets: from the cache where they are whole, from their source where not."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock
from platformdirs import user_cache_dir

from marginbench.data_loaders import store
from marginbench.data_loaders.content import Labels, Matrix, check, fingerprint
from marginbench.data_loaders.errors import CacheError, DataError, DataWarning
from marginbench.data_loaders.files import LocalFile, gather
from marginbench.data_loaders.parameters import Parameters
from marginbench.data_loaders.sources import Source, find

CACHE_VARIABLE = "MARGINBENCH_CACHE"
#: Seconds that the files of an interrupted download are kept.
_KEEP_S = 7 * 24 * 3600


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points and labels, split into a training and a test part.

    The arrays are read-only, those of a CSR matrix too: a solver that changed its input in place
    would spoil every later score. Slices of them share this; indexing with an array copies.

    Parameters
    ----------
    name : str
    params : dict
        All parameters; empty for a dataset that takes none.
    X_train, X_test : ndarray or csr_matrix, shape (n_train, d) and (n_test, d)
        C-contiguous float32 or float64, or CSR float32.
    y_train, y_test : ndarray, shape (n_train,) and (n_test,)
        int8 in {-1, +1}, or int64 classes.
    fingerprint : str
        SHA-256 of the content, equal for dense and sparse storage.
    citation : str
        BibTeX.
    licence : str
    """

    name: str
    params: Parameters
    X_train: Matrix
    y_train: Labels
    X_test: Matrix
    y_test: Labels
    fingerprint: str
    citation: str
    licence: str

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return int(self.X_train.shape[0])

    @property
    def n_test(self) -> int:
        """Number of test points."""
        return int(self.X_test.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X_train.shape[1])


@dataclass(frozen=True)
class Verification:
    """What stands in the cache for a dataset.

    Parameters
    ----------
    state : {"ok", "missing", "damaged", "outdated"}
        Outdated: whole, but made by another version of the source; `load` makes it anew.
    detail : str
        One line.
    path : Path
        The cached file, there or not.
    """

    state: Literal["ok", "missing", "damaged", "outdated"]
    detail: str
    path: Path


def load(
    name: str | Source,
    params: Mapping[str, object] | None = None,
    *,
    cache_dir: str | Path | None = None,
) -> Dataset:
    """Load a dataset, fetching it first where it is not cached.

    Parameters
    ----------
    name : str or Source
        A name of :func:`sources`, or a source of one's own.
    params : mapping, optional
        Parameters of the dataset; those left out have their defaults.
    cache_dir : path, optional
        By default the folder named by the environment variable MARGINBENCH_CACHE, or else the
        user's cache folder.

    Returns
    -------
    Dataset
        Verified against the fingerprint that was stored with it.

    Raises
    ------
    DataError
        If the name or a parameter is not valid, or the data cannot be had or are not what they
        should be.

    Warns
    -----
    DataWarning
        If the cached file was damaged and has been made anew.
    """
    entry = _Entry.of(name, params, cache_dir)
    stored = _obtain(entry)
    content = stored.content
    return Dataset(
        name=entry.source.name,
        params=entry.header.params,
        X_train=content.train.X,
        y_train=content.train.y,
        X_test=content.test.X,
        y_test=content.test.y,
        fingerprint=stored.fingerprint,
        citation=entry.source.citation,
        licence=entry.source.licence,
    )


def fetch(
    name: str | Source,
    params: Mapping[str, object] | None = None,
    *,
    cache_dir: str | Path | None = None,
) -> Path:
    """Make sure that a dataset is in the cache.

    Parameters
    ----------
    name : str or Source
        As in `load`.
    params : mapping, optional
        As in `load`.
    cache_dir : path, optional
        As in `load`.

    Returns
    -------
    Path
        The cached Parquet file, verified.

    Raises
    ------
    DataError
        As `load`.

    Warns
    -----
    DataWarning
        As `load`.
    """
    entry = _Entry.of(name, params, cache_dir)
    _obtain(entry)
    return entry.path


def verify(
    name: str | Source,
    params: Mapping[str, object] | None = None,
    *,
    cache_dir: str | Path | None = None,
) -> Verification:
    """Check the cached file of a dataset, and change nothing.

    Parameters
    ----------
    name : str or Source
        As in `load`.
    params : mapping, optional
        As in `load`.
    cache_dir : path, optional
        As in `load`.

    Returns
    -------
    Verification

    Raises
    ------
    DataError
        If the name or a parameter is not valid.
    """
    entry = _Entry.of(name, params, cache_dir)
    try:
        stored = store.verify(entry.path, entry.header)
    except store.Unusable as error:
        return Verification(error.state, str(error), entry.path)
    return Verification("ok", f"{entry.path}: fingerprint {stored.fingerprint}", entry.path)


@dataclass(frozen=True, eq=False)
class _Entry:
    """A dataset that is asked for, and its place in the cache."""

    source: Source
    header: store.Header
    path: Path

    @classmethod
    def of(
        cls,
        name: str | Source,
        params: Mapping[str, object] | None,
        cache_dir: str | Path | None,
    ) -> _Entry:
        source = name if isinstance(name, Source) else find(name)
        resolved = source.resolve(params)
        stem = source.name.replace(":", "+")  # not every file system takes a colon
        if resolved:
            digest = hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()
            stem += f"-{digest[:16]}"
        header = store.Header(source.name, resolved, source.fingerprint, source.transform_version)
        return cls(source, header, _folder(cache_dir) / f"{stem}.parquet")


def _folder(cache_dir: str | Path | None) -> Path:
    root = cache_dir or os.environ.get(CACHE_VARIABLE) or user_cache_dir("marginbench")
    return Path(root).expanduser().absolute() / "datasets"


def _obtain(entry: _Entry) -> store.Stored:
    """The content from the cache, after making the cached file anew where it is unusable."""
    try:
        return store.read(entry.path, entry.header)
    except store.Unusable:
        pass
    with _locked(entry) as downloads:
        # Another process may have made the file while this one waited.
        try:
            return store.read(entry.path, entry.header)
        except store.Unusable as error:
            unusable = error
        if unusable.state == "damaged":
            warnings.warn(
                f"{entry.source.name}: the cached file is damaged and will be made anew "
                f"({unusable})",
                DataWarning,
                stacklevel=3,
            )
        try:
            _make(entry, downloads)
            return store.read(entry.path, entry.header)
        except DataError as error:
            if unusable.state == "damaged":
                raise DataError(f"{error}; the cached file is damaged ({unusable})") from None
            raise
        except store.Unusable as error:
            raise DataError(
                f"{entry.source.name}: the file just written cannot be read ({error}); "
                "check the disk"
            ) from None


@contextlib.contextmanager
def _locked(entry: _Entry) -> Iterator[Path]:
    """Hold the lock of a cached file; yield its folder of downloads, perhaps interrupted ones."""
    folder = entry.path.parent
    downloads = folder / f".{entry.path.stem}.downloads"
    prefix = store.partial_prefix(entry.path)
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / f".{entry.path.stem}.lock"))
            # Whoever was killed with the lock in hand could not tidy up.
            for leftover in folder.glob(prefix + "*"):
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()
            if downloads.is_dir() and time.time() - downloads.stat().st_mtime > _KEEP_S:
                shutil.rmtree(downloads)
            downloads.mkdir(exist_ok=True)
            stack.callback(_remove_empty, downloads)
        except OSError as error:
            raise CacheError(
                f"{entry.source.name}: cannot write to the cache folder {folder} "
                f"({error.strerror or error}); set {CACHE_VARIABLE} to a folder that can be "
                "written"
            ) from None
        yield downloads


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is not empty, or gone
        folder.rmdir()


def _make(entry: _Entry, downloads: Path) -> None:
    """Fetch what is missing, and turn it into the cached file."""
    files = gather(entry.source.name, entry.source.files, downloads, entry.source.mirror_folder)
    try:
        _convert(entry, files)
    except DataError:
        # Files that cannot be used must not be used again.
        shutil.rmtree(downloads, ignore_errors=True)
        raise
    shutil.rmtree(downloads, ignore_errors=True)


def _convert(entry: _Entry, files: Mapping[str, LocalFile]) -> None:
    """Parse, check, transform and write."""
    source = entry.source
    try:
        raw = source.read(files, entry.header.params)
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
    content = source.transform(raw, entry.header.params)
    del raw  # as large as the content, and writing takes memory too
    check(content, source.name)
    store.write(entry.path, entry.header, content)
