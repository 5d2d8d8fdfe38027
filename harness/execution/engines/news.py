"""What happens on a cluster, as it is told to whoever decides."""

from __future__ import annotations

from dataclasses import dataclass

from ..jobs import Outcome
from .machines import Machine


@dataclass(frozen=True)
class Reply:
    """What came of a job that was sent.

    Attributes
    ----------
    outcome : Outcome or None
        None if it was not run to its end there.
    unfit : str
        Why it cannot be run on that machine.
    """

    outcome: Outcome | None = None
    unfit: str = ""


@dataclass(frozen=True)
class Joined:
    """A worker is there, and this is its machine."""

    address: str
    machine: Machine


@dataclass(frozen=True)
class Unable:
    """A worker is there, but cannot say what it is: it has no marginbench, or another one."""

    address: str
    reason: str


@dataclass(frozen=True)
class Left:
    """A worker is gone."""

    address: str


@dataclass(frozen=True)
class Replied:
    """A job has come back from a worker, with an outcome or without."""

    number: str
    reply: Reply


@dataclass(frozen=True)
class Gone:
    """The scheduler is gone."""

    reason: str


News = Joined | Unable | Left | Replied | Gone
