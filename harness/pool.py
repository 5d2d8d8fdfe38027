"""The local executor: warm worker processes, and limits that are enforced by killing them.

A worker serves job after job, unless it has run code from outside the project. The parent waits
on its pipe, counts its time phase by phase and looks at its memory; what breaks a limit, crashes
or hangs costs that one process, and the next job gets a fresh one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType

import psutil

from marginbench.harness import worker
from marginbench.harness.jobs import (
    CheckpointMessage,
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
)

# Seconds between two looks at memory and clocks, and between two at the child processes.
_POLL = 0.05
_POLL_CHILDREN = 0.5
# A worker that does not even start is broken: no solver is running yet.
_START_LIMIT = 120.0
_DOING = {
    "start": "starting the worker",
    "import": "importing the solver",
    "data": "loading the data",
    "compile": "building and warming up the solver",
    "solve": "solving",
    "evaluate": "evaluating the model",
    "idle": "waiting",
}
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class LocalPool:
    """Runs jobs in worker processes on this machine; use it as a context manager.

    Parameters
    ----------
    slots : int
        How many jobs run at the same time.
    log_folder : Path
        Takes what solvers print; removed again when the pool is closed.
    """

    def __init__(self, slots: int, log_folder: Path) -> None:
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
        exhausted = False
        try:
            while True:
                for slot in self._slots:
                    if slot.job is None and not exhausted:
                        job = next(jobs, None)
                        if job is None:
                            exhausted = True
                        else:
                            slot.assign(job)
                            yield Started(job)
                busy = [slot for slot in self._slots if slot.job is not None]
                if not busy:
                    return
                wait([handle for slot in busy for handle in slot.handles()], timeout=_POLL)
                for slot in busy:
                    job, outcome = slot.job, slot.check()
                    if job is not None and outcome is not None:
                        yield Ended(job, outcome)
                yield Waiting()
        finally:
            for slot in self._slots:
                if slot.job is not None:
                    slot.stop()

    def close(self) -> None:
        """Kill every worker and remove the logs."""
        for slot in self._slots:
            slot.stop()
            slot.log.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.log_folder.rmdir()


class _Slot:
    """Room for one job at a time, and the worker that serves it."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.job: Job | None = None
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._used = False
        self._threads = 0
        self._ready_rss = 0.0
        self._children: list[psutil.Process] = []
        self._children_seen = 0.0
        self._peak = 0.0
        self._outcome = Outcome("failed")
        self._phase: Phase = "start"
        self._phase_since = 0.0
        self._solved = 0.0

    def assign(self, job: Job) -> None:
        """Give the job to the worker, which is started first where there is none fit for it."""
        if (job.foreign and self._used) or job.threads != self._threads or not self._alive():
            self.stop()
            self._start(job.threads)
        self._used = True
        self.job = job
        self._outcome = Outcome("failed")
        self._solved = 0.0
        self._peak = 0.0
        self._children = []
        if self._phase != "start":
            self._enter("data")
        assert self._connection is not None
        with contextlib.suppress(OSError):  # a worker that just died is noticed by check()
            self._connection.send(job)

    def handles(self) -> list[Connection | int]:
        """What becomes ready when there is something to do."""
        assert self._connection is not None
        assert self._process is not None
        return [self._connection, self._process.sentinel]

    def check(self) -> Outcome | None:
        """Take in messages, then look at the limits; the outcome if the job has ended."""
        outcome = self._drain()
        if outcome is None and not self._alive():
            # Messages may have come in between the two looks.
            outcome = self._drain() or self._crashed()
        if outcome is None:
            outcome = self._over_limit()
        if outcome is None:
            return None
        outcome.phase = self._phase
        self._account(time.monotonic())
        peaks = [peak for peak in (outcome.peak_memory_mb, self._peak) if peak]
        outcome.peak_memory_mb = max(peaks) if peaks else None
        if outcome.status in ("timeout", "memory", "crashed") or self._left_something():
            self.stop()
        self.job = None
        self._phase = "idle"
        return outcome

    def stop(self) -> None:
        """Kill the worker and all its children."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        self.job = None
        if process is not None:
            for child in _family(process.pid):
                with contextlib.suppress(psutil.Error):
                    child.kill()
            process.kill()
            process.join(10.0)
        if connection is not None:
            connection.close()

    def _start(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        self._process = context.Process(
            target=worker.main, args=(there, os.getpid(), str(self.log)), name="marginbench-worker"
        )
        with _thread_limit(threads), _interrupts_blocked():
            self._process.start()
        there.close()
        self._connection = here
        self._threads = threads
        self._ready_rss = 0.0
        self._used = False
        self._enter("start")

    def _alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def _enter(self, phase: Phase) -> None:
        self._account(time.monotonic())
        self._phase = phase

    def _account(self, now: float) -> None:
        """Add the time since the last change to the phase that it was spent in."""
        spent, self._phase_since = now - self._phase_since, now
        if self.job is None:
            return
        if self._phase == "data":
            self._outcome.data_s += spent
        elif self._phase == "compile":
            self._outcome.compile_s += spent
        elif self._phase == "evaluate":
            self._outcome.evaluation_s += spent
        elif self._phase == "solve":
            self._outcome.solve_s += spent

    def _drain(self) -> Outcome | None:
        assert self._connection is not None
        with contextlib.suppress(EOFError, OSError):
            while self._connection.poll():
                message: Message = self._connection.recv()
                if isinstance(message, PhaseMessage):
                    if message.phase == "idle":
                        self._ready_rss = self._rss()
                        self._enter("data")
                        continue
                    self._enter(message.phase)
                    self._solved = message.solve_s
                    # The worker's own clock is the exact one.
                    self._outcome.solve_s = message.solve_s
                elif isinstance(message, CheckpointMessage):
                    self._outcome.trace.append(message.checkpoint)
                else:
                    return self._ended(message)
        return None

    def _ended(self, message: ResultMessage) -> Outcome:
        outcome = self._outcome
        outcome.peak_memory_mb = message.peak_memory_mb
        outcome.value = message.value
        outcome.reason = message.error
        outcome.traceback = message.traceback
        if message.kind == "":
            outcome.status = "done"
        elif message.kind == "memory":
            outcome.status = "memory"
            outcome.reason = f"out of memory while {_DOING[self._phase]} ({message.error})"
        else:
            outcome.status = message.kind
        return outcome

    def _crashed(self) -> Outcome:
        assert self._process is not None
        self._process.join(1.0)
        outcome = self._outcome
        outcome.status = "crashed"
        outcome.reason = f"{_exit_words(self._process.exitcode)} while {_DOING[self._phase]}"
        if self._phase == "start":
            # A new process imports the main script again.
            outcome.reason += " (a script that runs studies needs if __name__ == '__main__')"
        outcome.traceback = _tail(self.log)
        return outcome

    def _over_limit(self) -> Outcome | None:
        assert self.job is not None
        limits, outcome = self.job.limits, self._outcome
        spent = time.monotonic() - self._phase_since
        if self._phase == "start":
            limit = _START_LIMIT
        else:
            limit = limits.seconds.get(self._phase, float("inf"))
        if self._phase == "solve":
            spent += self._solved
        if spent > limit:
            outcome.status = "crashed" if self._phase == "start" else "timeout"
            outcome.reason = f"{_DOING[self._phase]} took longer than {limit:g} s"
            return outcome
        rss = self._rss()
        self._peak = max(self._peak, rss)
        if rss > limits.memory:
            outcome.status = "memory"
            outcome.reason = f"more than {limits.memory:g} MB resident while {_DOING[self._phase]}"
            return outcome
        return None

    def _rss(self) -> float:
        """Megabytes resident in the worker and its children."""
        assert self._process is not None
        now = time.monotonic()
        if now - self._children_seen > _POLL_CHILDREN:
            self._children, self._children_seen = _family(self._process.pid), now
        total = 0
        with contextlib.suppress(psutil.Error):
            total = psutil.Process(self._process.pid).memory_info().rss
        for child in self._children:
            with contextlib.suppress(psutil.Error):
                total += child.memory_info().rss
        return total / 1e6

    def _left_something(self) -> bool:
        """Whether the job may have left something behind, at the next one's expense."""
        assert self._process is not None
        assert self.job is not None
        if self.job.foreign or _family(self._process.pid):
            return True
        return self._rss() - self._ready_rss > self.job.limits.memory / 4


def _family(pid: int | None) -> list[psutil.Process]:
    """The processes that a process has started, directly or not."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def _exit_words(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"the process was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"the process was killed by signal {-code}"
    return f"the process ended with exit code {code}"


def _tail(log: Path, size: int = 4000) -> str:
    """The end of what the worker printed: after a crash, where it happened."""
    try:
        with log.open("rb") as source:
            source.seek(max(0, log.stat().st_size - 16 * size))
            text = source.read().decode("utf-8", "replace")
    except OSError:
        return ""
    # The fault handler closes with a list of all extension modules, of no use to anyone.
    return text.partition("\nExtension modules:")[0][-size:]


@contextlib.contextmanager
def _thread_limit(threads: int) -> Iterator[None]:
    """The environment that a starting worker takes its number of threads from."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A starting worker inherits the mask, so that Ctrl-C cannot hit it before it ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
