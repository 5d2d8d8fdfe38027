"""What cannot be written: one line that names the file, the system's reason and a remedy."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ..data_loaders.atomic import DISK_ERRORS
from .errors import BusyError, StorageError, UserError
from .locking import lock_file

_REMEDY = "make room there or allow writing, then run the same command again"
#: The system's reasons why no file can be reached by a path, or why no memory is left for one.
_PATH_ERRORS = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP, errno.ENOMEM}
)


@contextlib.contextmanager
def storing(path: Path, remedy: str = _REMEDY) -> Iterator[None]:
    """Turn an error of the system in this block into one line about the file that it writes.

    Parameters
    ----------
    path : Path
        What is written.
    remedy : str
        What the user can do.

    Raises
    ------
    StorageError
        If the block raises an OSError.
    UserError
        If no file can have this path.
    """
    check_path(path)
    try:
        yield
    except FileNotFoundError:
        raise StorageError(
            f"{path}: cannot be written, its folder was removed; run the same command again"
        ) from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({_reason(error)}); {remedy}") from None


def check_path(path: Path | str) -> None:
    """Check that a file or a folder could have this path.

    Raises
    ------
    UserError
    """
    if "\0" in str(path):
        raise UserError(f"{str(path)!r}: no path can hold a NUL character; choose another")


def unforeseen(error: OSError) -> StorageError | None:
    """The same for an error that no code expected where it occurred; None if it is another."""
    if error.filename is not None and error.errno in _PATH_ERRORS:
        remedy = "allow it or choose another path"
    elif error.errno in DISK_ERRORS:
        remedy = _REMEDY
    else:
        return None
    name = "the output" if error.filename is None else os.fsdecode(error.filename)
    return StorageError(f"{name}: cannot be read or written ({_reason(error)}); {remedy}")


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


@contextlib.contextmanager
def exclusive(results: Path) -> Iterator[Callable[[], None]]:
    """Nobody else writes to the results folder meanwhile.

    Yields
    ------
    callable
        Raises a StorageError if the folder has been removed or replaced since.

    Raises
    ------
    UserError
        If it is no folder, or another run is writing there.
    StorageError
        If it cannot be written to.
    """
    if results.exists() and not results.is_dir():
        raise UserError(f"{results}: is not a folder; choose another --out")
    path = results / ".lock"
    with storing(results, "allow writing there or choose another --out"):
        results.mkdir(parents=True, exist_ok=True)
        try:
            lock = _locked(path)
        except BlockingIOError:
            raise BusyError(
                f"{results}: another marginbench command is writing here; wait for it or choose "
                "another --out"
            ) from None

    def check() -> None:
        if not _is_at(lock, path):
            raise StorageError(
                f"{results}: was removed while the study ran; run the same command again"
            )

    try:
        yield check
    finally:
        # While it is locked: whoever has opened this file finds that its name is not its own.
        with contextlib.suppress(OSError):
            if _is_at(lock, path):
                path.unlink()
        os.close(lock)


def _locked(path: Path) -> int:
    """The descriptor of the lock file, locked.

    Raises
    ------
    BlockingIOError
        If another process has locked it.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lock_file(descriptor)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Its holder has removed it meanwhile.
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
