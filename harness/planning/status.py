"""How far a study is, seen from outside: from the journal of its results folder.

A look reads only what was written since the last one. It writes nothing to the folder.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..results.description import FILE_NAME
from ..results.journal import Journal, failure_line
from ..results.records import EXPECTED_STATUSES
from ..results.stores import Mirror, StoreUrl, is_url
from ..words import plural
from .forecast import Forecast, Pair, span

_UNKNOWN = "another machine"
_RUNNING = ("task", "solver", "seed", "machine", "seconds")


@dataclass(frozen=True)
class Standing:
    """How far a study is."""

    study: str
    planned: int  # runs in the plan; of these, those recorded and those that are not
    done: int
    left: int
    statuses: dict[str, int]  # status -> number of recorded runs
    failures: tuple[str, ...]  # A line for each run that did not go as planned
    damaged: int  # lines of the journal that cannot be read
    # Runs that commands at work have begun: task, solver, seed, machine and seconds.
    running: tuple[dict[str, Any], ...]
    # Commands at work: on this machine those that are there, elsewhere those that wrote lately.
    commands: int
    # Processor, cores and memory -> how many runs are done, failed and running there.
    machines: dict[str, dict[str, int]]
    left_words: str  # the time that is left, in words; empty if no run has ended

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
        for name, counts in self.machines.items():
            yield f"{name}: " + ", ".join(f"{n} {what}" for what, n in counts.items())
        for run in self.running:
            where = "{task} / {solver} / seed {seed}".format_map(run)
            yield f"running {run['seconds']:.0f} s: {where}"


class Monitor:
    """Looks at a results folder again and again."""

    def __init__(self, results: str | os.PathLike[str]) -> None:
        self._results, self._folder = os.fspath(results), Path(results)
        self._refresh: Callable[[], None] = lambda: None
        if is_url(results):
            mirror = Mirror(StoreUrl.parsed(results))
            self._folder, self._refresh = mirror.folder, mirror.pull
        self._journal: Journal | None = None

    def look(self) -> Standing:
        """How far the study is now."""
        self._refresh()
        journal = self._journal = self._journal or Journal(self._folder)
        journal.refresh()
        described, plan, current = journal.description, journal.plan, journal.current
        if not described:
            raise UserError(f"{self._results}: no results here yet ({FILE_NAME} is missing)")
        last = {entry.segment: entry.machine for entry in journal.entries}
        left = Counter((task, solver) for task, solver, seed in plan.keys() - current.keys())
        machines: dict[str, dict[str, int]] = defaultdict(
            lambda: {"done": 0, "failed": 0, "running": 0}
        )
        forecast = Forecast()
        for entry in current.values():
            counts = machines[entry.machine or _UNKNOWN]
            counts["done"] += 1
            counts["failed"] += entry.status not in EXPECTED_STATUSES
            forecast.add((entry.task, entry.solver), entry.seconds)
        running, elapsed = list[dict[str, Any]](), list[tuple[Pair, float]]()
        for start in journal.running():
            if start.cell not in current:
                pair, seconds = start.cell[:2], max(0.0, time.time() - start.at)
                values = (*start.cell, last.get(start.segment) or _UNKNOWN, seconds)
                running.append(dict(zip(_RUNNING, values, strict=True)))
                machines[values[3]]["running"] += 1
                elapsed.append((pair, seconds))
        commands = len(journal.others())
        forecast.jobs = max(described.get("jobs", 1) * commands, len(running), 1)
        to_do = left - Counter(pair for pair, _ in elapsed)
        remaining = forecast.remaining(to_do, elapsed) if left else None
        return Standing(
            study=str(described.get("name", "")),
            planned=len(plan),
            done=len(current),
            left=left.total(),
            statuses=dict(Counter(entry.status for entry in current.values())),
            failures=tuple(
                failure_line(entry)
                for entry in current.values()
                if entry.status not in EXPECTED_STATUSES
            ),
            damaged=len(journal.damages),
            running=tuple(running),
            commands=commands,
            machines=dict(machines),
            left_words="" if remaining is None else f"about {span(remaining)}",
        )
