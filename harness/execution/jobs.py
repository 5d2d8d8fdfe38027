"""What travels between the parent and the workers: jobs one way, messages and results the other.

This module imports nothing heavy: a worker reads it before it limits its threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from ..results.records import CheckpointBase

#: What a worker is doing. Only "solve" is the solver's own time.
Phase = Literal["start", "import", "data", "compile", "tune", "solve", "evaluate", "idle"]
#: Phases with times that matter: before the first of a job the worker waits for the parent.
TIMED: frozenset[Phase] = frozenset({"tune", "solve"})


class Work:
    """Something that a worker does. What it needs is imported when it runs."""

    #: Whether its result comes from a fit by code from outside.
    fits: ClassVar[bool] = False

    def run(self, send: Send) -> Any:
        """Do it and return the result; phases and checkpoints are sent as they come."""
        raise NotImplementedError

    def parsed(self, value: Any) -> Any:
        """The result from its plain form, in which it came from another process.

        Raises
        ------
        ValueError
            If it is none.
        """
        return value

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        """A checkpoint from its columns.

        Raises
        ------
        ValueError, TypeError
            If it is none.
        """
        raise ValueError("this work has no checkpoints")

    def parsed_found(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Columns of the record that are known before the end, from their plain form.

        Raises
        ------
        ValueError, TypeError
            If they are none.
        """
        raise ValueError("this work finds nothing before its end")

    def apart(self) -> Work:
        """What a worker does in its place that runs code from outside the project."""
        return self

    def judged(self, outcome: Outcome) -> Work | None:
        """What another worker does, without that code, to judge what came of :meth:`apart`."""
        return None


def described(cls: type[Any], value: Any) -> Any:
    """A dataclass from its plain form.

    Raises
    ------
    ValueError
        If a field is missing, unknown or of another type.
    """
    from pydantic import TypeAdapter

    unknown = set(value) - {item.name for item in fields(cls)}
    if unknown:
        raise ValueError(f"{min(unknown)!r:.40} is no field of it")
    return TypeAdapter(cls).validate_python(value)


@dataclass(frozen=True)
class Limits:
    """What the parent enforces from outside while a job runs.

    Attributes
    ----------
    seconds : mapping
        Longest time in each phase. All stretches of a phase count together; only in "evaluate" each
        counts by itself, unless a solver from outside asked for it, whose limit is that of "solve".
    memory : float
        Megabytes resident, child processes included.
    total : float
        Longest time of all phases together.
    cpu : float
        Most CPU seconds in "solve", of all threads and child processes together.
    """

    seconds: Mapping[Phase, float]
    memory: float
    total: float = math.inf
    cpu: float = math.inf


@dataclass(frozen=True)
class Job:
    """Work with its limits.

    Attributes
    ----------
    tag : str
        The caller's name for it.
    foreign : bool
        The work runs code from outside the project. Its worker serves no other job: what such
        code leaves behind in its process (settings, threads, patched modules) must not reach the
        runs of others.
    """

    tag: str
    work: Work
    limits: Limits
    threads: int = 1
    foreign: bool = False


@dataclass(frozen=True)
class PhaseMessage:
    """The worker enters a phase; ``solve_s`` seconds of solving are behind it."""

    phase: Phase
    solve_s: float = 0.0


@dataclass(frozen=True)
class FoundMessage:
    """What the record is to say, however the run ends: columns by name."""

    columns: dict[str, Any]


@dataclass(frozen=True)
class CheckpointMessage:
    """A checkpoint, judged."""

    checkpoint: CheckpointBase


@dataclass(frozen=True)
class Stamp:
    """Wall-clock and CPU seconds since a fit began.

    ``delay_s`` are those in which the processes that measure it were ready but the system let
    others run, where that is known, and ``sent`` is what has been sent by then, in bytes.
    """

    wall_s: float
    cpu_s: float
    delay_s: float = 0.0
    sent: int = 0


@dataclass(frozen=True)
class SnapshotMessage:
    """A state of a run that is to be judged elsewhere, in plain form, at a time by its own clocks.

    ``state["final"]`` is true of the last one.
    """

    state: dict[str, Any]
    time: Stamp


@dataclass(frozen=True)
class ResultMessage:
    """The job is done. ``error`` holds a one-line reason if it raised."""

    value: Any = None
    error: str = ""
    kind: Literal["", "memory", "data", "storage", "user", "failed"] = ""
    traceback: str = ""


Message = PhaseMessage | FoundMessage | CheckpointMessage | SnapshotMessage | ResultMessage
Send = Callable[[Message], None]


@dataclass
class Outcome:
    """How a job ended, however it ended.

    Attributes
    ----------
    status : str
        "done" (``value`` holds the result), "failed" (it raised), "data" (the data could not be
        loaded), "storage" (a file could not be written), "user" (a mistake of the user), or
        "timeout", "memory", "crashed".
    reason : str
        One line.
    phase : str
        Where it ended.
    found : dict
        Columns of the record that it found out before it ended.
    trace : list of CheckpointBase
        What it reported before it ended.
    snapshots : Path or None
        A file with the states that are to be judged, one frame each.
    claimed, seen : list of Stamp
        When each of these states was reached, by the clocks of its process and from outside. What
        is seen from outside is an upper bound. If there is no state, the only entry is that of the
        result.
    solve_s, data_s, compile_s, evaluation_s : float
        Seconds in each phase as the parent saw them.
    setting : dict
        Columns of the record that tell where it ran; empty: on this machine, with these options.
    """

    status: Literal["done", "failed", "data", "storage", "user", "timeout", "memory", "crashed"]
    value: Any = None
    reason: str = ""
    traceback: str = ""
    phase: Phase = "start"
    found: dict[str, Any] = field(default_factory=dict)
    trace: list[CheckpointBase] = field(default_factory=list)
    snapshots: Path | None = None
    claimed: list[Stamp] = field(default_factory=list)
    seen: list[Stamp] = field(default_factory=list)
    solve_s: float = 0.0
    data_s: float = 0.0
    compile_s: float = 0.0
    evaluation_s: float = 0.0
    peak_memory_mb: float | None = None
    setting: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """A job has been given to a worker; ``machine`` is empty for this machine."""

    job: Job
    machine: str = ""


@dataclass(frozen=True)
class Ended:
    """A job has ended."""

    job: Job
    outcome: Outcome


@dataclass(frozen=True)
class Waiting:
    """Nothing has happened for a moment; progress displays may refresh."""


Event = Started | Ended | Waiting


class Executor(Protocol):
    """Runs jobs somewhere; each ends with an outcome, whatever happens to it."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs; the next one is drawn only when there is room for it."""
        ...

    def close(self) -> None:
        """Stop what runs and release everything."""
        ...
