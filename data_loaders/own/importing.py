"""One's own data in the cache: of files and code by content, of imported data by name."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import store
from ..cache import Entry, datasets_folder, locked, make_of_source
from ..errors import CacheError, DataError, first_line, suggest, within_memory
from ..files import BYTES_VARIABLE, LocalFile, max_bytes
from ..sources import Source, sources, unknown
from ..user_code import import_file, module_name
from .finding import Own, find_own, format_of, is_own
from .options import VERSION, Options
from .words import printable

if TYPE_CHECKING:
    from .tables import Table

_FILES, _IMPORTED = "own", "imported"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


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
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(
            f"dataset name {name!r}: use up to 80 lower-case letters, digits, hyphens and "
            "underscores"
        )
    if name in (source.name for source in sources()):
        raise DataError(f"dataset name {name!r}: is that of a registered dataset; take another")
    path = datasets_folder(cache_dir) / _IMPORTED / f"{name}.parquet"
    with locked(path, name):
        if path.exists() and not replace:
            raise DataError(
                f"{name}: was imported before; remove it with 'marginbench data remove {name}', or "
                "replace it"
            )
        given = [each is not None for each in (y, X_test, y_test)]
        if isinstance(X, str | Path):
            if any(given):
                raise DataError(f"{name}: a path comes without y, X_test and y_test")
            own = find_own(str(X), options)
            _make(own, store.Header(name, own.identity(), None, VERSION), path, None)
            return name
        if given not in ([False] * 3, [True, False, False], [True] * 3):
            raise DataError(f"{name}: give both X_test and y_test, or none, and y with them")
        checked = Options.of(options, name)
        made = X if y is None else (X, y) if X_test is None else (X, y, X_test, y_test)
        header = store.Header(name, {"options": checked.identity()}, None, VERSION)  # type: ignore[dict-item]
        _write_made(path, header, made, name, checked)
    return name


def imported(cache_dir: str | Path | None = None) -> list[Imported]:
    """All imported data, by name."""
    return [imported_info(name, cache_dir) for name in imported_names(datasets_folder(cache_dir))]


def imported_info(name: str, cache_dir: str | Path | None = None) -> Imported:
    """The header of imported data; `DataError` if there are none of this name."""
    path = _existing(name, cache_dir)
    size = path.stat().st_size
    try:
        header = store.read_header(path)
    except store.Unusable:
        return Imported(name, "damaged", size, ())
    return Imported(name, "ok", size, tuple(map(str, header.decided)))


def remove_imported(name: str, cache_dir: str | Path | None = None) -> None:
    """Remove imported data from the cache; `DataError` if there are none of this name."""
    path = _existing(name, cache_dir)
    with locked(path, name):
        path.unlink(missing_ok=True)


def imported_names(datasets: Path) -> Iterator[str]:
    """The names of all imported data in a folder of cached files."""
    folder = datasets / _IMPORTED
    try:
        paths = sorted(folder.glob("*.parquet"))
    except OSError as error:
        raise CacheError.of("imported data", f"read {folder}", error) from None
    return (path.stem for path in paths if _NAME.fullmatch(path.stem))


def entry_of(
    name: str, params: Mapping[str, object] | None, folder: str | Path | None, datasets: Path
) -> Entry:
    """The entry of a name that is not registered: of imported data, a path, or "file.py:name".

    A relative path begins in `folder`. Raises `DataError` if there is nothing of that name.
    """
    path = datasets / _IMPORTED / f"{name}.parquet"
    if _NAME.fullmatch(name) and path.is_file():
        if params:
            raise DataError(
                f"{name}: was imported with its options; it takes none now, got {min(params)!r}"
            )
        return Entry(name, {}, None, path, partial(_refuse_to_make, name))
    if not is_own(name, folder):
        names = [*(source.name for source in sources()), *imported_names(datasets)]
        raise DataError(unknown(name, names))
    own = find_own(name, params, folder)
    identity = own.identity()
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=repr).encode())
    path = datasets / _FILES / f"{digest.hexdigest()[:32]}.parquet"
    # The path of the file is no part of it: a file that moved stays the same data.
    header = store.Header(_FILES, identity, None, VERSION)
    return Entry(name, dict(own.params), header, path, partial(_make, own, header, path))


def _existing(name: str, cache_dir: str | Path | None) -> Path:
    datasets = datasets_folder(cache_dir)
    names = list(imported_names(datasets))
    if name not in names:
        raise DataError(f"nothing was imported as {name!r}{suggest(name, names)}")
    return datasets / _IMPORTED / f"{name}.parquet"


def _refuse_to_make(name: str, downloads: Path) -> None:
    raise DataError(f"{name}: was imported; import it again with 'marginbench data import'")


def _make(own: Own, header: store.Header, path: Path, downloads: Path | None) -> None:
    """Make the cached file of files or code; the caller holds its lock.

    There are no `downloads` for what is imported.
    """
    if own.options is None:
        _check_unchanged(own, header)
        made = _result_of(own)
        if not isinstance(made, Source):
            _write_made(path, header, made, own.name, Options.of(own.params, own.name))
            return
        if downloads is None:
            raise DataError(f"{own.name}: is a source, which needs no import; use it as a dataset")
        decided = [f"source: {made.summary} ({made.format})", f"split: {made.split}"]
        header = replace(header, decided=list(map(printable, decided)))
        make_of_source(made, made.resolve(own.params), header, path, downloads)
        return
    # Imported here: a file that is cached needs none of it.
    from .formats import read

    with within_memory(own.name):
        tables = []
        for file in own.files:
            local = replace(file, max_bytes=_most_bytes(file))
            tables += read(local, format_of(file, own.options), own.options)
        _check_unchanged(own, header)
        _write(path, header, tables, own.options)


def _check_unchanged(own: Own, header: store.Header) -> None:
    made_of: Any = header.params["made_of"]
    if own.hashes() != made_of:
        raise DataError(f"{own.name}: changed while it was read; run the command again")


def _most_bytes(file: LocalFile) -> int:
    """The most bytes that are read into memory, packed or not; refuses a file of more."""
    import psutil

    limit = max_bytes(psutil.virtual_memory().total // 4)
    size = file.path.stat().st_size
    if size > limit:
        raise DataError(
            f"{file.origin}: {size} bytes; data are read into memory, at most {limit} bytes of a "
            f"file on this machine (a quarter of the memory, or {BYTES_VARIABLE})"
        )
    return limit


def _result_of(code: Own) -> Any:
    """What a user's code makes: the object of that name, or what the function of it returns."""
    path = code.files[0].path.resolve()
    try:
        made = getattr(import_file(path, "data_"), code.attribute)
        return made() if callable(made) else made
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's code may raise anything, and exit
        raise DataError(
            f"{code.name}: raised {type(error).__name__}: {first_line(error)}"
        ) from None
    finally:
        # An edited file must not meet the module that it was.
        sys.modules.pop(module_name(path, "data_"), None)


def _write_made(path: Path, header: store.Header, made: Any, origin: str, options: Options) -> None:
    from .tables import tables_of

    if options.test_file:
        raise DataError(f"{origin}: give a test part in arrays instead of test = {options.test!r}")
    with within_memory(origin):
        _write(path, header, tables_of(made, origin), options)


def _write(path: Path, header: store.Header, tables: list[Table], options: Options) -> None:
    """Make features and labels of tables and write them; the caller holds the lock of `path`."""
    from .columns import content_of

    by_options = options.split != "" or options.last_rows is not None
    if len(tables) > 2 or (len(tables) > 1 and by_options):
        raise DataError(f"{tables[0].origin}: has a test part already; remove test or split")
    content, decided = content_of(tables, options)
    store.write(path, replace(header, decided=list(map(printable, decided))), content)
