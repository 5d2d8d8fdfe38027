"""What a study consists of, what a run of it would do, and why; nothing is run or written.

One question is behind ``run --dry-run`` and ``explain``: what became of each planned run.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import UserError
from ..jobs import Executor
from ..results.description import read_description
from ..results.journal import FOLDER, Entry, Journal
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.grid import short
from ..study.model import StudyBase
from ..words import plural
from .fingerprint import read_sources
from .forecast import span
from .manifest import cell_of, restored
from .plan import Kind, Run, kind_named, wider_limits
from .preflight import preflight, read_facts, sources_of, study_solvers

#: What would become of a run; one that "cannot start" is recorded as failed.
Fate = Literal["recorded", "to do", "skipped", "cannot start"]
#: "recorded": reused; "superseded": reused, a record of an earlier version that counts again;
#: "repeated": its limit is wider now; "stale": recorded under another key; "missing": not recorded.
State = Literal["recorded", "superseded", "repeated", "stale", "damaged", "missing"]


@dataclass(frozen=True)
class Row:
    """The runs of a solver on a task."""

    task: str  # labels
    solver: str
    n_runs: int
    why_skipped: str  # why they will be skipped, as far as this shows without the data


@dataclass(frozen=True)
class Overview:
    """A study and its runs."""

    study: StudyBase
    rows: Sequence[Row]

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return sum(row.n_runs for row in self.rows)

    @property
    def size(self) -> str:
        """ "3 tasks x 4 solvers x 5 seeds = 60 runs"; without a product where it is none."""
        study, counts = self.study, {row.n_runs for row in self.rows}
        words = f"{plural(len(study.tasks), 'task')} x {plural(len(study.solvers), 'solver')}"
        n_skipped = sum(row.n_runs for row in self.rows if row.why_skipped)
        runs = plural(self.n_runs, "run") + (f", {n_skipped} skipped" if n_skipped else "")
        if len(counts) == 1:
            return f"{words} x {plural(counts.pop(), 'seed')} = {runs}"
        return f"{words}: {runs}"

    @property
    def skips(self) -> list[str]:
        """A line for each solver and task whose runs will be skipped."""
        skipped = (row for row in self.rows if row.why_skipped)
        return [f"skipped: {row.solver} on {row.task}: {row.why_skipped}" for row in skipped]

    def lines(self) -> Iterator[str]:
        """Lines for the terminal: the study, its tasks, its solvers."""
        study = self.study
        yield f"{study.name}: {study.title}" if study.title else study.name
        if study.cost:
            yield f"cost: {study.cost}"
        yield self.size
        limits = study.budget.limits().items()
        yield f"budget: {_listed({name: value for name, value in limits if value is not False})}"
        if any(map(_tuned, (*study.tasks, *study.solvers))):
            tuning = study.model_dump()["tuning"].items()
            yield f"tuning: {_listed({name: value for name, value in tuning if value is not None})}"
        yield ""
        facets = {task.label: _listed(task.facets | _tuned(task)) for task in study.tasks}
        yield from _table("TASK", facets)
        yield ""
        solvers = {}
        for entry in study.solvers:
            words = [plural(self._runs_of(entry.label), "run")]
            words += [entry.class_name] * (entry.class_name != entry.label)
            words += [_listed(entry.params | _tuned(entry))] * bool(entry.params or entry.tune)
            solvers[entry.label] = ", ".join(words)
        yield from _table("SOLVER", solvers)
        yield from self.skips

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        study = self.study
        return {
            "name": study.name,
            "kind": study.kind,
            "title": study.title,
            "cost": study.cost,
            "budget": study.budget.limits(),
            "tasks": [task.model_dump() for task in study.tasks],
            "solvers": [
                entry.model_dump() | {"n_runs": self._runs_of(entry.label)}
                for entry in study.solvers
            ],
            "n_runs": self.n_runs,
            "skipped": [
                {"task": row.task, "solver": row.solver, "why": row.why_skipped}
                for row in self.rows
                if row.why_skipped
            ],
        }

    def _runs_of(self, solver: str) -> int:
        return sum(row.n_runs for row in self.rows if row.solver == solver)


@dataclass(frozen=True)
class Preview:
    """What a run of a study would do."""

    results: Path  # the results folder
    pairs: Mapping[tuple[str, str], Counter[Fate]]  # labels of a task and a solver -> its runs
    # Seconds of solving that the runs to do may take: their timeouts, shared by the jobs.
    solving_s: float
    why: Mapping[tuple[str, str], str]  # why runs are skipped or cannot start

    @property
    def counts(self) -> Counter[Fate]:
        """How many of all runs have which fate."""
        return sum(self.pairs.values(), Counter())

    def lines(self) -> Iterator[str]:
        """Lines for the terminal: all runs, those of each solver and task, the time."""
        yield _counted(self.counts)
        for (task, solver), fates in self.pairs.items():
            words = f"  {task} / {solver}: {_counted(fates).partition(': ')[2]}"
            yield f"{words} ({self.why[task, solver]})" if (task, solver) in self.why else words
        if self.counts["to do"]:
            yield (
                f"at most {span(self.solving_s)} of solving by the timeouts; loading, warm-up and "
                "evaluation come on top"
            )

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        return {
            "results": str(self.results),
            "planned": self.counts.total(),
            "runs": dict(self.counts),
            "solving_s": self.solving_s,
            "pairs": [
                {"task": task, "solver": solver, "runs": dict(fates)}
                | {"why": self.why.get((task, solver), "")}
                for (task, solver), fates in self.pairs.items()
            ],
        }


def overview(study: StudyBase, executor: Executor, say: Callable[[str], None]) -> Overview:
    """Import the solvers of a study, check their parameters and count the runs."""
    kind, solvers = kind_named(study.kind), study_solvers(study, executor, say)
    rows = []
    for task in study.tasks:
        for entry in study.solvers:
            info = solvers[entry.label]
            n_runs = len(study.seeds_of(task, entry, info.traits))
            why_skipped = kind.skip_reason(study, task, entry, info) if n_runs else ""
            rows.append(Row(task.label, entry.label, n_runs, why_skipped))
    return Overview(study, rows)


def preview(
    study: StudyBase,
    results: Path,
    executor: Executor,
    say: Callable[[str], None],
    *,
    jobs: int = 1,
    retry_failed: bool = False,
) -> Preview:
    """Find out what a run of a study would do, without computing reference optima."""
    facts = read_facts(results, sources_of(study))
    facts = facts or preflight(study, executor, say, computes=False)
    kind = kind_named(study.kind)
    past = _Past(kind, study, Journal(results))
    pairs: dict[tuple[str, str], Counter[Fate]] = {}
    seconds: list[float] = []
    why: dict[tuple[str, str], str] = {}
    for run in kind.plan(study, facts):
        state, _, entry = past.state(run)
        fate: Fate = "cannot start" if run.failure else "skipped" if run.skip_reason else "to do"
        failed = entry is not None and entry.status not in EXPECTED_STATUSES
        if state in ("recorded", "superseded") and not (retry_failed and failed):
            fate = "recorded"
        pairs.setdefault((run.task, run.solver), Counter())[fate] += 1
        if fate in ("skipped", "cannot start"):
            why[run.task, run.solver] = run.failure or run.skip_reason
        if fate == "to do":
            limits = run.limits.seconds
            seconds.append(limits.get("solve", math.inf) + limits.get("tune", 0.0))
    # No run is spread over several jobs.
    solving_s = max(sum(seconds) / jobs, max(seconds, default=0.0))
    return Preview(results, pairs, solving_s, why)


def _counted(counts: Counter[Any]) -> str:
    listed = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"{plural(counts.total(), 'run')}: {listed}"


def _tuned(part: Any) -> dict[str, str]:
    """The values of which one is chosen, of a task or a solver."""
    return {
        name: " or ".join(map(short, values)) for name, values in getattr(part, "tune", {}).items()
    }


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def _table(heading: str, rows: Mapping[str, str]) -> Iterator[str]:
    width = max(len(heading), *(len(label) for label in rows))
    yield heading
    for label, words in rows.items():
        yield f"{label.ljust(width)}  {words}".rstrip()


@dataclass(frozen=True)
class Difference:
    """A part of the key that differs between a record and today's plan."""

    field: str  # "params.tol", "versions.numpy", "source.solvers/smo/smo.py"
    before: Any  # the values; of a file what became of it is in ``now``
    now: Any

    @property
    def words(self) -> str:
        """In a line."""
        if self.field.startswith("source.") and isinstance(self.now, str):
            return f"source: {self.field.removeprefix('source.')} {self.now}"
        return f"{self.field}: {_shown(self.before)} -> {_shown(self.now)}"


@dataclass(frozen=True)
class Explained:
    """What ``marginbench run`` would do about a planned run, and why."""

    task: str
    solver: str
    seed: int
    state: State
    reason: str  # one line
    key: str  # of the run as it is planned today
    # The line that it is compared with: a file of the journal and the byte where the line begins;
    # empty if there is none.
    record: str = ""
    differences: tuple[Difference, ...] = ()  # what the keys differ in


def explain(
    results: Path, executor: Executor, say: Callable[[str], None] = lambda line: None
) -> list[Explained]:
    """Compare the records of a results folder with what the code of today would plan.

    The study is that of the folder's ``study.json``; solvers and data are those of today. There is
    an answer for each run of the study, and for each that an option added, in the study's order.
    """
    described = read_description(results)
    if described is None:
        raise UserError(f"{results}: no results here (study.json is missing)")
    kind, journal = kind_named(described["kind"]), Journal(results)
    scope = restored(kind.study, described["study"], results)
    study, of_study = scope.part, scope.whole.runs()
    planned = {cell_of(run) for run in described["planned"]}
    # Seeds that an option added are beyond those of the study.
    seeds = max((seed + 1 for _, _, seed in planned), default=1)
    wide = study.with_seeds(max(seeds, study.most_seeds))
    facts = preflight(wide, executor, say)
    past = _Past(kind, study, journal)
    explained = []
    for run in kind.plan(wide, facts):
        if run.cell in of_study or run.cell in planned:
            state, reason, entry = past.state(run)
            differences: Iterable[Difference] = ()
            if state == "stale" and entry is not None and not run.failure:
                files = facts.solvers[run.solver].files
                differences = _differences(results, journal.load(entry), run, files)
            record = "" if entry is None else f"{FOLDER}/{entry.segment}:{entry.offset}"
            explained.append(
                Explained(*run.cell, state, reason, run.key, record, tuple(differences))
            )
    return explained


class _Past:
    """The records of planned runs in a results folder."""

    def __init__(self, kind: Kind, study: StudyBase, journal: Journal) -> None:
        self.kind, self.study, self.journal = kind, study, journal
        self.damages = {item.key: item for item in journal.damages}
        # The last record of each run, under whatever key.
        self.latest = {entry.cell: entry for entry in journal.entries}

    def state(self, run: Run) -> tuple[State, str, Entry | None]:
        """What became of a run, why it is done again or not, and the record that this is about."""
        entry = self.journal.recorded(run.key)
        if entry is not None:
            limits = wider_limits(self.kind, self.study.budget, entry)
            if limits:
                raised = " and ".join(limits)
                why = f"it ended with {entry.status!r}, and {raised} is higher now"
                return "repeated", why, entry
            if self.journal.plan.get(run.cell) != run.key:
                return "superseded", "its record is of an earlier plan, and counts again", entry
            return "recorded", f"its record is current ({entry.status})", entry
        if run.key in self.damages:
            return "damaged", str(self.damages[run.key]), None
        cannot = f"it cannot start: {run.failure}" if run.failure else ""
        if run.cell in self.latest:
            return "stale", cannot or "its record has another key", self.latest[run.cell]
        return "missing", "; ".join(filter(None, ("no record", cannot))), None


def _differences(
    results: Path, record: RecordBase, run: Run, files: Mapping[str, str]
) -> Iterator[Difference]:
    """In what the key of a record differs from that of a run."""
    before, now = json.loads(record.key_parts), json.loads(run.columns["key_parts"])
    sources = before.pop("source"), now.pop("source")
    old = read_sources(results, sources[0])
    if old is None:
        old = files = {}
        if sources[0] != sources[1]:
            yield Difference("source", sources[0][:10], sources[1][:10])
    for name in sorted(old.keys() | files.keys()):
        if old.get(name) != files.get(name):
            change = "is no longer used" if name not in files else "has changed"
            change = change if name in old else "is used now"
            yield Difference(f"source.{name}", old.get(name), change)
    flat, today = dict(_flat(before)), dict(_flat(now))
    for name in sorted(flat.keys() | today.keys()):
        if flat.get(name) != today.get(name):
            yield Difference(name, flat.get(name), today.get(name))


def chosen(runs: Sequence[Explained], name: str) -> list[Explained]:
    """The runs of a name: the beginning of a key, or "task/solver/seed"."""
    named = [
        item
        for item in runs
        if (len(name) > 3 and item.key.startswith(name))
        or name.replace(" ", "") == f"{item.task}/{item.solver}/{item.seed}".replace(" ", "")
    ]
    if not named:
        raise UserError(
            f"no planned run {name!r}; give the beginning of a key, or TASK/SOLVER/SEED"
        )
    return named


def in_words(runs: Sequence[Explained]) -> Iterator[str]:
    """Lines for the terminal; runs that differ only in their seed share one."""
    yield _counted(Counter(item.state for item in runs))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for item in runs:
        lines = tuple(difference.words for difference in item.differences)
        group = (item.task, item.solver, item.state, item.reason, lines)
        groups.setdefault(group, []).append(item.seed)
    for (task, solver, state, reason, lines), seeds in groups.items():
        word = "seed" if len(seeds) == 1 else "seeds"
        yield f"{state:<10}  {task} / {solver} / {word} {_ranges(seeds)}: {reason}"
        yield from (f"{'':<12}{line}" for line in lines)


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers in words, three or more in a row as "0 to 2"."""
    words: list[str] = []
    for _, items in itertools.groupby(enumerate(sorted(numbers)), lambda item: item[1] - item[0]):
        row = [number for _, number in items]
        words += [f"{row[0]} to {row[-1]}"] if len(row) > 2 else map(str, row)
    return ", ".join(words)


def as_json(runs: Sequence[Explained]) -> str:
    """The same as JSON: a list of objects, one for each run."""
    return json.dumps([asdict(item) for item in runs], indent=2, ensure_ascii=False)


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values by dotted names."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flat(item, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, value


def _shown(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
