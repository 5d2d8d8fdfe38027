"""Locks on open files that the system takes away when their process ends."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .errors import BusyError, StorageError, UserError
from .storage import storing

if sys.platform == "win32":
    import errno
    import msvcrt

    def lock_file(descriptor: int, *, shared: bool = False) -> None:
        """Lock an open file without waiting; there are no shared locks on Windows.

        Raises
        ------
        BlockingIOError
            If another process has locked it.
        """
        if shared:
            return
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EAGAIN, "locked by another process") from error

else:
    import fcntl

    def lock_file(descriptor: int, *, shared: bool = False) -> None:
        """Lock an open file without waiting.

        Parameters
        ----------
        descriptor : int
        shared : bool
            Others may lock it as well, if theirs is shared, too.

        Raises
        ------
        BlockingIOError
            If another process has locked it.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)


def lock_when_free(descriptor: int) -> None:
    """Lock an open file that others lock for moments only; it waits for them."""
    while True:
        try:
            return lock_file(descriptor)
        except BlockingIOError:
            time.sleep(0.01)


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
