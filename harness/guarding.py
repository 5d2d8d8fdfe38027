"""What keeps or ends a study from outside: another command, a folder that is gone, Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from marginbench.harness.errors import BusyError, StorageError, UserError
from marginbench.harness.jobs import Event, Executor, Job
from marginbench.harness.storage import storing


class Guarded:
    """An executor that takes a look at every event, and ends with what the look raises.

    Parameters
    ----------
    executor : Executor
    look : callable
    """

    def __init__(self, executor: Executor, look: Callable[[], None]) -> None:
        self._executor, self._look = executor, look

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs."""
        self._look()
        for event in self._executor.execute(jobs):
            self._look()
            yield event
        self._look()

    def close(self) -> None:
        """Stop what runs."""
        self._executor.close()


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
        lock = FileLock(path)
        _acquire(lock, results)
        held = _identity(path)

    def check() -> None:
        if _identity(path) != held:
            raise _removed(results)

    try:
        yield check
    finally:
        lock.release()


def check_folder_exists(folder: Path) -> None:
    """A folder that is removed while a study runs must not come back with half of the records.

    Raises
    ------
    StorageError
        If the folder is gone.
    """
    if not folder.is_dir():
        raise _removed(folder)


def _removed(folder: Path) -> StorageError:
    return StorageError(f"{folder}: was removed while the study ran; run the same command again")


def _acquire(lock: BaseFileLock, results: Path) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(
            f"{results}: another marginbench run is writing here; wait for it or choose --out"
        ) from None


def _identity(path: Path) -> tuple[int, int] | None:
    """What distinguishes a file from another one of the same name; None if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
