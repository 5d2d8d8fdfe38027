"""Data that are brought into the cache under a name, and live there alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import store
from ..cache import datasets_folder, locked
from ..errors import DataError, suggest
from ..source import Source
from ..sources import sources
from .entries import (
    imported_names,
    imported_path,
    new_imported_path,
)
from .finding import Code, find_own
from .options import Options


def import_data(
    name: str,
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    replace: bool = False,
    cache_dir: str | Path | None = None,
    **options: Any,
) -> str:
    """Put data of one's own into the cache under a name that `load` and studies take.

    Parameters
    ----------
    name : str
        Lower-case letters, digits, hyphens and underscores; not that of a registered dataset.
    X : array, sparse matrix, table, Bunch, or path
        Points; or points and classes together: a table of pandas, polars or Arrow with the target
        among its columns, a Bunch of scikit-learn, or the path of a file.
    y : array, optional
        The class of each row of X.
    X_test, y_test : array, optional
        A test part; without it, one is drawn as the options say.
    replace : bool
        Whether data that were imported under this name before are replaced.
    cache_dir : path, optional
        As in :func:`load`.
    **options
        See ``docs/your-data.md``: ``target``, ``positive``, ``missing``, ``scale`` and so on.

    Returns
    -------
    str
        The name.

    Raises
    ------
    DataError
        If the name is taken or not valid, or the data or an option are not what they should be.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from marginbench import import_data, load
    >>> name = import_data("wine", load_wine(), positive=1, replace=True)
    >>> load(name).n_features
    13
    """
    datasets = datasets_folder(cache_dir)
    registered = tuple(source.name for source in sources())
    path = new_imported_path(name, datasets, registered)
    with locked(path, name):
        if path.exists() and not replace:
            raise DataError(
                f"{name}: was imported before; remove it with 'marginbench data remove {name}', or "
                "replace it"
            )
        if isinstance(X, str | Path):
            if y is not None or X_test is not None or y_test is not None:
                raise DataError(f"{name}: a path comes without y, X_test and y_test")
            _import_path(name, str(X), options, path)
        else:
            checked = Options.of(options, name)
            if checked.test_file:
                raise DataError(f"{name}: give X_test and y_test instead of a test file")
            # Imported here, as below: loading registered datasets needs no readers of tables.
            from .making import write

            parts = _parts(name, X, y, X_test, y_test)
            write(path, name, {"options": checked.identity()}, parts, checked)
    return name


@dataclass(frozen=True)
class Imported:
    """Imported data as their file describes them.

    Attributes
    ----------
    name : str
    state : {"ok", "damaged"}
        By the head of the file alone.
    size_bytes : int
    decided : tuple of str
        A line each.
    """

    name: str
    state: str
    size_bytes: int
    decided: tuple[str, ...]


def imported(cache_dir: str | Path | None = None) -> list[Imported]:
    """All imported data, by name.

    Parameters
    ----------
    cache_dir : path, optional
        As in :func:`load`.
    """
    datasets = datasets_folder(cache_dir)
    return [imported_info(name, cache_dir) for name in imported_names(datasets)]


def imported_info(name: str, cache_dir: str | Path | None = None) -> Imported:
    """What the file of imported data says of itself.

    Raises
    ------
    DataError
        If there are none of this name.
    """
    path = _existing(name, datasets_folder(cache_dir))
    size = path.stat().st_size
    try:
        header = store.read_header(path)
    except store.Unusable:
        return Imported(name, "damaged", size, ())
    return Imported(name, "ok", size, tuple(map(str, header.decided)))


def remove_imported(name: str, cache_dir: str | Path | None = None) -> None:
    """Remove imported data from the cache.

    Raises
    ------
    DataError
        If there are none of this name.
    """
    path = _existing(name, datasets_folder(cache_dir))
    with locked(path, name):
        for each in (path, store.stamp_path(path)):
            each.unlink(missing_ok=True)


def _existing(name: str, datasets: Path) -> Path:
    path = imported_path(name, datasets)
    if path is None:
        known = list(imported_names(datasets))
        raise DataError(f"nothing was imported as {name!r}{suggest(name, known)}")
    return path


def _import_path(name: str, place: str, options: Mapping[str, Any], path: Path) -> None:
    from .making import make_of_files, parts_of, result_of, write

    found = find_own(place, options)
    identity = found.identity()
    if isinstance(found, Code):
        result = result_of(found)
        if isinstance(result, Source):
            raise DataError(f"{place}: is a source, which needs no import; use it as a dataset")
        checked = Options.of(options, place)
        write(path, name, identity, parts_of(result, place), checked)
    else:
        make_of_files(found, path, name, identity)


def _parts(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> Any:
    from .arrays import parts_of_arrays, rows_of_arrays
    from .making import parts_of

    if y is None:
        if X_test is not None or y_test is not None:
            raise DataError(f"{name}: X_test and y_test need y")
        return parts_of(X, name)
    if (X_test is None) != (y_test is None):
        raise DataError(f"{name}: give both X_test and y_test, or none of them")
    if X_test is None:
        return rows_of_arrays(X, y, name), None
    return parts_of_arrays(X, y, X_test, y_test, name)
