"""Why each planned run would be reused or run again; nothing is run and the folder stays as it is.

The study is that of the folder's ``study.json``; solvers and data are those of today.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import UserError
from ..jobs import Executor
from ..results.description import read_description
from ..results.journal import FOLDER, Cell, Entry, Journal
from ..study.model import StudyBase
from ..words import plural
from .fingerprint import read_sources
from .manifest import added_labels, restored_study
from .plan import Kind, Run, kind_named, wider_limits
from .preflight import SolverInfo, preflight

#: "recorded": reused; "superseded": reused, a record of an earlier version that counts again;
#: "repeated": its limit is wider now; "stale": recorded under another key; "missing": not recorded.
State = Literal["recorded", "superseded", "repeated", "stale", "damaged", "missing"]


@dataclass(frozen=True)
class Difference:
    """A part of the key that differs between a record and today's plan.

    Attributes
    ----------
    field : str
        "params.tol", "versions.numpy", "source.solvers/smo/smo.py".
    before, now : object
        The values; of a file what became of it is in ``now``.
    """

    field: str
    before: Any
    now: Any

    @property
    def words(self) -> str:
        """In a line."""
        if self.field.startswith("source.") and isinstance(self.now, str):
            return f"source: {self.field.removeprefix('source.')} {self.now}"
        return f"{self.field}: {_shown(self.before)} -> {_shown(self.now)}"


@dataclass(frozen=True)
class Explained:
    """What ``marginbench run`` would do about a planned run, and why.

    Attributes
    ----------
    task, solver : str
    seed : int
    state : str
    reason : str
        One line.
    key : str
        Of the run as it is planned today.
    record : str
        The line that it is compared with: a file of the journal and the byte where the line
        begins; empty if there is none.
    differences : tuple of Difference
        What the keys differ in.
    """

    task: str
    solver: str
    seed: int
    state: State
    reason: str
    key: str
    record: str = ""
    differences: tuple[Difference, ...] = ()


def explain(
    results: Path, executor: Executor, say: Callable[[str], None] = lambda line: None
) -> list[Explained]:
    """Compare the records of a results folder with what the code of today would plan."""
    described = read_description(results)
    if described is None:
        raise UserError(f"{results}: no results here (study.json is missing)")
    kind = kind_named(described["kind"])
    study = restored_study(kind.study, described["study"], results)
    return _explained(results, described, kind, study, executor, say)


def chosen(found: Sequence[Explained], name: str) -> list[Explained]:
    """The runs of a name: the beginning of a key, or "task/solver/seed"."""
    runs = [
        item
        for item in found
        if (len(name) > 3 and item.key.startswith(name))
        or name.replace(" ", "") == f"{item.task}/{item.solver}/{item.seed}".replace(" ", "")
    ]
    if not runs:
        raise UserError(
            f"no planned run {name!r}; give the beginning of a key, or TASK/SOLVER/SEED"
        )
    return runs


def in_words(found: Sequence[Explained]) -> Iterator[str]:
    """Lines for the terminal; runs that differ only in their seed share one."""
    counts = Counter(item.state for item in found)
    listed = ", ".join(f"{count} {state}" for state, count in counts.items())
    yield f"{plural(len(found), 'run')}: {listed}"
    alike: dict[tuple[Any, ...], list[Explained]] = {}
    for item in found:
        lines = tuple(difference.words for difference in item.differences)
        alike.setdefault((item.task, item.solver, item.state, item.reason, lines), []).append(item)
    for (task, solver, state, reason, lines), items in alike.items():
        seeds = ", ".join(_stretches(item.seed for item in items))
        word = "seed" if len(items) == 1 else "seeds"
        yield f"{state:<10}  {task} / {solver} / {word} {seeds}: {reason}"
        yield from (f"{'':<12}{line}" for line in lines)


def _stretches(numbers: Iterable[int]) -> Iterator[str]:
    """Numbers in words, three or more in a row as "0 to 2"."""
    places = enumerate(sorted(numbers))
    for _, found in itertools.groupby(places, lambda item: item[1] - item[0]):
        row = [number for _, number in found]
        yield from [f"{row[0]} to {row[-1]}"] if len(row) > 2 else map(str, row)


def as_json(found: Sequence[Explained]) -> str:
    """The same as JSON: a list of objects, one for each run."""
    return json.dumps([asdict(item) for item in found], indent=2, ensure_ascii=False)


def _explained(
    results: Path,
    described: Mapping[str, Any],
    kind: Kind,
    study: StudyBase,
    executor: Executor,
    say: Callable[[str], None],
) -> list[Explained]:
    planned = {(run["task"], run["solver"], run["seed"]) for run in described["planned"]}
    # Seeds that an option added are beyond those of the study.
    seeds = max((seed + 1 for _, _, seed in planned), default=1)
    wide = study.with_seeds(max(seeds, _most_seeds(study)))
    facts = preflight(wide, executor, say)
    added = added_labels(described["study"])
    finder = _Finder(results, kind, study, facts.solvers)
    of_study = study.runs()
    found = []
    for run in kind.plan(wide, facts):
        identity = (run.task, run.solver, run.seed)
        own = identity in of_study and not added & {run.task, run.solver}
        if own or identity in planned:
            found.append(finder.explain(run))
    return found


def _most_seeds(study: StudyBase) -> int:
    return max(study.n_seeds(task, entry) for task in study.tasks for entry in study.solvers)


class _Finder:
    """Finds the records of planned runs and what sets them apart."""

    def __init__(
        self, results: Path, kind: Kind, study: StudyBase, solvers: Mapping[str, SolverInfo]
    ) -> None:
        self.results, self.kind, self.study, self.solvers = results, kind, study, solvers
        self.journal = Journal(results)
        self.damages = {item.key: item for item in self.journal.damages}
        # The last record of each run, under whatever key.
        self._latest: dict[Cell, Entry] = {entry.cell: entry for entry in self.journal.entries}

    def explain(self, run: Run) -> Explained:
        """What would be done about a run, and why."""
        cell = (run.task, run.solver, run.seed)
        entry = self.journal.recorded(run.key)
        if entry is not None:
            limits = wider_limits(self.kind, self.study.budget, entry)
            if limits:
                raised = " and ".join(limits)
                reason = f"it ended with {entry.status!r}, and {raised} is higher now"
                return self._told(run, "repeated", reason, entry)
            if self.journal.plan.get(cell) != run.key:
                reason = "its record is of an earlier plan, and counts again"
                return self._told(run, "superseded", reason, entry)
            return self._told(run, "recorded", f"its record is current ({entry.status})", entry)
        if run.key in self.damages:
            return self._told(run, "damaged", str(self.damages[run.key]))
        latest = self._latest.get(cell)
        if latest is not None:
            differences = tuple(self._differences(latest, run))
            return self._told(run, "stale", "its record has another key", latest, differences)
        reason = f"no record; it cannot start: {run.failure}" if run.failure else "no record"
        return self._told(run, "missing", reason)

    def _differences(self, entry: Entry, run: Run) -> Iterator[Difference]:
        before = json.loads(self.journal.load(entry).key_parts)
        now = json.loads(run.known["key_parts"])
        sources = before.pop("source"), now.pop("source")
        if sources[0] != sources[1]:
            yield from self._changed_files(*sources, self.solvers[run.solver].files)
        flat, today = dict(_flat(before)), dict(_flat(now))
        for name in sorted(flat.keys() | today.keys()):
            if flat.get(name) != today.get(name):
                yield Difference(name, flat.get(name), today.get(name))

    def _changed_files(
        self, before: str, now: str, files: Mapping[str, str]
    ) -> Iterator[Difference]:
        old = read_sources(self.results, before)
        if old is None:
            yield Difference("source", before[:10], now[:10])
            return
        for name in sorted(old.keys() | files.keys()):
            if name not in files:
                yield Difference(f"source.{name}", old[name], "is no longer used")
            elif name not in old:
                yield Difference(f"source.{name}", None, "is used now")
            elif old[name] != files[name]:
                yield Difference(f"source.{name}", old[name], "has changed")

    def _told(
        self,
        run: Run,
        state: State,
        reason: str,
        entry: Entry | None = None,
        differences: tuple[Difference, ...] = (),
    ) -> Explained:
        return Explained(
            task=run.task,
            solver=run.solver,
            seed=run.seed,
            state=state,
            reason=reason,
            key=run.key,
            record="" if entry is None else f"{FOLDER}/{entry.segment}:{entry.offset}",
            differences=differences,
        )


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values by dotted names."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flat(item, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, value


def _shown(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
