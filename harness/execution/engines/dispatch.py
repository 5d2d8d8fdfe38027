"""Which worker gets which job, and what becomes of jobs whose worker is lost or cannot do them.

Decisions only: nothing here knows Dask, waits or sends.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...errors import EngineError
from ...words import plural
from ..jobs import Ended, Job, Outcome, Started
from .machines import Machine, Program

# Times that a job is begun again because its worker was lost.
_RETRIES = 1
# Seconds until the user is told that there is no worker, and until those that differ are the end.
_A_MOMENT, _NONE_FITS = 3.0, 10.0
# Seconds without another worker after which those that are there seem to be all: of a cluster that
# runs, and of one whose workers wait in a queue.
_SETTLED, _SETTLED_QUEUE = 5.0, 60.0


@dataclass(eq=False)
class Station:
    """A worker, and what it does.

    Attributes
    ----------
    address : str
    machine : Machine
    number : str
        The attempt that it is busy with; empty if it is free.
    retired : bool
        Whether it gets no more jobs.
    """

    address: str
    machine: Machine
    number: str = ""
    retired: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.machine.name} ({self.address})"


@dataclass(eq=False)
class Errand:
    """A job on its way to an outcome.

    Attributes
    ----------
    job : Job
    lost : list of str
        Machines whose workers were lost with it.
    refused : dict
        Addresses of workers that cannot do it, each with the outcome if it remains so.
    started_at : str
        When the last attempt began.
    """

    job: Job
    lost: list[str] = field(default_factory=list)
    refused: dict[str, Outcome] = field(default_factory=dict)
    started_at: str = ""


@dataclass(frozen=True)
class Order:
    """A job for a worker; ``started`` is None if it has been begun before."""

    address: str
    number: str
    job: Job
    started: Started | None


class Dispatch:
    """Gives each free worker a job.

    Parameters
    ----------
    jobs : iterator of Job
        Drawn one by one, when a worker is free.
    program : Program
        The command's; workers with another get no jobs.
    say : callable
        Takes one line for the user.
    timing : bool
        Whether only machines of one model are used, each for one job at a time.
    expected : int, optional
        How many workers are to come, where that is known.
    """

    def __init__(
        self,
        jobs: Iterator[Job],
        program: Program,
        say: Callable[[str], None],
        *,
        timing: bool = False,
        expected: int | None = None,
    ) -> None:
        self._jobs, self._program, self._say = jobs, program, say
        self._timing, self._expected = timing, expected
        self._exhausted = False
        self._stations: dict[str, Station] = {}
        # By address: why a worker that is there is not used.
        self._unused: dict[str, str] = {}
        self._busy: dict[str, tuple[Station, Errand]] = {}
        self._again: deque[Errand] = deque()
        # With timing: the model, once it is chosen, and when the last worker came.
        self._model: tuple[Any, ...] | None = None
        self._last_came = self._idle_since = time.monotonic()
        self._told_to_wait = False
        # What a machine lacks, it lacks for many runs.
        self._told: set[str] = set()

    def begin(self, jobs: Iterator[Job]) -> None:
        """Take other jobs, now that all have ended; the workers are those that are known."""
        self._jobs, self._exhausted = jobs, False
        self._idle_since = time.monotonic()

    @property
    def is_done(self) -> bool:
        """Whether every job has ended."""
        return self._exhausted and not self._busy and not self._again

    def joined(self, address: str, machine: Machine) -> None:
        """A worker is there."""
        difference = self._program.difference(machine.program)
        if difference:
            self.unable(address, f"{machine.name} {difference}")
            return
        self._stations[address] = Station(address, machine)
        self._last_came = time.monotonic()

    def unable(self, address: str, reason: str) -> None:
        """A worker is there that cannot be used."""
        self._unused[address] = reason
        self._say(f"worker {address} gets no runs: {reason}; install the same there")

    def left(self, address: str) -> Iterator[Ended]:
        """A worker is gone; what it did is done again elsewhere, once."""
        self._unused.pop(address, None)
        station = self._stations.pop(address, None)
        if station is not None and station.number:
            yield from self._lost(station)

    def replied(
        self, number: str, outcome: Outcome | None = None, unfit: str = ""
    ) -> Iterator[Ended]:
        """A job has come back: with an outcome, with the reason why it is unfit, or lost."""
        if number not in self._busy:
            return  # given up before
        station, errand = self._busy[number]
        name = station.machine.name
        if unfit:
            outcome = Outcome("failed", reason=f"{name}: {unfit}")
        if outcome is None:
            yield from self._lost(station)
            return
        del self._busy[number]
        station.number = ""
        if unfit or outcome.status in ("data", "storage"):
            self._refused(station, errand, outcome)
            return
        yield self._ended(errand, outcome, station)

    def orders(self) -> Iterator[Order]:
        """Jobs for the workers that are free."""
        for station in self._usable():
            if station.number:
                continue
            errand = self._next(station)
            if errand is None:
                continue
            first = not errand.started_at
            errand.started_at = datetime.now(UTC).isoformat(timespec="seconds")
            station.number = uuid.uuid4().hex
            self._busy[station.number] = station, errand
            started = Started(errand.job, station.machine.name) if first else None
            yield Order(station.address, station.number, errand.job, started)

    def given_up(self) -> Iterator[Ended]:
        """Jobs that no machine which is there can do, once no more workers seem to come."""
        usable = self._usable()
        if not self._is_settled:
            return
        addresses = {station.address for station in usable}
        for errand in list(self._again):
            if errand.refused and addresses <= errand.refused.keys():
                self._again.remove(errand)
                outcome = next(reversed(errand.refused.values()))
                yield self._ended(errand, outcome, None)

    def check(self) -> None:
        """Tell the user where nothing can go on.

        Raises
        ------
        EngineError
            If there are workers, but none can be used.
        """
        now = time.monotonic()
        if self._busy or self.is_done or self._usable():
            self._idle_since, self._told_to_wait = now, False
            return
        waited = now - self._idle_since
        if self._unused and not self._stations and waited > _NONE_FITS:
            reason = next(iter(self._unused.values()))
            raise EngineError(
                f"none of {plural(len(self._unused), 'worker')} can be used: {reason}"
            )
        if waited > _A_MOMENT and not self._told_to_wait:
            self._told_to_wait = True
            self._say("waiting for workers (Ctrl-C ends the command; what is recorded stays)")

    def _usable(self) -> list[Station]:
        stations = [station for station in self._stations.values() if not station.retired]
        if not self._timing:
            return stations
        if self._model is None:
            self._choose(stations)
        alike = (station for station in stations if station.machine.model == self._model)
        # One of each machine; one that is busy goes first, so that it stays the only one.
        by_machine: dict[str, Station] = {}
        for station in sorted(alike, key=lambda station: not station.number):
            by_machine.setdefault(station.machine.name, station)
        return list(by_machine.values())

    @property
    def _is_settled(self) -> bool:
        """Whether all workers are there, as far as one can tell."""
        waited = time.monotonic() - self._last_came
        if self._expected is None:
            return waited > _SETTLED
        return len(self._stations) >= self._expected or waited > _SETTLED_QUEUE

    def _choose(self, stations: list[Station]) -> None:
        """Choose the model of which there are most machines, once no more workers seem to come."""
        if not stations or not self._is_settled:
            return
        machines = {station.machine.name: station.machine for station in stations}
        count = Counter(machine.model for machine in machines.values())
        self._model, most = count.most_common(1)[0]
        words = next(m.model_words for m in machines.values() if m.model == self._model)
        self._say(f"timing on {most} of {plural(len(machines), 'machine')}: {words}")

    def _next(self, station: Station) -> Errand | None:
        for errand in self._again:
            if station.address not in errand.refused:
                self._again.remove(errand)
                return errand
        job = None if self._exhausted else next(self._jobs, None)
        if job is None:
            self._exhausted = True
            return None
        return Errand(job)

    def _lost(self, station: Station) -> Iterator[Ended]:
        _, errand = self._busy.pop(station.number)
        station.number = ""
        errand.lost.append(station.machine.name)
        if len(errand.lost) <= _RETRIES:
            self._say(f"worker {station.name} was lost; its run is begun again")
            self._again.append(errand)
            return
        first, *rest = errand.lost
        reason = f"the worker on {first} was lost, then that on {' and that on '.join(rest)}"
        yield self._ended(errand, Outcome("crashed", reason=reason), station)

    def _refused(self, station: Station, errand: Errand, outcome: Outcome) -> None:
        """A worker lacks something that a job needs; another may have it, even beside it."""
        name = station.machine.name
        if name not in outcome.reason:
            outcome.reason = f"{outcome.reason} (on {name})"
        if outcome.status == "storage":
            station.retired = True
        line = f"worker {station.name}: {outcome.reason}"
        if line not in self._told:
            self._told.add(line)
            self._say(line)
        outcome.setting = self._setting(errand, station)
        errand.refused[station.address] = outcome
        self._again.append(errand)

    def _ended(self, errand: Errand, outcome: Outcome, station: Station | None) -> Ended:
        if station is not None:
            outcome.setting = self._setting(errand, station)
        return Ended(errand.job, outcome)

    def _setting(self, errand: Errand, station: Station) -> dict[str, Any]:
        machine = station.machine
        beside = [other for other in self._stations.values() if other.machine.name == machine.name]
        return {
            "environment": machine.setting,
            "jobs": 1 if self._timing else max(1, len(beside)),
            "started_at": errand.started_at,
        }
