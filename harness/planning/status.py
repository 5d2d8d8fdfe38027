"""How far a study is, seen from outside: from the journal of its results folder.

A look reads only what was written since the last one. It writes nothing to the folder.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..results.description import FILE_NAME, DamagedDescriptionError, read_description
from ..results.journal import Entry, Journal, failure_line
from ..results.records import EXPECTED_STATUSES
from ..results.stores import Mirror, StoreUrl, is_url
from ..words import plural
from .forecast import Forecast, Pair, eta_words, recorded_seconds

_UNKNOWN = "another machine"
_ENVIRONMENT = re.compile(rb'"environment":("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class Running:
    """A run that a command has begun: what, on what machine, and for how many seconds."""

    task: str
    solver: str
    seed: int
    machine: str
    seconds: float


@dataclass
class Machine:
    """What one kind of machine has done and does."""

    done: int = 0
    failed: int = 0
    running: int = 0


@dataclass(frozen=True)
class Standing:
    """How far a study is."""

    study: str
    planned: int  # runs in the plan; of these, those recorded and those that are not
    done: int
    left: int
    statuses: dict[str, int]  # status -> number of recorded runs
    failures: tuple[str, ...]  # A line for each run that did not go as planned
    damaged: int  # lines of the journal that cannot be read, since the last plan
    running: tuple[Running, ...]  # runs that commands at work have begun
    # Commands at work: on this machine those that are there, elsewhere those that wrote lately.
    commands: int
    machines: dict[str, Machine]  # processor, cores and memory -> what was and is done there
    left_words: str  # the time that is left, in words; empty if no run has ended

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return asdict(self)

    def in_words(self) -> Iterator[str]:
        """Lines for the terminal."""
        eta = f", {self.left_words} left" if self.left_words else ""
        yield f"{self.study}: {self.done} of {plural(self.planned, 'run')} recorded{eta}"
        if self.statuses:
            yield ", ".join(f"{n} {status}" for status, n in self.statuses.items())
        if self.damaged:
            yield f"{plural(self.damaged, 'line')} of the journal cannot be read"
        if self.commands:
            yield f"{plural(self.commands, 'command')} at work"
        for name, machine in self.machines.items():
            yield (
                f"{name}: {machine.done} done, {machine.failed} failed, {machine.running} running"
            )
        for run in self.running:
            yield f"running {run.seconds:.0f} s: {run.task} / {run.solver} / seed {run.seed}"


class Monitor:
    """Looks at a results folder again and again."""

    def __init__(self, results: str | os.PathLike[str]) -> None:
        self._results, self._folder = os.fspath(results), Path(results)
        self._refresh: Callable[[], None] = lambda: None
        if is_url(results):
            mirror = Mirror(StoreUrl.parsed(results))
            self._folder, self._refresh = mirror.folder, mirror.pull
        self._journal: Journal | None = None
        # Of each record, and of the last one of each segment, on what machine.
        self._machines: dict[Entry, str] = {}
        self._last: dict[str, str] = {}

    def look(self) -> Standing:
        """How far the study is now."""
        self._refresh()
        described = self._described()
        if self._journal is None:
            self._journal = Journal(self._folder)
            new = self._journal.entries
        else:
            new = self._journal.refresh()
        for entry in new:
            words = setting_words(_environment(self._journal.folder, entry))
            self._machines[entry] = self._last[entry.segment] = words
        plan, current = self._journal.plan, self._journal.current
        left = [cell for cell in plan if cell not in current]
        starts = [start for start in self._journal.running() if start.cell not in current]
        machines: dict[str, Machine] = {}
        for entry in current.values():
            machine = machines.setdefault(self._machines.get(entry, _UNKNOWN), Machine())
            machine.done += 1
            machine.failed += entry.status not in EXPECTED_STATUSES
        running = tuple(
            Running(
                *start.cell,
                self._last.get(start.segment, _UNKNOWN),
                max(0.0, time.time() - start.at),
            )
            for start in starts
        )
        for run in running:
            machines.setdefault(run.machine, Machine()).running += 1
        commands = len(self._journal.others())
        at_once = max(described.get("jobs", 1) * commands, len(running), 1)
        return Standing(
            study=str(described.get("name", "")),
            planned=len(plan),
            done=len(current),
            left=len(left),
            statuses=dict(Counter(entry.status for entry in current.values())),
            failures=tuple(
                failure_line(entry)
                for entry in current.values()
                if entry.status not in EXPECTED_STATUSES
            ),
            damaged=len(self._journal.new_damages()),
            running=running,
            commands=commands,
            machines=machines,
            left_words=_forecast(current.values(), left, running, at_once),
        )

    def _described(self) -> dict[str, Any]:
        try:
            described = read_description(self._folder)
        except DamagedDescriptionError as error:
            raise UserError(str(error)) from None
        if described is None:
            raise UserError(f"{self._results}: no results here yet ({FILE_NAME} is missing)")
        return described


def _environment(folder: Path, entry: Entry) -> Mapping[str, Any]:
    """The environment of a record; to read all of it would take a hundred times as long."""
    with (folder / entry.segment).open("rb") as file:
        file.seek(entry.offset)
        match = _ENVIRONMENT.search(file.read(entry.size))
    environment: Mapping[str, Any] = json.loads(json.loads(match[1])) if match else {}
    return environment


def setting_words(environment: Mapping[str, Any]) -> str:
    """A kind of machine in words, from what records say of it."""
    if not environment.get("processor"):
        return _UNKNOWN
    memory = round(environment.get("memory_mb", 0) / 1000)
    cores = environment.get("cores_logical") or environment.get("cores")
    return f"{environment['processor']}, {cores} cores, {memory} GB"


def _forecast(
    entries: Iterable[Entry],
    left: Iterable[tuple[str, str, int]],
    running: Iterable[Running],
    at_once: int,
) -> str:
    """The time that is left if as many runs go on at the same time as now."""
    forecast = Forecast(at_once)
    for entry in entries:
        if entry.wall_s is not None:
            pair = Pair(entry.task, entry.solver)
            forecast.add(pair, recorded_seconds(entry))
    pairs = Counter(Pair(task, solver) for task, solver, _ in left)
    elapsed = [(Pair(run.task, run.solver), run.seconds) for run in running]
    pairs.subtract(pair for pair, _ in elapsed)
    to_do = {pair: count for pair, count in pairs.items() if count > 0}
    if not to_do and not elapsed:
        return ""
    remaining = forecast.remaining(to_do, elapsed)
    return "" if remaining is None else eta_words(remaining)
