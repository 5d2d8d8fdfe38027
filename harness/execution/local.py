"""The local executor: warm worker processes, and limits that are enforced by killing them.

A worker serves job after job, unless it runs code from outside the project: that gets a process of
its own. What breaks a limit, crashes or hangs costs that one process, and the next job gets a fresh
one.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal

from ..errors import UnsupportedError, UserError
from ..jobs import (
    CheckpointMessage,
    ColumnsMessage,
    Ended,
    Event,
    Job,
    Message,
    Outcome,
    Phase,
    PhaseMessage,
    ResultMessage,
    Started,
    Waiting,
    decoded,
)
from ..storage import storing
from .worker import WorkerProcess

# Seconds between two looks at memory and clocks.
_POLL = 0.05
# Seconds in which messages gather before they are read. A solver that sends each as it goes would
# wake this process for every one, which costs more than reading it.
_GATHER = 0.003
# A worker that does not even start is broken: no solver is running yet.
_START_LIMIT = 120.0
# Of what a solver prints, bytes.
_LOG_BYTES = 2**24
_TAIL = 4000
# Seconds of reading messages before the limits are looked at again.
_DRAIN = 0.2
# Seconds between two looks at the limits while messages come: each look costs as much as several of
# them.
_PAUSE = 0.02
_DOING: dict[Phase, str] = {
    "start": "starting the worker",
    "import": "importing the solver",
    "data": "loading the data",
    "compile": "building and warming up the solver",
    "tune": "tuning",
    "solve": "solving",
    "evaluate": "evaluating the model",
    "idle": "waiting",
}
#: Runs at the same time; more worker processes than any one machine serves.
MAX_JOBS = 1000


def check_can_run() -> None:
    """Raise an UnsupportedError where runs cannot be limited and killed from outside."""
    # Guardians and programs are started so; where it is missing, so are sessions and signals.
    if not hasattr(os, "posix_spawn"):
        raise UnsupportedError(
            f"{sys.platform}: runs need Linux, macOS or WSL; here, use the solvers as estimators "
            "and read results from elsewhere (docs/platforms.md)"
        )


def check_jobs(jobs: int) -> None:
    """Check how many runs are to take place at the same time."""
    if not 1 <= jobs <= MAX_JOBS:
        raise UserError(f"the number of jobs must be from 1 to {MAX_JOBS}, not {jobs}")


class LocalPool:
    """Runs jobs in worker processes on this machine; use it as a context manager.

    ``slots`` jobs run at the same time; ``log_folder`` takes what solvers print.
    """

    def __init__(self, slots: int, log_folder: Path) -> None:
        check_can_run()
        self.log_folder = log_folder
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
        reported, read = 0.0, 0.0
        with storing(self.log_folder):
            self.log_folder.mkdir(parents=True, exist_ok=True)
        try:
            ended: list[Ended] = []
            while True:
                begun = []
                for slot in self._slots:
                    job = next(jobs, None) if slot.watch is None else None
                    if job is not None:
                        slot.assign(job)
                        begun.append(Started(job))
                # What has ended is recorded while the next job runs.
                yield from ended
                yield from begun
                busy = {slot: slot.watch for slot in self._slots if slot.watch is not None}
                if not busy:
                    return
                _wait([*busy.values()])
                if time.monotonic() - reported > _POLL:
                    reported = time.monotonic()
                    yield Waiting({watch.job.tag: watch.phase for watch in busy.values()})
                time.sleep(max(0.0, read + _GATHER - time.monotonic()))
                read = time.monotonic()
                outcomes = ((watch.job, slot.check()) for slot, watch in busy.items())
                ended = [Ended(job, outcome) for job, outcome in outcomes if outcome is not None]
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
    """One worker, to describe solvers and data where nothing is run."""
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


class JobWatch:
    """A job from the moment it is given to a worker, a ``fresh`` one or not, until it has ended."""

    def __init__(self, job: Job, process: WorkerProcess, *, fresh: bool) -> None:
        self.job, self.process = job, process
        self._outcome = Outcome("failed")
        self.phase: Phase = "start" if fresh else "data"
        self._began = self._since = time.monotonic()
        self._spent: dict[Phase, float] = {}
        # CPU seconds of solving, up to the last phase, and the clock then.
        self._cpu_solved = self._cpu_since = 0.0
        # Solving by the worker's own clock, up to the last message.
        self._solved = 0.0
        self._peak = 0.0
        self._looked = -math.inf
        self._ready_mb = 0.0 if fresh else process.resident_mb()
        if not fresh:
            process.reset_peak()
        process.send(pickle.dumps(job))

    def check(self) -> Outcome | None:
        """Take in messages, then look at the limits; the outcome if the job has ended."""
        outcome = self._drain()
        if outcome is None and self.process.closed:
            # The end of the connection comes a moment before the end of the process.
            self.process.join(2.0)
        if outcome is None and not self.process.alive:
            # Messages may have come in between the two looks.
            outcome = self._drain()
            if outcome is None:
                self._outcome.traceback = _tail(self.process.log)
                doing = _DOING[self.phase]
                outcome = self._ended("crashed", f"{self.process.exit_words} while {doing}")
        if outcome is None and self.process.closed:
            outcome = self._ended("crashed", self.process.closed)
        if outcome is None and time.monotonic() - self._looked > _PAUSE:
            outcome = self._over_limit()
        if outcome is None:
            return None
        outcome.phase = self.phase
        self._account(time.monotonic())
        outcome.data_s = self._spent.get("data", 0.0)
        outcome.compile_s = self._spent.get("compile", 0.0)
        outcome.evaluation_s = self._spent.get("evaluate", 0.0)
        outcome.solve_s = self._solved
        if self.phase == "solve":
            outcome.solve_s = max(self._solved, self._spent["solve"])
        peaks = [peak for peak in (self.process.peak_mb(), self._peak) if peak]
        outcome.peak_memory_mb = max(peaks, default=None)
        return outcome

    def spoiled(self, outcome: Outcome) -> bool:
        """Whether the job may have left something behind, at the next one's expense."""
        return (
            self.job.foreign
            or outcome.status in ("timeout", "memory", "crashed")
            or len(self.process.family()) > 1
            or self.process.resident_mb() - self._ready_mb > self.job.limits.memory / 4
        )

    def _drain(self) -> Outcome | None:
        for body in self.process.receive(time.monotonic() + _DRAIN):
            try:
                message = decoded(body, self.job.work)
            except ValueError as error:
                return self._ended("crashed", f"the process sent no valid message: {error}")
            if isinstance(message, ResultMessage):
                return self._result(message)
            self._take(message)
        return None

    def _take(self, message: Message) -> None:
        if isinstance(message, ColumnsMessage):
            self._outcome.columns = message.columns
        elif isinstance(message, CheckpointMessage):
            self._outcome.trace.append(message.checkpoint)
            if message.goes_on:
                self._enter("solve")
                self._solved = message.checkpoint.wall_s
        elif isinstance(message, PhaseMessage):
            if message.phase == "idle":
                self._ready_mb = self.process.resident_mb()
                self._enter("data")
                return
            self._enter(message.phase)
            self._solved = message.solve_s

    def _enter(self, phase: Phase) -> None:
        self._account(time.monotonic())
        self.phase = phase

    def _account(self, now: float) -> None:
        """Add the time since the last change to the phase that it was spent in."""
        self._spent[self.phase] = self._spent.get(self.phase, 0.0) + now - self._since
        self._since = now
        if self.job.limits.cpu < math.inf:
            cpu_s = self.process.cpu_s(fresh=False)
            if self.phase == "solve":
                self._cpu_solved += cpu_s - self._cpu_since
            self._cpu_since = cpu_s

    def _result(self, message: ResultMessage) -> Outcome:
        outcome, kind = self._outcome, message.kind
        outcome.value, outcome.traceback = message.value, message.traceback
        if kind in ("data", "storage") and self.job.foreign and self.phase != "data":
            # The solver has raised it.
            kind = "failed"
        if kind == "memory":
            doing = _DOING[self.phase]
            return self._ended("memory", f"out of memory while {doing} ({message.error})")
        outcome.status, outcome.reason = kind or "done", message.error
        return outcome

    def _ended(self, status: Literal["crashed", "timeout", "memory"], reason: str) -> Outcome:
        self._outcome.status, self._outcome.reason = status, reason
        return self._outcome

    def _over_limit(self) -> Outcome | None:
        limits, now, doing = self.job.limits, time.monotonic(), _DOING[self.phase]
        self._looked = now
        spent, limit = self._spent_and_limit(now)
        if spent > limit:
            status: Literal["crashed", "timeout"]
            status = "crashed" if self.phase == "start" else "timeout"
            return self._ended(status, f"{doing} took longer than {limit:g} s")
        if now - self._began > limits.total:
            return self._ended("timeout", f"all of the run took longer than {limits.total:g} s")
        if self.phase == "solve" and limits.cpu < math.inf:
            cpu_s = self._cpu_solved + self.process.cpu_s(fresh=False) - self._cpu_since
            if cpu_s > limits.cpu:
                return self._ended(
                    "timeout", f"solving took more than {limits.cpu:g} s of CPU time"
                )
        resident = self.process.resident_mb()
        self._peak = max(self._peak, resident)
        if resident > limits.memory:
            return self._ended("memory", f"more than {limits.memory:g} MB resident while {doing}")
        with contextlib.suppress(OSError):
            # What a solver prints must not fill the disk.
            if self.process.log.stat().st_size > _LOG_BYTES:
                os.truncate(self.process.log, 0)
        return None

    def _spent_and_limit(self, now: float) -> tuple[float, float]:
        """Seconds in the current phase, and their limit."""
        phase, elapsed = self.phase, now - self._since
        if phase == "start":
            return elapsed, _START_LIMIT
        limit = self.job.limits.seconds.get(phase, math.inf)
        if phase == "evaluate":
            return elapsed, limit
        # Of solving the worker's own clock is the exact one.
        before = self._solved if phase == "solve" else self._spent.get(phase, 0.0)
        return before + elapsed, limit


def _tail(log: Path) -> str:
    """The end of what the worker printed: after a crash, where it happened."""
    try:
        with log.open("rb") as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - 16 * _TAIL))
            text = source.read().decode("utf-8", "replace")
    except OSError:
        return ""
    # The fault handler closes with a list of all extension modules, of no use to anyone.
    return text.partition("\nExtension modules:")[0][-_TAIL:]
