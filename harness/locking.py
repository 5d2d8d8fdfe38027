"""Locks on open files that the system takes away when their process ends."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import errno
    import msvcrt

    def lock_file(descriptor: int) -> None:
        """Lock an open file without waiting.

        Raises
        ------
        BlockingIOError
            If another process has locked it.
        """
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EAGAIN, "locked by another process") from error

else:
    import fcntl

    def lock_file(descriptor: int) -> None:
        """Lock an open file without waiting.

        Raises
        ------
        BlockingIOError
            If another process has locked it.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
