"""One job in one worker, watched by the parent: its messages, its clocks and its limits."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import pickle
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..evaluation.spool import Spool
from .jobs import (
    TIMED,
    CheckpointMessage,
    FoundMessage,
    Job,
    Message,
    Outcome,
    Phase,
    PhaseMessage,
    ResultMessage,
    SnapshotMessage,
    Stamp,
    Work,
)
from .messages import message_of
from .process import WorkerProcess
from .wire import MAX_DATA, WireError, encode, frame_of

# A worker that does not even start is broken: no solver is running yet.
_START_LIMIT = 120.0
# Of the states of one run that are to be judged, all together; more of them are left out.
_SPOOL_BYTES = 2**31
_SPOOL_STATES = 5000
# Of what a solver prints, bytes.
_LOG_BYTES = 2**24
_TAIL = 4000
# Seconds of reading messages before the limits are looked at again.
_DRAIN = 0.2
# Seconds between two looks at the limits while messages come: each look costs as much as several of
# them.
_PAUSE = 0.02
_DOING = {
    "start": "starting the worker",
    "import": "importing the solver",
    "data": "loading the data",
    "compile": "building and warming up the solver",
    "tune": "tuning",
    "solve": "solving",
    "evaluate": "evaluating the model",
    "idle": "waiting",
}
#: The order of phases. A job does not go back, but for checkpoints while it solves.
_RANK = {
    "start": 0,
    "idle": 0,
    "import": 1,
    "data": 1,
    "compile": 2,
    "tune": 3,
    "solve": 4,
    "evaluate": 4,
}


class JobWatch:
    """A job from the moment it is given to a worker until it has ended.

    Parameters
    ----------
    job : Job
    work : Work
        What the worker does for it.
    process : WorkerProcess
    spool : Spool
        Takes the states that are to be judged elsewhere.
    fresh : bool
        Whether the worker was started for this job.
    """

    def __init__(
        self, job: Job, work: Work, process: WorkerProcess, spool: Spool, *, fresh: bool
    ) -> None:
        self.job, self.work, self.process = job, work, process
        self._spool = spool
        self._spooled = 0
        self._outcome = Outcome("failed")
        self._phase: Phase = "start" if fresh else "data"
        self._began = self._since = time.monotonic()
        self._spent: dict[str, float] = {}
        # CPU seconds and time when the first timed phase began.
        self._clocked: tuple[float, float] | None = None
        # CPU seconds of solving, up to the last phase, and the clock then.
        self._cpu_solved = self._cpu_since = 0.0
        self._peak = 0.0
        self._looked = -math.inf
        self._ready_mb = 0.0 if fresh else process.resident_mb()
        # Whether a timed phase has begun, and whether the last has ended.
        self._timed = self._all_timed = False
        # Solving by the worker's own clock, up to the last message.
        self._solved = 0.0
        # The parent's view of a fit by code from outside: see Stamp.
        self._fit_began: Stamp | None = None
        self._sent = 0
        self._fit_ended = False
        process.reader.max_data = int(min(MAX_DATA, job.limits.memory * 1e6))
        if not fresh:
            process.reset_peak()
        # A worker that just died is noticed by check().
        process.send(frame_of(b"", pickle.dumps(job)))

    def check(self) -> Outcome | None:
        """Take in messages, then look at the limits; the outcome if the job has ended."""
        outcome = self._drain()
        if outcome is None and self.process.closed:
            # The end of the connection comes a moment before the end of the process.
            self.process.join(2.0)
        if outcome is None and not self.process.alive:
            # Messages may have come in between the two looks.
            outcome = self._drain() or self._crashed()
        if outcome is None and self.process.closed:
            outcome = self._ended("crashed", "the process closed its connection")
        if outcome is None and time.monotonic() - self._looked > _PAUSE:
            outcome = self._over_limit()
        if outcome is None:
            return None
        outcome.phase = self._phase
        self._account(time.monotonic())
        outcome.data_s = self._spent.get("data", 0.0)
        outcome.compile_s = self._spent.get("compile", 0.0)
        outcome.evaluation_s = self._spent.get("evaluate", 0.0)
        if self.job.foreign or self._phase == "solve":
            outcome.solve_s = max(self._solved, self._spent.get("solve", 0.0))
        else:
            outcome.solve_s = self._solved
        peaks = [peak for peak in (self.process.peak_mb(), self._peak) if peak]
        outcome.peak_memory_mb = max(peaks) if peaks else None
        return outcome

    @property
    def is_awaited(self) -> bool:
        """Whether the worker goes on only when its message has been read, or has soon done."""
        return self.job.foreign or self._all_timed or _RANK[self._phase] < _RANK["tune"]

    def spoiled(self, outcome: Outcome) -> bool:
        """Whether the job may have left something behind, at the next one's expense."""
        if outcome.status in ("timeout", "memory", "crashed"):
            return True
        if len(self.process.family()) > 1:
            return True
        return self.process.resident_mb() - self._ready_mb > self.job.limits.memory / 4

    def _enter(self, phase: Phase) -> None:
        self._account(time.monotonic())
        self._phase = phase

    def _account(self, now: float) -> None:
        """Add the time since the last change to the phase that it was spent in."""
        self._spent[self._phase] = self._spent.get(self._phase, 0.0) + now - self._since
        self._since = now
        if self.job.limits.cpu < math.inf:
            cpu_s = self.process.cpu_s(fresh=False)
            if self._phase == "solve":
                self._cpu_solved += cpu_s - self._cpu_since
            self._cpu_since = cpu_s

    def _drain(self) -> Outcome | None:
        until = time.monotonic() + _DRAIN
        try:
            for text, data in self.process.receive():
                arrived = time.monotonic()
                if arrived > until:
                    # However many there are, limits are looked at in between.
                    self.process.reader.put_back(text, data)
                    return None
                self._sent += len(text) + len(data)
                message = message_of(text, data, self.work)
                if isinstance(message, ResultMessage):
                    return self._result(message, arrived)
                self._take(message, arrived)
        except WireError as error:
            return self._ended("crashed", f"the process sent no valid message: {error}")
        return None

    def _take(self, message: Message, arrived: float) -> None:
        if isinstance(message, PhaseMessage):
            self._take_phase(message, arrived)
        elif isinstance(message, FoundMessage):
            if self._phase != "tune" or self._outcome.found:
                raise WireError("what no tuning has found")
            self._outcome.found = message.columns
        elif isinstance(message, CheckpointMessage):
            if self.job.foreign:
                raise WireError("a judgement of its own")
            self._outcome.trace.append(message.checkpoint)
        elif isinstance(message, SnapshotMessage):
            self._take_snapshot(message, arrived)
        phase = message.phase if isinstance(message, PhaseMessage) else None
        begins = phase in TIMED and not self._timed
        self._timed |= begins
        if begins:
            self._clocked = self.process.cpu_s(), arrived
        if begins or (self.job.foreign and phase != "idle"):
            self.process.acknowledge()

    def _take_phase(self, message: PhaseMessage, arrived: float) -> None:
        phase = message.phase
        if phase in ("start", "idle"):
            if phase == "start" or self._phase != "start":
                raise WireError(f"phase {phase!r} after {self._phase!r}")
            self._ready_mb = self.process.resident_mb()
            self._enter("data")
            return
        # Only where something is to be tuned: nothing else limits that phase.
        unplanned = phase == "tune" and phase not in self.job.limits.seconds
        if unplanned or self._phase == "start" or _RANK[phase] < _RANK[self._phase]:
            raise WireError(f"phase {phase!r} after {self._phase!r}")
        # The second time in a row it is the claims about the last state that are looked at.
        self._all_timed = phase == "evaluate" and self._phase == "evaluate"
        self._enter(phase)
        if not self.job.foreign:
            # The worker's own clock is the exact one.
            self._solved = message.solve_s
        elif phase == "solve" and self._fit_began is None:
            self._fit_began = self._now(arrived, fresh=True)

    def _take_snapshot(self, message: SnapshotMessage, arrived: float) -> None:
        """Keep a state for its judge, with the time that has passed."""
        if not self.job.foreign or self._fit_began is None or self._fit_ended:
            raise WireError("a state of no fit")
        self._fit_ended = message.state.get("final") is True
        outcome = self._outcome
        frame = encode(message.state)
        room = self._spooled + len(frame) <= _SPOOL_BYTES and len(outcome.seen) < _SPOOL_STATES
        if not room and not self._fit_ended:
            return
        outcome.claimed.append(message.time)
        outcome.seen.append(self._fit_time(arrived, fresh=self._fit_ended))
        self._spool.write(frame)
        self._spooled += len(frame)
        outcome.snapshots = self._spool.path

    def _fit_time(self, arrived: float, *, fresh: bool) -> Stamp:
        """What the fit has taken until a message arrived."""
        assert self._fit_began is not None
        began, now = self._fit_began, self._now(arrived, fresh=fresh)
        return Stamp(
            wall_s=now.wall_s - began.wall_s,
            cpu_s=max(0.0, now.cpu_s - began.cpu_s),
            delay_s=max(0.0, now.delay_s - began.delay_s),
            sent=now.sent - began.sent,
        )

    def _now(self, arrived: float, *, fresh: bool) -> Stamp:
        """The clocks when a message arrived, after a fresh look at child processes if asked for."""
        cpu_s, delay_s = self.process.cpu_s(fresh=fresh), self.process.delay_s()
        return Stamp(arrived, cpu_s, delay_s, self._sent)

    def _result(self, message: ResultMessage, arrived: float) -> Outcome:
        outcome = self._outcome
        if self.work.fits and not message.kind:
            if self._fit_began is None:
                raise WireError("a result before the fit")
            if not outcome.seen:
                outcome.seen.append(self._fit_time(arrived, fresh=True))
        outcome.value, outcome.traceback = message.value, message.traceback
        kind = message.kind
        if kind in ("data", "storage") and self.job.foreign and self._phase != "data":
            # Only the solver can have said so.
            kind = "failed"
        if kind == "memory":
            doing = _DOING[self._phase]
            return self._ended("memory", f"out of memory while {doing} ({message.error})")
        outcome.status, outcome.reason = kind or "done", message.error
        return outcome

    def _ended(self, status: str, reason: str) -> Outcome:
        assert status in ("crashed", "timeout", "memory")
        self._outcome.status, self._outcome.reason = status, reason  # type: ignore[assignment]
        return self._outcome

    def _crashed(self) -> Outcome:
        self._outcome.traceback = _tail(self.process.log)
        return self._ended("crashed", f"{self.process.exit_words} while {_DOING[self._phase]}")

    def _over_limit(self) -> Outcome | None:
        limits, now, doing = self.job.limits, time.monotonic(), _DOING[self._phase]
        self._looked = now
        spent, limit = self._spent_and_limit(now)
        if spent > limit:
            status = "crashed" if self._phase == "start" else "timeout"
            return self._ended(status, f"{doing} took longer than {limit:g} s{self._share(now)}")
        if now - self._began > limits.total:
            words = f"all of the run took longer than {limits.total:g} s{self._share(now)}"
            return self._ended("timeout", words)
        if self._phase == "solve" and limits.cpu < math.inf:
            cpu_s = self._cpu_solved + self.process.cpu_s(fresh=False) - self._cpu_since
            if cpu_s > limits.cpu:
                return self._ended(
                    "timeout", f"solving took more than {limits.cpu:g} s of CPU time"
                )
        resident = self.process.resident_mb()
        self._peak = max(self._peak, resident)
        if resident > limits.memory:
            return self._ended("memory", f"more than {limits.memory:g} MB resident while {doing}")
        _bound(self.process.log)
        return None

    def _share(self, now: float) -> str:
        """How much of a core a job had that ran out of time: a busy machine gives it less."""
        if self._clocked is None:
            return ""
        cpu_s, began = self._clocked
        share = (self.process.cpu_s() - cpu_s) / max(now - began, _PAUSE)
        return f"; it had {max(0.0, share):.0%} of a core".replace("%", " %")

    def _spent_and_limit(self, now: float) -> tuple[float, float]:
        """Seconds in the current phase, and the most that there may be."""
        phase, stretch = self._phase, now - self._since
        if phase == "start":
            return stretch, _START_LIMIT
        limit = self.job.limits.seconds.get(phase, float("inf"))
        if phase == "evaluate":
            if not self.job.foreign or self._fit_ended:
                return stretch, limit
            # A solver that looks at itself may not do so for longer than it may solve.
            limit = self.job.limits.seconds.get("solve", float("inf"))
        elif phase == "solve" and not self.job.foreign:
            return self._solved + stretch, limit
        return self._spent.get(phase, 0.0) + stretch, limit


def _bound(log: Path) -> None:
    """Keep what a solver prints from filling the disk."""
    with contextlib.suppress(OSError), _regular(log, os.O_WRONLY) as sink:
        if os.fstat(sink.fileno()).st_size > _LOG_BYTES:
            os.ftruncate(sink.fileno(), 0)


def _tail(log: Path) -> str:
    """The end of what the worker printed: after a crash, where it happened."""
    try:
        with _regular(log, os.O_RDONLY) as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - 16 * _TAIL))
            text = source.read().decode("utf-8", "replace")
    except OSError:
        return ""
    # The fault handler closes with a list of all extension modules, of no use to anyone.
    return text.partition("\nExtension modules:")[0][-_TAIL:]


@contextlib.contextmanager
def _regular(path: Path, flags: int) -> Iterator[BinaryIO]:
    """Open a file that a solver may have replaced: neither a link nor a pipe, and without waiting.

    Raises
    ------
    OSError
        If it is no regular file.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb" if flags == os.O_RDONLY else "wb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        yield opened
