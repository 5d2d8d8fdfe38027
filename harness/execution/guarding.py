"""What keeps or ends a study from outside: another command, a folder that is gone, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import BusyError, StorageError, UserError
from ..locking import lock_file
from ..storage import storing
from .jobs import Ended, Event, Executor, Job, Waiting


class Guarded:
    """An executor that takes a look at every event, and ends with what the look raises.

    It also ends where a worker could not write a file: that is not about the job.

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
            if isinstance(event, Ended) and event.outcome.status == "storage":
                raise StorageError(event.outcome.reason)
            yield event
        self._look()

    def close(self) -> None:
        """Stop what runs."""
        self._executor.close()


class Meanwhile:
    """An executor that does something else once, while its first job runs.

    A worker imports for seconds before it answers; this process would only wait for it.

    Parameters
    ----------
    executor : Executor
    work : callable
        What to do.
    """

    def __init__(self, executor: Executor, work: Callable[[], None]) -> None:
        self._executor, self._work = executor, work
        self._done = False

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs."""
        for event in self._executor.execute(jobs):
            # Not when the first job starts: others may be about to.
            if isinstance(event, Waiting) and not self._done:
                self._done = True
                self._work()
            yield event

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
        try:
            lock = _locked(path)
        except BlockingIOError:
            raise BusyError(
                f"{results}: another marginbench command is writing here; wait for it or choose "
                "another --out"
            ) from None

    def check() -> None:
        if not _is_at(lock, path):
            raise _removed(results)

    try:
        yield check
    finally:
        # While it is locked: whoever has opened this file finds that its name is not its own.
        with contextlib.suppress(OSError):
            if _is_at(lock, path):
                path.unlink()
        os.close(lock)


@contextlib.contextmanager
def shared_folder(results: Path) -> Iterator[None]:
    """Commands that do not share the results folder stay out of it meanwhile.

    Raises
    ------
    BusyError
        If one is writing there.
    StorageError
        If the folder cannot be written to.
    """
    path = results / ".lock"
    with storing(results, "allow writing there or choose another --out"):
        results.mkdir(parents=True, exist_ok=True)
        try:
            lock = _locked(path, shared=True)
        except BlockingIOError:
            raise BusyError(
                f"{results}: a marginbench command is writing here that does not share the folder; "
                "wait for it, or give it --share, too"
            ) from None
    try:
        yield
    finally:
        # The last one removes it, as a command does that is alone.
        with contextlib.suppress(OSError):
            lock_file(lock)
            if _is_at(lock, path):
                path.unlink()
        os.close(lock)


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


def _locked(path: Path, *, shared: bool = False) -> int:
    """The descriptor of the lock file, locked.

    Raises
    ------
    BlockingIOError
        If another process has locked it.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lock_file(descriptor, shared=shared)
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
