"""One command at a time writes to a results folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

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
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = FileLock(results / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
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
        lock.release()
