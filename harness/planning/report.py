"""What a study consists of, and what a run of it would do; nothing is run or written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ..errors import RecordError
from ..execution.jobs import Executor
from ..results.records import RecordBase
from ..results.store import RecordStore
from ..results.superseded import FOLDER
from ..study.grid import short
from ..study.model import StudyBase
from ..words import plural
from .forecast import Pair, span
from .plan import Run, kind_named
from .preflight import preflight, study_solvers
from .reuse import is_repeated

#: What would become of a run; one that "cannot start" is recorded as failed.
Fate = Literal["recorded", "to do", "skipped", "cannot start"]


@dataclass(frozen=True)
class Overview:
    """A study and its runs.

    Attributes
    ----------
    study : StudyBase
    n_seeds : mapping
        Labels of a task and a solver -> with how many seeds the solver runs on the task.
    skipped : mapping
        Labels of a task and a solver -> why its runs will be skipped, as far as this shows without
        the data.
    """

    study: StudyBase
    n_seeds: Mapping[tuple[str, str], int]
    skipped: Mapping[tuple[str, str], str]

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return self.runs_of.total()

    @cached_property
    def runs_of(self) -> Counter[str]:
        """How many runs each solver has, by label."""
        counts: Counter[str] = Counter()
        for (_, solver), count in self.n_seeds.items():
            counts[solver] += count
        return counts

    @property
    def size(self) -> str:
        """ "3 tasks x 4 solvers x 5 seeds = 60 runs"; without a product where it is none."""
        study = self.study
        words = f"{plural(len(study.tasks), 'task')} x {plural(len(study.solvers), 'solver')}"
        counts = set(self.n_seeds.values())
        n_skipped = sum(self.n_seeds[labels] for labels in self.skipped)
        runs = plural(self.n_runs, "run") + (f", {n_skipped} skipped" if n_skipped else "")
        if len(counts) == 1:
            return f"{words} x {plural(counts.pop(), 'seed')} = {runs}"
        return f"{words}: {runs}"

    @property
    def skips(self) -> Iterator[str]:
        """A line for each solver and task whose runs will be skipped."""
        for (task, solver), why in self.skipped.items():
            yield f"skipped: {solver} on {task}: {why}"


def overview(study: StudyBase, executor: Executor, say: Callable[[str], None]) -> Overview:
    """Import the solvers of a study, check their parameters and count the runs.

    Parameters
    ----------
    study : StudyBase
    executor : Executor
        Where solvers are imported.
    say : callable
        Takes one line for the user: what takes long.

    Raises
    ------
    UserError
        If a solver cannot be imported or does not take its parameters.
    """
    kind, solvers = kind_named(study.kind), study_solvers(study, executor, say)
    n_seeds, skipped = dict[tuple[str, str], int](), dict[tuple[str, str], str]()
    for task in study.tasks:
        for entry in study.solvers:
            labels, info = (task.label, entry.label), solvers[entry.label]
            n_seeds[labels] = len(kind.seeds(study, task, entry, info))
            if n_seeds[labels] and (why := kind.skip_reason(study, task, entry, info)):
                skipped[labels] = why
    return Overview(study, n_seeds, skipped)


def overview_lines(shown: Overview) -> Iterator[str]:
    """Lines for the terminal."""
    study = shown.study
    yield f"{study.name}: {study.title}" if study.title else study.name
    if study.cost:
        yield f"cost: {study.cost}"
    yield shown.size
    limits = study.budget.limits().items()
    yield f"budget: {_listed({name: value for name, value in limits if value is not False})}"
    yield ""
    yield from _table("TASK", {task.label: _listed(task.facets) for task in study.tasks})
    yield ""
    yield from _table("SOLVER", {entry.label: _solver(shown, entry) for entry in study.solvers})
    yield from shown.skips


def overview_json(shown: Overview) -> str:
    """The same as a JSON object."""
    study = shown.study
    content = {
        "name": study.name,
        "kind": study.kind,
        "title": study.title,
        "cost": study.cost,
        "budget": study.budget.limits(),
        "tasks": [task.model_dump() for task in study.tasks],
        "solvers": [
            entry.model_dump() | {"n_runs": shown.runs_of[entry.label]} for entry in study.solvers
        ],
        "n_runs": shown.n_runs,
        "skipped": [
            {"task": task, "solver": solver, "why": why}
            for (task, solver), why in shown.skipped.items()
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, default=str)


def _solver(shown: Overview, entry: Any) -> str:
    words = [plural(shown.runs_of[entry.label], "run")]
    if entry.class_name != entry.label:
        words.append(entry.class_name)
    if entry.params:
        words.append(_listed(entry.params))
    return ", ".join(words)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def _table(heading: str, rows: Mapping[str, str]) -> Iterator[str]:
    width = max(len(heading), *(len(label) for label in rows))
    yield heading
    for label, words in rows.items():
        yield f"{label.ljust(width)}  {words}".rstrip()


@dataclass(frozen=True)
class Preview:
    """What a run of a study would do.

    Attributes
    ----------
    results : Path
        The results folder.
    fates : dict
        (task, solver) -> how many of its runs have which fate.
    solving_s : float
        Seconds of solving that the runs to do may take: their timeouts, shared by the jobs.
    """

    results: Path
    fates: dict[tuple[str, str], Counter[Fate]]
    solving_s: float

    @property
    def counts(self) -> Counter[Fate]:
        """How many of all runs have which fate."""
        return sum(self.fates.values(), Counter())

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        return {
            "results": str(self.results),
            "planned": self.counts.total(),
            "runs": dict(self.counts),
            "solving_s": self.solving_s,
            "pairs": [
                {"task": task, "solver": solver, "runs": dict(counts)}
                for (task, solver), counts in self.fates.items()
            ],
        }

    def in_words(self) -> Iterator[str]:
        """Lines for the terminal: all runs, those of each pair, the time."""
        yield f"{plural(self.counts.total(), 'run')}: {_counts(self.counts)}"
        for (task, solver), counts in self.fates.items():
            yield f"  {task} / {solver}: {_counts(counts)}"
        if self.counts["to do"]:
            yield (
                f"at most {span(self.solving_s)} of solving by the timeouts; loading, warm-up and "
                "evaluation come on top"
            )


def preview(
    study: StudyBase,
    results: Path,
    executor: Executor,
    say: Callable[[str], None],
    *,
    jobs: int = 1,
    retry_failed: bool = False,
) -> Preview:
    """Find out what a run of a study would do.

    Solvers are imported and datasets loaded, but no reference optimum is computed.

    Parameters
    ----------
    study : StudyBase
    results : Path
        The results folder.
    executor : Executor
        Where solvers are imported and datasets loaded.
    say : callable
        Takes one line for the user.
    jobs : int
        Runs at the same time.
    retry_failed : bool
        Whether what did not go as planned would be run again.

    Raises
    ------
    UserError
        If a solver cannot be imported or does not take its parameters.
    """
    facts = preflight(study, executor, say, computes=False)
    fates: dict[tuple[str, str], Counter[Fate]] = {}
    seconds: list[float] = []
    stores = [RecordStore(results / folder) for folder in ("runs", FOLDER)]
    for run in kind_named(study.kind).plan(study, facts):
        fate = _fate(study, stores, run, retry_failed=retry_failed)
        fates.setdefault((run.task, run.solver), Counter())[fate] += 1
        if fate == "to do":
            seconds.append(Pair.of(run).limit)
    # No run is spread over several jobs.
    return Preview(results, fates, max(sum(seconds) / jobs, max(seconds, default=0.0)))


def _fate(study: StudyBase, stores: Sequence[RecordStore], run: Run, *, retry_failed: bool) -> Fate:
    record = _recorded(stores, run)
    if record is not None and not is_repeated(
        kind_named(study.kind), study.budget, record, retry_failed=retry_failed
    ):
        return "recorded"
    if run.failure:
        return "cannot start"
    return "skipped" if run.skip_reason else "to do"


def _recorded(stores: Sequence[RecordStore], run: Run) -> RecordBase | None:
    """The record of a run, also one that would be taken back from those of earlier versions."""
    for store in stores:
        try:
            record = store.load(run.file_name)
        except RecordError:
            continue
        if record is not None and record.key == run.key:
            return record
    return None


def _counts(counts: Counter[Fate]) -> str:
    return ", ".join(f"{count} {fate}" for fate, count in counts.items())
