"""Locks on open files that the system takes away when their process ends."""

from __future__ import annotations

import sys
import time

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
