"""Loading datasets: from the cache where they are whole, from their source where not."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from filelock import FileLock
from platformdirs import user_cache_dir

from . import store
from .content import Labels, Matrix, check, fingerprint
from .errors import CacheError, DataError, DataWarning, within_memory
from .files import gather
from .parameters import Parameters
from .sources import Source, sources

CACHE_VARIABLE = "MARGINBENCH_CACHE"


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
        BibTeX; empty for one's own data.
    licence : str
    decided : tuple of str
        What was decided when one's own data were read, a line each: target and classes, split,
        features, missing values, scale. Empty for registered datasets.
    default_gamma : float or None
        The registered kernel width; None for one's own data.
    new : bool
        Whether this call made the cached file.
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
    decided: tuple[str, ...] = ()
    default_gamma: float | None = None
    new: bool = False

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
    """The state of a dataset in the cache.

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
    name: str | Path | Source,
    params: Mapping[str, object] | None = None,
    *,
    folder: str | Path | None = None,
    cache_dir: str | Path | None = None,
) -> Dataset:
    """Load a dataset, fetching it first where it is not cached.

    Parameters
    ----------
    name : str, Path or Source
        A name of :func:`sources`, or one's own data: an imported name, the path of a file or of a
        folder with a training and a test file, "file.py:name", or a source.
    params : mapping, optional
        Parameters of the dataset, or options of one's own data; those left out have their
        defaults.
    folder : path, optional
        Where the path of one's own file begins if it is relative; by default the current folder.
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
    entry = _entry_of(name, params, folder, cache_dir)
    stored, new = _obtain(entry)
    content = stored.content
    return Dataset(
        name=entry.name,
        params=entry.params,
        X_train=content.train.X,
        y_train=content.train.y,
        X_test=content.test.X,
        y_test=content.test.y,
        fingerprint=stored.fingerprint,
        citation=entry.citation,
        licence=entry.licence,
        decided=tuple(stored.header.decided),
        default_gamma=entry.default_gamma,
        new=new,
    )


def fetch(
    name: str | Path | Source,
    params: Mapping[str, object] | None = None,
    *,
    folder: str | Path | None = None,
    cache_dir: str | Path | None = None,
) -> Path:
    """Make sure that a dataset is in the cache.

    Parameters
    ----------
    name, params, folder, cache_dir
        As in `load`, which says what is raised, too.

    Returns
    -------
    Path
        The cached Parquet file, verified.
    """
    entry = _entry_of(name, params, folder, cache_dir)
    _obtain(entry)
    return entry.path


def verify(
    name: str | Path | Source,
    params: Mapping[str, object] | None = None,
    *,
    folder: str | Path | None = None,
    cache_dir: str | Path | None = None,
) -> Verification:
    """Check the cached file of a dataset, and change nothing.

    Parameters
    ----------
    name, params, folder, cache_dir
        As in `load`.

    Raises
    ------
    DataError
        If the name or a parameter is not valid.
    """
    entry = _entry_of(name, params, folder, cache_dir)
    try:
        stored = store.verify(entry.path, entry.header)
    except store.Unusable as error:
        return Verification(error.state, str(error), entry.path)
    return Verification("ok", f"{entry.path}: fingerprint {stored.fingerprint}", entry.path)


@dataclass(frozen=True, eq=False)
class Entry:
    """A requested dataset, its file in the cache, and how that is made.

    ``make(downloads)`` is called with the lock of the file held, and with the folder of its
    downloads, perhaps interrupted ones.
    """

    name: str
    params: Parameters
    header: store.Header | None  # what the file must say of itself
    path: Path
    make: Callable[[Path], None]
    citation: str = ""
    licence: str = ""
    default_gamma: float | None = None


def _entry_of(
    name: str | Path | Source,
    params: Mapping[str, object] | None,
    folder: str | Path | None,
    cache_dir: str | Path | None,
) -> Entry:
    if not isinstance(name, str | Path | Source):
        raise DataError(
            f"a dataset is a name, a path or a Source, got {type(name).__name__}; import_data "
            "gives arrays and tables a name"
        )
    datasets = datasets_folder(cache_dir)
    registered = {source.name: source for source in sources()}
    if isinstance(name, Path):
        name = f"./{name}" if str(name) in registered else str(name)
    source = name if isinstance(name, Source) else registered.get(str(name))
    if source is None:
        # Imported here: registered datasets need none of it.
        from .own.importing import entry_of

        return entry_of(str(name), params, folder, datasets)
    resolved = source.resolve(params)
    stem = source.name
    if resolved:
        digest = hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()
        stem += f"-{digest[:16]}"
    header = store.Header(source.name, resolved, source.fingerprint, source.transform_version)
    path = datasets / f"{stem}.parquet"
    return Entry(
        source.name,
        resolved,
        header,
        path,
        partial(make_of_source, source, resolved, header, path),
        source.citation,
        source.licence,
        source.default_gamma,
    )


def make_of_source(
    source: Source, params: Parameters, header: store.Header, path: Path, downloads: Path
) -> None:
    """Make the cached file of a source: fetch, parse, check, transform, write.

    The caller holds the lock of `path`; `downloads` may hold interrupted ones. Raises `DataError`
    if a file cannot be had, or the content is not what it should be.
    """
    files = gather(source.name, source.files, downloads, source.mirror_folder)
    try:
        with within_memory(source.name):
            raw = source.read(files, params)
            got = source.fingerprint and fingerprint(raw)
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
    except DataError:
        # Files that cannot be used must not be used again.
        shutil.rmtree(downloads, ignore_errors=True)
        raise
    shutil.rmtree(downloads, ignore_errors=True)


def datasets_folder(cache_dir: str | Path | None = None) -> Path:
    """The folder of the cached files."""
    root = cache_dir or os.environ.get(CACHE_VARIABLE) or user_cache_dir("marginbench")
    return Path(root).expanduser().absolute() / "datasets"


def _obtain(entry: Entry) -> tuple[store.Stored, bool]:
    """The content of the cached file, and whether it was unusable and made anew."""
    try:
        return store.read(entry.path, entry.header), False
    except store.Unusable:
        pass
    with locked(entry.path, entry.name) as downloads:
        # Another process may have made the file while this one waited.
        try:
            return store.read(entry.path, entry.header), False
        except store.Unusable as error:
            unusable = error
        if unusable.state == "damaged":
            warnings.warn(
                f"{entry.name}: the cached file is damaged and will be made anew ({unusable})",
                DataWarning,
                stacklevel=3,
            )
        try:
            entry.make(downloads)
            return store.verify(entry.path, entry.header), True
        except store.Unusable as error:
            raise DataError(
                f"{entry.name}: the file just written cannot be read ({error}); check the disk"
            ) from None


@contextlib.contextmanager
def locked(path: Path, name: str) -> Iterator[Path]:
    """Hold the lock of a cached file; yield its folder of downloads, perhaps interrupted ones."""
    folder = path.parent
    downloads = folder / f".{path.stem}.downloads"
    prefix = store.partial_prefix(path)
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / f".{path.stem}.lock"))
            # Whoever was killed with the lock in hand could not tidy up.
            for leftover in folder.glob(prefix + "*"):
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()
            downloads.mkdir(exist_ok=True)
            stack.callback(_remove_empty, downloads)
        except OSError as error:
            raise CacheError.of(name, f"write to the cache folder {folder}", error) from None
        yield downloads


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is not empty, or gone
        folder.rmdir()
