"""The local executor: warm worker processes, and limits that are enforced by killing them.

A worker serves job after job, unless it runs code from outside the project: that gets a process of
its own, and what it returns is judged in another. What breaks a limit, crashes or hangs costs that
one process, and the next job gets a fresh one.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from ..errors import UserError
from ..evaluation.spool import Spool
from ..platforms import check_can_run
from ..storage import storing
from .jobs import Ended, Event, Job, Outcome, Started, Waiting
from .process import WorkerProcess
from .watching import JobWatch

# Seconds between two looks at memory and clocks.
_POLL = 0.05
# Seconds in which messages gather before they are read. A solver that sends each as it goes would
# wake this process for every one, which costs more than reading it.
_GATHER = 0.001
#: Runs at the same time; more worker processes than any one machine serves.
MAX_JOBS = 1000


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
        self._slots = [_Slot(log_folder, number) for number in range(slots)]

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
                    job = next(jobs, None) if slot.job is None else None
                    if job is not None:
                        slot.assign(job)
                        yield Started(job)
                busy = [slot for slot in self._slots if slot.job is not None]
                if not busy:
                    return
                _wait([handle for slot in busy for handle in slot.handles()])
                if not any(slot.is_awaited for slot in busy):
                    time.sleep(max(0.0, read + _GATHER - time.monotonic()))
                read = time.monotonic()
                for slot in busy:
                    job, outcome = slot.job, slot.check()
                    if job is not None and outcome is not None:
                        # What else it may have come to decides about the limits of the next one.
                        ahead = self._ahead and outcome.status == "done"
                        following = next(jobs, None) if ahead else None
                        if following is not None:
                            slot.assign(following)
                        yield Ended(job, outcome)
                        if following is not None:
                            yield Started(following)
                if time.monotonic() - told > _POLL:
                    told = time.monotonic()
                    yield Waiting()
        finally:
            for slot in self._slots:
                if slot.job is not None:
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
    """Room for one job at a time, and the workers that serve it.

    One worker serves job after job. Code from outside the project gets a worker of its own for each
    job; meanwhile the first one waits, and then judges what came of it.
    """

    def __init__(self, log_folder: Path, number: int) -> None:
        self.log = log_folder / f"worker-{number}.log"
        self._spool = Spool(log_folder)
        self.job: Job | None = None
        self._watch: JobWatch | None = None
        self._serving: WorkerProcess | None = None
        self._apart: WorkerProcess | None = None
        # What came of the job, while another worker judges it.
        self._to_judge: Outcome | None = None

    def assign(self, job: Job) -> None:
        """Give the job to a worker, which is started first where there is none fit for it."""
        self.job, self._to_judge = job, None
        self._spool = Spool(self.log.parent)
        if job.foreign:
            self._apart = WorkerProcess(self.log, job.threads)
            self._watch = JobWatch(job, job.work.apart(), self._apart, self._spool, fresh=True)
        else:
            self._serve(job)

    def _serve(self, job: Job) -> None:
        serving = self._serving
        fresh = serving is None or job.threads != serving.threads or not serving.alive
        if fresh:
            self._stop_serving()
            self._serving = WorkerProcess(self.log, job.threads)
        assert self._serving is not None
        self._watch = JobWatch(job, job.work, self._serving, self._spool, fresh=fresh)

    @property
    def is_awaited(self) -> bool:
        """Whether the worker goes on only when its message has been read."""
        return self._watch is not None and self._watch.is_awaited

    def handles(self) -> list[WorkerProcess]:
        """What becomes ready when there is something to do."""
        return [] if self._watch is None or self._watch.process.closed else [self._watch.process]

    def check(self) -> Outcome | None:
        """Take in messages, then look at the limits; the outcome if the job has ended."""
        assert self._watch is not None
        assert self.job is not None
        outcome = self._watch.check()
        if outcome is None:
            return None
        if self._apart is not None:
            self._apart.kill()
            self._apart = None
            if not self._spool.intact:
                outcome.status, outcome.snapshots = "crashed", None
                outcome.reason = "the file with the states of the run was replaced"
            judging = self._watch.work.judged(outcome)
            if judging is not None:
                self._to_judge = outcome
                self._serve(replace(self.job, work=judging, foreign=False))
                return None
        elif self._watch.spoiled(outcome):
            self._stop_serving()
        self._watch = None
        self.job = None
        self._spool.remove()
        return outcome if self._to_judge is None else _judged(self._to_judge, outcome)

    def stop(self) -> None:
        """Kill the workers and all that they have started."""
        self.job = self._watch = None
        if self._apart is not None:
            self._apart.kill()
            self._apart = None
        self._stop_serving()
        self._spool.remove()

    def _stop_serving(self) -> None:
        if self._serving is not None:
            self._serving.kill()
            self._serving = None


def _judged(outcome: Outcome, judgement: Outcome) -> Outcome:
    """What came of a job, once it is judged."""
    outcome.trace = judgement.trace
    outcome.evaluation_s += judgement.evaluation_s
    if outcome.status == "done":
        outcome.status, outcome.value = judgement.status, judgement.value
        outcome.reason, outcome.traceback = judgement.reason, judgement.traceback
        outcome.phase = "evaluate"
    return outcome


def _wait(handles: list[WorkerProcess]) -> None:
    """Until there is something to read, or it is time to look at the limits."""
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    waiting.poll(1000 * _POLL)
