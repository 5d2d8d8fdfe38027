"""How functions of this package are compiled, and where their machine code is kept.

numba's cache on disk watches only the file of a function, but machine code also holds the functions
of other files that it calls. Here it is kept for one state of all the sources of this package: any
edit compiles anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import shutil
import sys
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from filelock import FileLock
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from platformdirs import user_cache_dir

Function = Callable[..., Any]

_SOURCES = Path(__file__).resolve().parents[1]
_FOLDER = "marginbench-"
# Folders of other states that stay: several checkouts may share a cache, and runs last for hours.
_KEPT = 4
_RECENT_SECONDS = 24 * 3600.0
# Held while a file is read and written anew, which takes milliseconds.
_LOCK = "lock"
_LOCK_SECONDS = 10.0


def njit(**options: Any) -> Callable[[Function], Function]:
    """``numba.njit``, with machine code kept for one state of all sources of this package.

    A function from outside the package is compiled in every process: its sources are not watched.
    """

    def compiled(function: Function) -> Function:
        dispatcher: Any = numba.njit(**options)(function)
        module = _module_of(function.__code__.co_filename)
        if module and _STATE and not config.DISABLE_JIT:
            dispatcher._cache = _KeptCode(function, module)
        return dispatcher

    return compiled


@cache
def cache_folder() -> Path:
    """The folder of machine code of these sources, which may not exist; marked as in use.

    It is in ``NUMBA_CACHE_DIR`` if that is set, else with the datasets in ``MARGINBENCH_CACHE``, or
    in the user's cache folder.
    """
    kept = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
    root = config.CACHE_DIR or os.path.join(kept, "compiled")
    folder = Path(os.path.expanduser(root)).absolute() / f"{_FOLDER}{_STATE}"
    with contextlib.suppress(OSError):
        os.utime(folder)
    return folder


class _KeptCode(FunctionCache):
    """The machine code of one function in one file: key -> code, after a checksum of it all.

    A file that is missing, damaged or not to be written is no error: the function is compiled.
    """

    def __init__(self, function: Function, module: str) -> None:
        self._name = repr(function)
        self._py_func = function
        name = re.sub("[<>]", "", f"{module}.{function.__qualname__}")
        self._file_name = f"{name}-{function.__code__.co_firstlineno}.code"
        self.enable()

    @property
    def cache_path(self) -> str:
        return str(cache_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        code = self._read().get(self._index_key(sig, target_context.codegen()))
        if code is None:
            return None
        # All that machine code needs of the target. What compiling needs besides takes long to
        # import; the compiler refreshes the target by itself.
        rtsys.initialize(target_context)
        return CompileResult._rebuild(target_context, *pickle.loads(code))

    def save_overload(self, sig: Any, data: Any) -> None:
        bound_to_process = data.library.has_dynamic_globals or any(
            not loop.can_cache for loop in data.lifted
        )
        # After an edit, what this process has imported is no state of the sources.
        if self._enabled and not bound_to_process and _state_of_sources() == _STATE:
            self._add(self._index_key(sig, data.codegen), dumps(data._reduce()))

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            (cache_folder() / self._file_name).unlink()

    def _read(self) -> dict[Any, bytes]:
        try:
            content = (cache_folder() / self._file_name).read_bytes()
        except OSError:
            return {}
        checksum, entries = content[:32], content[32:]
        return pickle.loads(entries) if hashlib.sha256(entries).digest() == checksum else {}

    def _add(self, key: Any, code: bytes) -> None:
        """Keep this code beside what is kept already, for other types."""
        folder = cache_folder()
        # Full or read-only, or on a file system without locks: the next process compiles again.
        with contextlib.suppress(OSError):
            _make(folder)
            # Of two processes that add to a file at once, the second must see what the first wrote.
            with FileLock(folder / _LOCK, timeout=_LOCK_SECONDS):
                self._write(self._read() | {key: code})

    def _write(self, code: dict[Any, bytes]) -> None:
        entries = dumps(code)
        path = cache_folder() / self._file_name
        unfinished = path.with_name(f"{self._file_name}.{uuid.uuid4().hex}")
        try:
            unfinished.write_bytes(hashlib.sha256(entries).digest() + entries)
            unfinished.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()


def _state_of_sources() -> str:
    """A hash of all sources and of what compiles them; empty where there are no files."""
    libraries = (sys.version_info[:3], numba.__version__, llvmlite.__version__, np.__version__)
    digest = hashlib.sha256(repr(libraries).encode())
    files = sorted(_SOURCES.rglob("*.py"))
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"\n{file.relative_to(_SOURCES).as_posix()} {content}".encode())
    return digest.hexdigest()[:32] if files else ""


_STATE = _state_of_sources()


@cache
def _module_of(file: str) -> str:
    """The name of a module of this package, relative to it; empty for a file from outside."""
    path = Path(file).resolve()
    if not path.is_relative_to(_SOURCES):
        return ""
    return ".".join(path.relative_to(_SOURCES).with_suffix("").parts)


def _make(folder: Path) -> None:
    """Make the folder; if it is new, remove those that were not used for long."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        return
    others = [
        other
        for other in folder.parent.glob(f"{_FOLDER}*")
        if re.fullmatch("[0-9a-f]{32}", other.name.removeprefix(_FOLDER)) and other != folder
    ]
    for other in sorted(others, key=_last_use, reverse=True)[_KEPT:]:
        if time.time() - _last_use(other) > _RECENT_SECONDS:
            # Whoever uses it all the same compiles again.
            shutil.rmtree(other, ignore_errors=True)


def _last_use(folder: Path) -> float:
    """When a process last began to use the folder, or wrote to it; now if it is just removed."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()
