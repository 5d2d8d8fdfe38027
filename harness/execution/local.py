"""The local executor: warm worker processes, and limits that are enforced by killing them.

A worker serves job after job, unless it runs code from outside the project: that gets a process of
its own. What breaks a limit, crashes or hangs costs that one process, and the next job gets a fresh
one.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from ..errors import UnsupportedError, UserError
from ..jobs import Ended, Event, Job, Outcome, Started, Waiting
from ..storage import storing
from .process import WorkerProcess
from .watching import JobWatch

# Seconds between two looks at memory and clocks.
_POLL = 0.05
# Seconds in which messages gather before they are read. A solver that sends each as it goes would
# wake this process for every one, which costs more than reading it.
_GATHER = 0.001
#: Runs at the same time; more worker processes than any one machine serves.
MAX_JOBS = 1000


def check_can_run() -> None:
    """Raise where runs cannot have processes that are limited and killed from outside.

    Raises
    ------
    UnsupportedError
        On Windows.
    """
    # Guardians and programs are started so; where it is missing, so are sessions and signals.
    if not hasattr(os, "posix_spawn"):
        raise UnsupportedError(
            f"{sys.platform}: runs need Linux, macOS or WSL; here, use the solvers as estimators "
            "and read results from elsewhere (docs/platforms.md)"
        )


def check_jobs(jobs: int) -> None:
    """Check how many runs are to take place at the same time.

    Raises
    ------
    UserError
    """
    if not 1 <= jobs <= MAX_JOBS:
        raise UserError(f"the number of jobs must be from 1 to {MAX_JOBS}, not {jobs}")


class LocalPool:
    """Runs jobs in worker processes on this machine; use it as a context manager.

    Parameters
    ----------
    slots : int
        How many jobs run at the same time.
    log_folder : Path
        Takes what solvers print; removed again when the pool is closed.
    ahead : bool
        Whether a job that is done makes room for the next one before its end is told. That one is
        then prepared while the caller does something about the first, but its clocks start later.

    Raises
    ------
    UserError
        On a system without what limits and kills processes.
    """

    def __init__(self, slots: int, log_folder: Path, *, ahead: bool = False) -> None:
        check_can_run()
        self.log_folder = log_folder
        self._ahead = ahead
        self._slots = [_Slot(log_folder / f"worker-{number}.log") for number in range(slots)]

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs; yields what happens. Closing the iterator kills what still runs."""
        told, read = 0.0, 0.0
        with storing(self.log_folder):
            self.log_folder.mkdir(parents=True, exist_ok=True)
        try:
            while True:
                for slot in self._slots:
                    job = next(jobs, None) if slot.watch is None else None
                    if job is not None:
                        slot.assign(job)
                        yield Started(job)
                busy = {slot: slot.watch for slot in self._slots if slot.watch is not None}
                if not busy:
                    return
                _wait([*busy.values()])
                if not any(watch.is_awaited for watch in busy.values()):
                    time.sleep(max(0.0, read + _GATHER - time.monotonic()))
                read = time.monotonic()
                for slot, watch in busy.items():
                    outcome = slot.check()
                    if outcome is None:
                        continue
                    # What else it may have come to decides about the limits of the next one.
                    ahead = self._ahead and outcome.status == "done"
                    following = next(jobs, None) if ahead else None
                    if following is not None:
                        slot.assign(following)
                    yield Ended(watch.job, outcome)
                    if following is not None:
                        yield Started(following)
                if time.monotonic() - told > _POLL:
                    told = time.monotonic()
                    watches = [slot.watch for slot in self._slots if slot.watch is not None]
                    yield Waiting({watch.job.tag: watch.phase for watch in watches})
        finally:
            for slot in self._slots:
                if slot.watch is not None:
                    slot.stop()

    def close(self) -> None:
        """Kill every worker and remove the logs."""
        for slot in self._slots:
            slot.stop()
        # With whatever solvers have put there.
        shutil.rmtree(self.log_folder, ignore_errors=True)


@contextlib.contextmanager
def one_worker() -> Iterator[LocalPool]:
    """A worker for what is asked of solvers and data when nothing is to be run."""
    with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
        yield pool


class _Slot:
    """Room for one job at a time, and the worker that serves it.

    One worker serves job after job, until a job leaves something behind in it. Code from outside
    the project gets a worker of its own; meanwhile the first one waits.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        self.watch: JobWatch | None = None
        self._warm: WorkerProcess | None = None

    def assign(self, job: Job) -> None:
        """Give the job to a worker, which is started first where there is none fit for it."""
        worker = None if job.foreign else self._warm
        if worker is not None and (job.threads != worker.threads or not worker.alive):
            worker.kill()
            worker = None
        fresh = worker is None
        worker = worker or WorkerProcess(self.log, job.threads)
        if not job.foreign:
            self._warm = worker
        self.watch = JobWatch(job, worker, fresh=fresh)

    def check(self) -> Outcome | None:
        """Take in messages and look at the limits; the outcome if the job has ended."""
        assert self.watch is not None
        outcome = self.watch.check()
        if outcome is not None:
            if self.watch.spoiled(outcome):
                self.watch.process.kill()
            self.watch = None
        return outcome

    def stop(self) -> None:
        """Kill the workers and all that they have started."""
        if self.watch is not None:
            self.watch.process.kill()
        if self._warm is not None:
            self._warm.kill()
        self.watch = self._warm = None


def _wait(watches: list[JobWatch]) -> None:
    """Until there is something to read, or it is time to look at the limits."""
    waiting = select.poll()
    for watch in watches:
        if not watch.process.closed:
            waiting.register(watch.process, select.POLLIN)
    waiting.poll(1000 * _POLL)
