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
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from ..errors import UnsupportedError, UserError
from ..jobs import (
    Ended,
    Event,
    Job,
    Outcome,
    Phase,
    Started,
    Status,
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

    ``slots`` jobs run at the same time; ``log_folder`` takes what solvers print. A slot's worker
    serves job after job, until one leaves something behind in it. Code from outside the project
    gets a worker of its own; meanwhile the first one waits.
    """

    def __init__(self, slots: int, log_folder: Path) -> None:
        check_can_run()
        self.log_folder, self._slots = log_folder, range(slots)
        # Of a slot, what runs there and the worker that goes on.
        self._watches: dict[int, JobWatch] = {}
        self._warm: dict[int, WorkerProcess] = {}

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def execute(self, jobs: Iterator[Job]) -> Generator[Event, None, None]:
        """Run the jobs; yields what happens. Closing the iterator kills what still runs."""
        reported, read = 0.0, 0.0
        with storing(self.log_folder):
            self.log_folder.mkdir(parents=True, exist_ok=True)
        try:
            ended: list[Ended] = []
            while True:
                begun = []
                for slot in self._slots:
                    job = None if slot in self._watches else next(jobs, None)
                    if job is not None:
                        self._watches[slot] = self._assigned(slot, job)
                        begun.append(Started(job))
                # What has ended is recorded while the next job runs.
                yield from ended
                yield from begun
                if not self._watches:
                    return
                # Until there is something to read, or it is time to look at the limits.
                waiting = select.poll()
                for watch in self._watches.values():
                    if not watch.process.closed:
                        waiting.register(watch.process, select.POLLIN)
                waiting.poll(1000 * _POLL)
                if time.monotonic() - reported > _POLL:
                    reported = time.monotonic()
                    yield Waiting({watch.job.tag: watch.phase for watch in self._watches.values()})
                time.sleep(max(0.0, read + _GATHER - time.monotonic()))
                read = time.monotonic()
                ended = []
                for slot, watch in [*self._watches.items()]:
                    outcome = watch.check()
                    if outcome is not None:
                        ended.append(Ended(watch.job, outcome))
                        if watch.spoiled(outcome):
                            watch.process.kill()
                        del self._watches[slot]
        finally:
            self._stop([*self._watches])

    def _assigned(self, slot: int, job: Job) -> JobWatch:
        """The job, given to a worker, which is started first where there is none fit for it."""
        worker = None if job.foreign else self._warm.get(slot)
        if worker is not None and not worker.alive:
            worker.kill()
            worker = None
        fresh = worker is None
        worker = worker or WorkerProcess(self.log_folder / f"worker-{slot}.log")
        if not job.foreign:
            self._warm[slot] = worker
        return JobWatch(job, worker, fresh=fresh)

    def _stop(self, slots: Iterable[int]) -> None:
        """Kill the workers and all that they have started."""
        for slot in slots:
            if slot in self._watches:
                self._watches.pop(slot).process.kill()
            if slot in self._warm:
                self._warm.pop(slot).kill()

    def close(self) -> None:
        """Kill every worker and remove the logs."""
        self._stop(self._slots)
        # With whatever solvers have put there.
        shutil.rmtree(self.log_folder, ignore_errors=True)


@contextlib.contextmanager
def one_worker() -> Iterator[LocalPool]:
    """One worker, to describe solvers and data where nothing is run."""
    with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
        yield pool


class JobWatch:
    """A job from the moment it is given to a worker, a ``fresh`` one or not, until it has ended."""

    def __init__(self, job: Job, process: WorkerProcess, *, fresh: bool) -> None:
        self.job, self.process = job, process
        self._outcome = Outcome("failed")
        self.phase: Phase = "start" if fresh else "data"
        self._began = self._since = time.monotonic()
        self._spent: dict[Phase, float] = defaultdict(float)
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
        if not self._has_ended():
            return None
        outcome = self._outcome
        outcome.phase = self.phase
        self._account(time.monotonic())
        outcome.solve_s = self._solved
        if self.phase == "solve":
            outcome.solve_s = max(self._solved, self._spent["solve"])
        peaks = [peak for peak in (self.process.peak_mb(), self._peak) if peak]
        outcome.setting = {
            "data_s": self._spent["data"],
            "compile_s": self._spent["compile"],
            "evaluation_s": self._spent["evaluate"],
            "peak_memory_mb": max(peaks, default=None),
        }
        return outcome

    def spoiled(self, outcome: Outcome) -> bool:
        """Whether the job may have left something behind, at the next one's expense."""
        return (
            self.job.foreign
            or outcome.status in ("timeout", "memory", "crashed")
            or len(self.process.family()) > 1
            or self.process.resident_mb() - self._ready_mb > self.job.limits.memory / 4
        )

    def _has_ended(self) -> bool:
        if self._drain():
            return True
        if self.process.closed:
            # The end of the connection comes a moment before the end of the process.
            self.process.join(2.0)
        if not self.process.alive:
            # Messages may have come in between the two looks.
            if self._drain():
                return True
            self._outcome.traceback = _tail(self.process.log)
            return self._end("crashed", f"{self.process.exit_words} while {_DOING[self.phase]}")
        if self.process.closed:
            return self._end("crashed", self.process.closed)
        return time.monotonic() - self._looked > _PAUSE and self._is_over_limit()

    def _end(self, status: Status, reason: str) -> bool:
        self._outcome.status, self._outcome.reason = status, reason
        return True

    def _drain(self) -> bool:
        """Take in the messages that are there; whether the job has ended with one."""
        outcome = self._outcome
        for body in self.process.receive(time.monotonic() + _DRAIN):
            try:
                message = decoded(body, self.job.work)
            except ValueError as error:
                return self._end("crashed", f"the process sent no valid message: {error}")
            if "phase" in message:
                idle = message["phase"] == "idle"
                self._ready_mb = self.process.resident_mb() if idle else self._ready_mb
                self._enter("data" if idle else message["phase"])
                self._solved = message.get("solve_s", 0.0)
            elif "columns" in message:
                outcome.columns = message["columns"]
            elif "checkpoint" in message:
                outcome.trace.append(message["checkpoint"])
                if message.get("goes_on"):
                    self._enter("solve")
                    self._solved = message["checkpoint"].wall_s
            elif "value" in message:
                outcome.value = message["value"]
                return self._end("done", "")
            else:
                outcome.traceback = message["traceback"]
                kind, reason = message["kind"], message["error"]
                if kind in ("data", "storage") and self.job.foreign and self.phase != "data":
                    # The solver has raised it.
                    kind = "failed"
                if kind == "memory":
                    reason = f"out of memory while {_DOING[self.phase]} ({reason})"
                return self._end(kind, reason)
        return False

    def _enter(self, phase: Phase) -> None:
        self._account(time.monotonic())
        self.phase = phase

    def _account(self, now: float) -> None:
        """Add the time since the last change to the phase that it was spent in."""
        self._spent[self.phase] += now - self._since
        self._since = now
        if self.job.limits.cpu < math.inf:
            cpu_s = self.process.cpu_s()
            if self.phase == "solve":
                self._cpu_solved += cpu_s - self._cpu_since
            self._cpu_since = cpu_s

    def _is_over_limit(self) -> bool:
        limits, phase, doing = self.job.limits, self.phase, _DOING[self.phase]
        self._looked = now = time.monotonic()
        # Of solving the worker's own clock is the exact one; each evaluation counts by itself.
        before = {"solve": self._solved, "evaluate": 0.0}.get(phase, self._spent[phase])
        limit = limits.seconds.get(phase, _START_LIMIT if phase == "start" else math.inf)
        if before + now - self._since > limit:
            reason = f"{doing} took longer than {limit:g} s"
            return self._end("crashed" if phase == "start" else "timeout", reason)
        if now - self._began > limits.total:
            return self._end("timeout", f"all of the run took longer than {limits.total:g} s")
        if phase == "solve" and limits.cpu < math.inf:
            cpu_s = self._cpu_solved + self.process.cpu_s() - self._cpu_since
            if cpu_s > limits.cpu:
                return self._end("timeout", f"solving took more than {limits.cpu:g} s of CPU time")
        resident = self.process.resident_mb()
        self._peak = max(self._peak, resident)
        if resident > limits.memory:
            return self._end("memory", f"more than {limits.memory:g} MB resident while {doing}")
        with contextlib.suppress(OSError):
            # What a solver prints must not fill the disk.
            if self.process.log.stat().st_size > _LOG_BYTES:
                os.truncate(self.process.log, 0)
        return False


def _tail(log: Path) -> str:
    """The end of what the worker printed: after a crash, where it happened."""
    text = ""
    with contextlib.suppress(OSError):
        text = log.read_text("utf-8", "replace")
    # The fault handler closes with a list of all extension modules, of no use to anyone.
    return text.partition("\nExtension modules:")[0][-_TAIL:]
