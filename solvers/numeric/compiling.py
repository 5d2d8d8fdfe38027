"""How functions of this package are compiled, and where their machine code is kept.

numba's cache on disk watches only the file of a function, but machine code also holds the functions
of other files that it calls. Here it watches all files that the function's module imports, so that
an edit compiles anew what can have changed by it, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from filelock import FileLock
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys
from numba.core.types.containers import BaseTuple
from platformdirs import user_cache_dir

Function = Callable[..., Any]

_SOURCES = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r"^\s*from (\.+)([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
# Machine code of other states of a function stays so long: several checkouts may share a cache.
_KEPT_SECONDS = 7 * 24 * 3600.0
_LOCK_SECONDS = 10.0
#: 0, but no literal: numba compiles a function once more for each literal that is passed to it.
ZERO: Any = np.int64(0)


def njit(**options: Any) -> Callable[[Function], Function]:
    """``numba.njit`` with machine code kept on disk, for functions of this package.

    A function from outside the package is compiled in every process: its sources are not watched.
    """

    def compiled(function: Function) -> Function:
        dispatcher: Any = numba.njit(**options)(function)
        file = Path(function.__code__.co_filename).resolve()
        if file.is_relative_to(_SOURCES) and file.is_file() and not config.DISABLE_JIT:
            dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled


@cache
def cache_folder() -> Path:
    """The folder of machine code, which may not exist.

    It is in ``NUMBA_CACHE_DIR`` if that is set, else with the datasets in ``MARGINBENCH_CACHE``, or
    in the user's cache folder.
    """
    kept = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
    root = config.CACHE_DIR or os.path.join(kept, "compiled")
    return Path(os.path.expanduser(root)).absolute() / "marginbench"


@cache
def sources_stamp(file: Path) -> str:
    """A hash of a file, of those that it imports, and of what compiles them."""
    reached: dict[Path, str] = {}
    waiting = [file]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached[file], imported = _read(file)
            waiting += imported
    contents = sorted(
        (file.relative_to(_SOURCES).as_posix(), text) for file, text in reached.items()
    )
    libraries = (numba.__version__, llvmlite.__version__, np.__version__)
    return hashlib.sha256(repr((libraries, contents)).encode()).hexdigest()[:32]


@cache
def _read(file: Path) -> tuple[str, list[Path]]:
    """The hash of a file as this process first saw it, and the files that it imports."""
    content = file.read_bytes()
    imported = []
    for dots, module, names in _IMPORT.findall(content.decode()):
        base = file.parents[len(dots) - 1].joinpath(*module.split("."))
        candidates = [base.with_suffix(".py") if module else base, base / "__init__.py"]
        candidates += [base / f"{name}.py" for name in re.findall(r"\w+", names)]
        imported += [path for path in candidates if path.is_file()]
    inside = [path for path in imported if path.is_relative_to(_SOURCES)]
    return hashlib.sha256(content).hexdigest(), inside


class _Locator:
    """Where numba keeps the machine code of a function, and how it sees that it is outdated."""

    def __init__(self, function: Function, file: str) -> None:
        self._py_file = file
        self._stamp = sources_stamp(Path(file).resolve())
        self._line = function.__code__.co_firstlineno

    from_function = classmethod(lambda cls, function, file: cls(function, file))

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def ensure_cache_path(self) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return f"{self._line}-{self._stamp}"


class _Kept(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _Cache(FunctionCache):
    """numba's cache of a function, for several processes; whatever it cannot read it compiles."""

    _impl_class = _Kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # All that machine code needs of the target. What compiling needs besides takes long to
        # import; the compiler refreshes the target by itself.
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - of a damaged file, whatever unpickling raises
            with contextlib.suppress(OSError):
                Path(self._cache_file._index_path).unlink(missing_ok=True)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        # Full or read-only, or on a file system without locks: the next process compiles again.
        with contextlib.suppress(OSError):
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            # Of two processes that add to an index at once, the second must see the first's entry:
            # both would give their files the same name.
            with FileLock(folder / "lock", timeout=_LOCK_SECONDS):
                self._save_overload(sig, data)
                self._remove_old(folder)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return super()._index_key(sig, codegen), _fields(sig)

    def _remove_old(self, folder: Path) -> None:
        """Remove machine code of other states of the function that was written long ago."""
        own = self._impl.filename_base
        function, _, _ = own.partition("-")
        for file in folder.glob(f"{function}-*"):
            if not file.name.startswith(own):
                with contextlib.suppress(OSError):
                    if time.time() - file.stat().st_mtime > _KEPT_SECONDS:
                        file.unlink()


def _fields(values: Any) -> tuple[Any, ...]:
    """The fields of named tuples among types: numba compares their classes by name alone."""
    tuples = [value for value in values if isinstance(value, BaseTuple)]
    return tuple((getattr(value, "fields", ()), _fields(value)) for value in tuples)
