"""What cannot be written: one line that names the file, the system's reason and a remedy."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ..data_loaders.atomic import DISK_ERRORS
from .errors import StorageError, UserError

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
