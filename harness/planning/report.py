"""What a study consists of, what a run of it would do, and why; nothing is run or written.

One question is behind ``run --dry-run`` and ``explain``: what became of each planned run.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import UserError
from ..jobs import Executor
from ..results.description import planned_keys, read_description
from ..results.journal import FOLDER, Entry, Journal
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.grid import short
from ..study.model import StudyBase
from ..words import plural
from .forecast import Pair, span
from .manifest import restored
from .plan import Run, kind_named, wider_limits
from .preflight import preflight, read_facts, sources_of, study_solvers

#: What would become of a run; one that "cannot start" is recorded as failed.
Fate = Literal["recorded", "to do", "skipped", "cannot start"]
#: "recorded": reused; "superseded": reused, a record of an earlier version that counts again;
#: "repeated": its limit is wider now; "stale": recorded under another key; "missing": not recorded.
State = Literal["recorded", "superseded", "repeated", "stale", "damaged", "missing"]


@dataclass(frozen=True)
class Overview:
    """A study and its runs."""

    study: StudyBase
    # Of each solver on a task "task", "solver", how many runs ("n"), and "why" they will be
    # skipped, as far as this shows without the data.
    pairs: Sequence[Mapping[str, Any]]

    @property
    def size(self) -> str:
        """ "3 tasks x 4 solvers: 60 runs, 12 skipped"."""
        tasks, solvers = self.study.tasks, self.study.solvers
        n_skipped = sum(pair["n"] for pair in self.pairs if pair["why"])
        words = f"{plural(len(tasks), 'task')} x {plural(len(solvers), 'solver')}: "
        words += plural(sum(pair["n"] for pair in self.pairs), "run")
        return words + (f", {n_skipped} skipped" if n_skipped else "")

    @property
    def skips(self) -> list[str]:
        """A line for each solver and task whose runs will be skipped."""
        skipped = filter(lambda pair: pair["why"], self.pairs)
        return ["skipped: {solver} on {task}: {why}".format_map(pair) for pair in skipped]

    def lines(self) -> Iterator[str]:
        """Lines for the terminal: the study, its tasks, its solvers."""
        study = self.study
        yield f"{study.name}: {study.title}" if study.title else study.name
        if study.cost:
            yield f"cost: {study.cost}"
        yield self.size
        yield f"budget: {_listed(study.budget.limits())}"
        if any(getattr(part, "tune", None) for part in (*study.tasks, *study.solvers)):
            yield f"tuning: {_listed(study.model_dump(exclude_none=True)['tuning'])}"
        yield from _table("TASK", {task.label: _listed(task.facets, task) for task in study.tasks})
        solvers = {}
        for entry in study.solvers:
            words = [plural(self._runs_of(entry.label), "run")]
            words += [entry.class_name] * (entry.class_name != entry.label)
            words += filter(None, [_listed(entry.params, entry)])
            solvers[entry.label] = ", ".join(words)
        yield from _table("SOLVER", solvers)
        yield from self.skips

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        study = self.study
        return {
            **{name: getattr(study, name) for name in ("name", "kind", "title", "cost")},
            "budget": study.budget.limits(),
            "tasks": [task.model_dump() for task in study.tasks],
            "solvers": [
                entry.model_dump() | {"n_runs": self._runs_of(entry.label)}
                for entry in study.solvers
            ],
            "n_runs": sum(pair["n"] for pair in self.pairs),
            "skipped": [
                {name: pair[name] for name in ("task", "solver", "why")}
                for pair in self.pairs
                if pair["why"]
            ],
        }

    def _runs_of(self, label: str) -> int:
        return sum(pair["n"] for pair in self.pairs if pair["solver"] == label)


@dataclass(frozen=True)
class Preview:
    """What a run of a study would do."""

    results: Path  # the results folder
    # Of each solver on a task "task", "solver", the fates of its "runs", and "why" they are skipped
    # or cannot start.
    pairs: Sequence[Mapping[str, Any]]
    # Seconds of solving that the runs to do may take: their timeouts, shared by the jobs.
    solving_s: float

    @property
    def counts(self) -> Counter[Fate]:
        """How many of all runs have which fate."""
        return sum((pair["runs"] for pair in self.pairs), Counter())

    def lines(self) -> Iterator[str]:
        """Lines for the terminal: all runs, those of each solver and task, the time."""
        yield _counted(self.counts)
        for pair in self.pairs:
            why = f" ({pair['why']})" if pair["why"] else ""
            counts = _counted(pair["runs"]).partition(": ")[2]
            yield f"  {pair['task']} / {pair['solver']}: {counts}{why}"
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
            "pairs": [{**pair, "runs": dict(pair["runs"])} for pair in self.pairs],
        }


def overview(study: StudyBase, executor: Executor, say: Callable[[str], None]) -> Overview:
    """Import the solvers of a study, check their parameters and count the runs."""
    kind, solvers = kind_named(study.kind), study_solvers(study, executor, say)
    pairs = []
    for task in study.tasks:
        for entry in study.solvers:
            info = solvers[entry.label]
            n = len(study.seeds_of(task, entry, info.traits))
            why = kind.skip_reason(study, task, entry, info) if n else ""
            pairs.append({"task": task.label, "solver": entry.label, "n": n, "why": why})
    return Overview(study, pairs)


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
    pairs: dict[Pair, dict[str, Any]] = {}
    seconds = list[float]()
    for run, state, _, entry in _states(study, Journal.settled(results), kind.plan(study, facts)):
        named = {"task": run.task, "solver": run.solver, "runs": Counter[Fate](), "why": ""}
        pair = pairs.setdefault((run.task, run.solver), named)
        fate: Fate = "cannot start" if run.failure else "skipped" if run.skip_reason else "to do"
        failed = entry is not None and entry.status not in EXPECTED_STATUSES
        if state in ("recorded", "superseded") and not (retry_failed and failed):
            fate = "recorded"
        elif fate == "to do":
            limits = run.limits.seconds
            seconds.append(limits.get("solve", math.inf) + limits.get("tune", 0.0))
        else:
            pair["why"] = run.failure or run.skip_reason
        pair["runs"][fate] += 1
    # No run is spread over several jobs.
    solving_s = max(sum(seconds) / jobs, max(seconds, default=0.0))
    return Preview(results, list(pairs.values()), solving_s)


def _counted(counts: Counter[Any]) -> str:
    listed = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"{plural(counts.total(), 'run')}: {listed}"


def _listed(values: Mapping[str, Any], tuned: Any = None) -> str:
    """Values by name, and those of which one is chosen for a task or a solver."""
    words = [f"{name}={short(value)}" for name, value in values.items()]
    for name, choices in getattr(tuned, "tune", {}).items():
        words.append(f"{name}={' or '.join(map(short, choices))}")
    return ", ".join(words)


def _table(heading: str, rows: Mapping[str, str]) -> Iterator[str]:
    width = max(len(label) for label in (heading, *rows))
    yield from ("", heading)
    yield from (f"{label.ljust(width)}  {words}".rstrip() for label, words in rows.items())


@dataclass(frozen=True)
class Difference:
    """A part of the key that differs between a record and today's plan."""

    field: str  # "params.tol", "versions.numpy", "source.solvers/smo/smo.py"
    before: Any  # the values; of a file the hashes of its code
    now: Any

    @property
    def words(self) -> str:
        """In a line."""
        if self.field.startswith("source."):
            change = "is used now" if self.before is None else "has changed"
            change = change if self.now is not None else "is no longer used"
            return f"source: {self.field.removeprefix('source.')} {change}"
        before, now = (
            "none" if value is None else value if isinstance(value, str) else json.dumps(value)
            for value in (self.before, self.now)
        )
        return f"{self.field}: {before} -> {now}"


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
    kind, journal = kind_named(described["kind"]), Journal.settled(results)
    scope = restored(kind.study, described["study"], results)
    study, cells = scope.part, {*scope.whole.runs(), *planned_keys(described)}
    # Seeds that an option added are beyond those of the study.
    wide = study.with_seeds(max(study.most_seeds, *(seed + 1 for _, _, seed in cells)))
    facts = preflight(wide, executor, say)
    runs = [run for run in kind.plan(wide, facts) if run.cell in cells]
    explained = []
    for run, state, reason, entry in _states(study, journal, runs):
        differences: Iterable[Difference] = ()
        if state == "stale" and entry is not None and not run.failure:
            files = facts.solvers[run.solver].files
            differences = _differences(journal, journal.load(entry), run, files)
        record = "" if entry is None else f"{FOLDER}/{entry.segment}:{entry.offset}"
        explained.append(Explained(*run.cell, state, reason, run.key, record, tuple(differences)))
    return explained


def _states(
    study: StudyBase, journal: Journal, runs: Iterable[Run]
) -> Iterator[tuple[Run, State, str, Entry | None]]:
    """What became of runs, why they are done again or not, and the records that this is about."""
    damages = {item.key: item for item in journal.damages}
    # The last record of each run, under whatever key.
    latest = {entry.cell: entry for entry in journal.entries}
    for run in runs:
        entry, cannot = journal.recorded(run.key), f"it cannot start: {run.failure}"
        state: State = "missing"
        why = f"no record; {cannot}" if run.failure else "no record"
        if entry is not None:
            state, why = "recorded", f"its record is current ({entry.status})"
            limits = wider_limits(study.budget, entry)
            if limits:
                raised = " and ".join(limits)
                state, why = (
                    "repeated",
                    f"it ended with {entry.status!r}, and {raised} is higher now",
                )
            elif journal.plan.get(run.cell) != run.key:
                state, why = "superseded", "its record is of an earlier plan, and counts again"
        elif run.key in damages:
            state, why = "damaged", str(damages[run.key])
        elif run.cell in latest:
            state, entry = "stale", latest[run.cell]
            why = cannot if run.failure else "its record has another key"
        yield run, state, why, entry


def _differences(
    journal: Journal, record: RecordBase, run: Run, files: Mapping[str, str]
) -> Iterator[Difference]:
    """In what the key of a record differs from that of a run."""
    before, now = json.loads(record.key_parts), json.loads(run.columns["key_parts"])
    old = journal.source(before["source"])
    if old is not None:
        before["source"], now["source"] = old, files
    flat, today = dict(_flat(before)), dict(_flat(now))
    for name in sorted(flat.keys() | today.keys()):
        if flat.get(name) != today.get(name):
            yield Difference(name, flat.get(name), today.get(name))


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values by dotted names."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flat(item, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, value


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
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for item in runs:
        lines = tuple(difference.words for difference in item.differences)
        groups[item.task, item.solver, item.state, item.reason, lines].append(item.seed)
    for (task, solver, state, reason, lines), seeds in groups.items():
        words = ", ".join(map(str, sorted(seeds)))
        if len(seeds) > 2 and max(seeds) - min(seeds) == len(seeds) - 1:
            words = f"{min(seeds)} to {max(seeds)}"
        where = f"{task} / {solver} / {'seed' if len(seeds) == 1 else 'seeds'} {words}"
        yield f"{state:<10}  {where}: {reason}"
        yield from (f"{'':<12}{line}" for line in lines)
