"""One command at a time writes to a results folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from marginbench.harness.errors import BusyError, UserError


@contextlib.contextmanager
def exclusive(results: Path) -> Iterator[None]:
    """Nobody else writes to the results folder meanwhile.

    Raises
    ------
    UserError
        If it is no folder, cannot be written to, or another run is writing there.
    """
    if results.exists() and not results.is_dir():
        raise UserError(f"{results}: is not a folder; choose another --out")
    path = results / ".lock"
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
    except BlockingIOError:
        raise BusyError(
            f"{results}: another marginbench run is writing here; wait for it or choose --out"
        ) from None
    except OSError as error:
        raise UserError(
            f"{results}: cannot be written to ({error.strerror or error}); choose another --out"
        ) from None
    try:
        yield
    finally:
        # While it is locked: whoever has opened this file finds that its name is not its own.
        with contextlib.suppress(OSError):
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
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Its holder has removed it meanwhile.
        os.close(descriptor)
