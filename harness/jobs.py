"""Messages between the parent and the workers: jobs one way, messages and results the other.

This module imports nothing heavy: a worker reads it before it limits its threads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, get_args

if TYPE_CHECKING:
    from .results.records import CheckpointBase

#: What a worker is doing. Only "solve" is the solver's own time.
Phase = Literal["start", "import", "data", "compile", "tune", "solve", "evaluate", "idle"]


class Work:
    """Work for a worker. Its modules are imported when it runs."""

    #: The type of its result, or of the record of which its result and messages are columns.
    result: ClassVar[Any] = None
    record: ClassVar[Any] = None

    def run(self, send: Send) -> Any:
        """Do the work and return the result; phases and checkpoints are sent as they come."""
        raise NotImplementedError

    def parsed(self, value: Any) -> Any:
        """The result from its plain form, in which it came from another process.

        A ValueError says why it is none.
        """
        if self.record is not None:
            return self.record.parsed(value)
        return value if self.result is None else described(self.result, value)


def described(cls: Any, value: Any) -> Any:
    """A dataclass from its plain form; a ValueError names a field that does not fit."""
    unknown = set(value) - {item.name for item in fields(cls)}
    if unknown:
        raise ValueError(f"{min(unknown)!r:.40} is no field of it")
    return _adapter(cls).validate_python(value)


@cache
def _adapter(cls: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


@dataclass(frozen=True)
class Limits:
    """What the parent enforces from outside while a job runs."""

    # The longest time in each phase. All stretches of a phase count together; only in "evaluate"
    # each counts by itself.
    seconds: Mapping[Phase, float]
    memory: float  # megabytes resident, child processes included
    total: float = math.inf  # seconds of all phases together
    cpu: float = math.inf  # CPU seconds in "solve", of all threads and child processes together


@dataclass(frozen=True)
class Job:
    """Work with its limits; the tag is the caller's name for it.

    Foreign work runs code from outside the project. Its worker serves no other job: what such code
    leaves behind in its process (settings, threads, patched modules) must not reach the runs of
    others.
    """

    tag: str
    work: Work
    limits: Limits
    foreign: bool = False


#: What a worker sends: ``phase``, which it enters, and ``solve_s`` if seconds of solving are behind
#: it; ``columns`` of the record that hold however the run ends; a judged ``checkpoint``, from which
#: the solver ``goes_on`` or not. At the end ``value``, or ``error`` (one line), its ``kind`` and a
#: ``traceback``.
Message: TypeAlias = dict[str, Any]
Send = Callable[[Message], None]


def encoded(message: Message) -> bytes:
    """A message as a line of JSON; numbers of NumPy become plain, anything else its ``repr``."""
    return json.dumps(message, default=_plain).encode("ascii") + b"\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, set | frozenset) else repr(value)


def decoded(body: bytes, work: Work) -> Message:
    """The message that a worker sent while it did some work; a ValueError if it is none."""
    try:
        message: Message = json.loads(body)
        if "phase" in message:
            get_args(Phase).index(message["phase"])
        elif "columns" in message:
            message["columns"] = work.parsed(message["columns"])
        elif "checkpoint" in message:
            message["checkpoint"] = work.record.checkpoint(**message["checkpoint"])
        elif "value" in message:
            message["value"] = work.parsed(message["value"])
        else:
            message["error"], message["kind"]
        return message
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error!s:.200}") from None


#: "done" (it has a value), "failed" (it raised), "data" (the data could not be loaded), "storage"
#: (a file could not be written), "user" (a mistake of the user), or what ended it.
Status = Literal["done", "failed", "data", "storage", "user", "timeout", "memory", "crashed"]


@dataclass
class Outcome:
    """The outcome of a job, whatever ended it; times are those that the parent saw."""

    status: Status
    value: Any = None
    reason: str = ""  # one line
    traceback: str = ""
    phase: Phase = "start"  # where it ended
    # Columns of the record that it sent before it ended.
    columns: dict[str, Any] = field(default_factory=dict)
    trace: list[CheckpointBase] = field(default_factory=list)  # what it reported before it ended
    solve_s: float = 0.0
    # Columns of the record that are known from outside: times and memory that the parent saw, and
    # where it ran, unless on this machine with these options.
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
    """Nothing has happened for a moment; progress displays may refresh.

    ``phases`` are those of the jobs that run here: the tag of a job -> its phase.
    """

    phases: Mapping[str, Phase] = field(default_factory=dict)


Event = Started | Ended | Waiting


class Executor(Protocol):
    """Runs jobs somewhere; each ends with an outcome, whatever happens to it."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs; the next one is drawn only when there is room for it."""
        ...

    def close(self) -> None:
        """Stop what runs and release everything."""
        ...
