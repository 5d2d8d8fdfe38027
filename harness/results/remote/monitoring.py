"""How far a study is, seen from outside: from its plan, its records and its claims.

A look reads only what has changed since the last one. It writes nothing and holds no lock of the
results folder.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ...errors import RecordError, UserError
from ...planning.forecast import Forecast, Pair, eta_words
from ...words import REASON_LIMIT, plural, visible
from ..description import DamagedDescriptionError, read_description
from ..folders.compacted import CompactedFile, is_compacted
from ..records import EXPECTED_STATUSES
from .index import Stamp, stamp_of
from .leases import CLAIMS, COMMANDS, EXPIRE_S
from .mirror import RUNS
from .objects import MissingObject, Objects

_COLUMNS = [
    *("key", "task", "solver", "seed", "status", "reason", "environment", "started_at"),
    *("wall_s", "compile_s", "evaluation_s", "data_s"),
]
_UNKNOWN = "another machine"


@dataclass(frozen=True)
class Running:
    """A run that a command has claimed: its labels, the machine, and since how many seconds."""

    task: str
    solver: str
    seed: int
    machine: str
    seconds: float


@dataclass
class Machine:
    """What one kind of machine has done and does; ``hosts`` are those with a command now."""

    done: int = 0
    failed: int = 0
    running: int = 0
    hosts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Standing:
    """How far a study is.

    Attributes
    ----------
    study : str
    planned, done, left : int
        Runs in the plan; of these, those recorded and those that are not.
    statuses : dict
        Status -> number of recorded runs.
    failures : tuple of str
        A line for each run that did not go as planned.
    damaged : int
        Records that cannot be read.
    running : tuple of Running
        Claimed runs. Commands that do not share their folder claim none.
    commands : int
        Commands that work on it, as far as they share it.
    machines : dict
        Processor, cores and memory -> what was and is done there.
    left_words : str
        The time that is left, in words; empty if it is not known.
    """

    study: str
    planned: int
    done: int
    left: int
    statuses: dict[str, int]
    failures: tuple[str, ...]
    damaged: int
    running: tuple[Running, ...]
    commands: int
    machines: dict[str, Machine]
    left_words: str

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
            yield f"{plural(self.damaged, 'record')} cannot be read"
        for name, machine in self.machines.items():
            hosts = f" ({', '.join(machine.hosts)})" if machine.hosts else ""
            yield (
                f"{name}{hosts}: {machine.done} done, {machine.failed} failed, "
                f"{machine.running} running"
            )
        for run in self.running:
            yield f"running {run.seconds:.0f} s: {run.task} / {run.solver} / seed {run.seed}"


class Monitor:
    """Looks at a results folder again and again.

    Parameters
    ----------
    folder : Path
        The results folder, or the mirror of one.
    objects : Objects
        Where commands give signs of life.
    refresh : callable
        Brings the mirror up to date.
    """

    def __init__(
        self, folder: Path, objects: Objects, refresh: Callable[[], None] = lambda: None
    ) -> None:
        self._folder, self._objects, self._refresh = folder, objects, refresh
        # Name of a file -> its stamp, and the rows of the records in it by their names.
        self._read: dict[str, tuple[Stamp | None, dict[str, dict[str, Any]]]] = {}
        # Small objects by name and tag.
        self._said: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._damaged: set[str] = set()

    def look(self) -> Standing:
        """How far the study is now.

        Raises
        ------
        UserError
            If there are no results, or the plan is damaged.
        StoreError
            If the store does not serve.
        """
        self._refresh()
        described = self._described()
        rows = self._rows()
        planned = described["planned"]
        done = [
            rows[run["file"]]
            for run in planned
            if run["file"] in rows and rows[run["file"]]["key"] == run["key"]
        ]
        recorded = {row["key"] for row in done}
        left = [run for run in planned if run["key"] not in recorded]
        commands = self._alive()
        claims = [
            (claim, commands[claim["command"]])
            for claim in self._small(CLAIMS)
            if claim.get("command") in commands and "task" in claim
        ]
        running = tuple(_running(claim, about) for claim, about in claims)
        return Standing(
            study=str(described.get("name", "")),
            planned=len(planned),
            done=len(done),
            left=len(left),
            statuses=dict(Counter(row["status"] for row in done)),
            failures=tuple(_failures(done)),
            damaged=len(self._damaged),
            running=running,
            commands=len(commands),
            machines=_machines(done, commands, claims),
            left_words=_forecast(done, left, running, described.get("jobs", 1)),
        )

    def _described(self) -> dict[str, Any]:
        try:
            found = read_description(self._folder)
        except DamagedDescriptionError as error:
            raise UserError(str(error)) from None
        if found is None or "planned" not in found:
            raise UserError(f"{self._objects.place}: no results here yet (study.json is missing)")
        return found

    def _rows(self) -> dict[str, dict[str, Any]]:
        """The rows of all records by their names; a file of its own goes before a compacted row."""
        paths = {path.name: path for path in sorted((self._folder / RUNS).glob("*.parquet"))}
        self._read = {name: known for name, known in self._read.items() if name in paths}
        self._damaged &= set(paths)
        for name, path in paths.items():
            stamp = stamp_of(path)
            if name not in self._read or self._read[name][0] != stamp:
                self._read[name] = stamp, self._rows_of(path)
        of_files = sorted(self._read.items(), key=lambda item: not is_compacted(Path(item[0])))
        return {name: row for _, (_, rows) in of_files for name, row in rows.items()}

    def _rows_of(self, path: Path) -> dict[str, dict[str, Any]]:
        self._damaged.discard(path.name)
        try:
            if is_compacted(path):
                return CompactedFile(path).columns(_COLUMNS)
            file = pq.ParquetFile(path)
            known = [name for name in _COLUMNS if name in file.schema_arrow.names]
            (row,) = file.read(columns=known).to_pylist()
            return {path.name: row}
        except FileNotFoundError:
            return {}  # compacted meanwhile
        except (RecordError, OSError, ValueError):
            self._damaged.add(path.name)
            return {}

    def _alive(self) -> dict[str, Mapping[str, Any]]:
        """The commands of which there was a sign of life not long ago, by this machine's clock."""
        now = time.time()
        return {
            str(about["name"]).rpartition("/")[2]: about
            for about in self._small(COMMANDS)
            if now - about["changed"] <= EXPIRE_S
        }

    def _small(self, prefix: str) -> Iterator[Mapping[str, Any]]:
        """What small objects say, with their names and times."""
        for name, entry in sorted(self._objects.list(prefix).items()):
            if (name, entry.tag) not in self._said:
                with contextlib.suppress(MissingObject, ValueError):
                    content = json.loads(self._objects.get(name)[0])
                    if isinstance(content, dict):
                        self._said[name, entry.tag] = content
            said = self._said.get((name, entry.tag))
            if said is not None:
                yield {**said, "name": name, "changed": entry.changed}


def _running(claim: Mapping[str, Any], about: Mapping[str, Any]) -> Running:
    return Running(
        str(claim["task"]),
        str(claim["solver"]),
        int(claim["seed"]),
        str(about.get("machine", _UNKNOWN)),
        max(0.0, time.time() - claim["changed"]),
    )


def _failures(done: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for row in done:
        if row["status"] not in EXPECTED_STATUSES:
            reason = f" ({visible(row['reason'], REASON_LIMIT)})" if row.get("reason") else ""
            yield f"{row['task']} / {row['solver']} / seed {row['seed']}: {row['status']}{reason}"


def _machines(
    done: Iterable[Mapping[str, Any]],
    commands: Mapping[str, Mapping[str, Any]],
    claims: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> dict[str, Machine]:
    found: dict[str, Machine] = {}
    names: dict[str, str] = {}
    for row in done:
        text = row.get("environment") or "{}"
        if text not in names:
            names[text] = setting_words(json.loads(text))
        machine = found.setdefault(names[text], Machine())
        machine.done += 1
        machine.failed += row["status"] not in EXPECTED_STATUSES
    for about in commands.values():
        machine = found.setdefault(str(about.get("setting") or _UNKNOWN), Machine())
        machine.hosts = sorted({*machine.hosts, str(about.get("machine", ""))} - {""})
    for _, about in claims:
        found[str(about.get("setting") or _UNKNOWN)].running += 1
    return found


def setting_words(environment: Mapping[str, Any]) -> str:
    """A kind of machine in words, from what records say of it."""
    if not environment.get("processor"):
        return _UNKNOWN
    memory = round(environment.get("memory_mb", 0) / 1000)
    cores = environment.get("cores_logical") or environment.get("cores")
    return f"{environment['processor']}, {cores} cores, {memory} GB"


def _forecast(
    done: Iterable[Mapping[str, Any]],
    left: Iterable[Mapping[str, Any]],
    running: Iterable[Running],
    jobs: int,
) -> str:
    """The time that is left if as many runs go on at the same time as now."""
    running = list(running)
    forecast = Forecast(max(jobs, len(running)))
    for row in done:
        if row.get("wall_s") is not None:
            parts = (row.get(name) or 0.0 for name in _COLUMNS[-4:])
            forecast.add(Pair(row["task"], row["solver"]), sum(parts), row["wall_s"])
    pairs = Counter(Pair(run["task"], run["solver"]) for run in left)
    pairs.subtract(Pair(run.task, run.solver) for run in running)
    to_do = {pair: count for pair, count in pairs.items() if count > 0}
    going = [(Pair(run.task, run.solver), run.seconds) for run in running]
    if not to_do and not going:
        return ""
    remaining = forecast.remaining(to_do, going)
    return "" if remaining is None else eta_words(remaining)
