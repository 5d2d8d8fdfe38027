"""Files: one line for what cannot be written, with the system's reason and a remedy; locks."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ..data_loaders.atomic import DISK_ERRORS
from .errors import StorageError, UserError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_REMEDY = "make room there or allow writing, then run the same command again"
#: The system's reasons why no file can be reached by a path, or why no memory is left for one.
_PATH_ERRORS = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP, errno.ENOMEM}
)


@contextlib.contextmanager
def storing(path: Path, remedy: str = _REMEDY) -> Iterator[None]:
    """Turn an OSError in this block into a StorageError: one line with the path and the remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            remedy = "make its folder, or run the same command again"
        raise StorageError(f"{path}: cannot be written ({_reason(error)}); {remedy}") from None


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
def exclusive(folder: Path, seconds: float = 0.0) -> Iterator[None]:
    """Lock a folder, which is made if need be, against other writers in this block.

    A UserError if it is no folder, or if another command still writes there after these seconds.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is not a folder; choose another --out")
    path = folder / ".lock"
    lock = FileLock(path, timeout=seconds)
    with storing(folder, "allow writing there or choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(
                f"{folder}: another marginbench command is writing here; wait for it or choose "
                "another --out"
            ) from None
    try:
        yield
    finally:
        # While it is locked: whoever has opened this file finds that its name is not its own.
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


def lock_file(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file until it is closed; on Windows, where nothing is run, it does nothing.

    It is an OSError if another process has locked it, unless it is waited for.
    """
    if fcntl is not None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))


def holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content; one that cannot be read has not."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False
