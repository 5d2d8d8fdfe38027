"""What a study consists of when its grids are written out: solvers are imported, nothing runs."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..execution.jobs import Executor
from ..execution.local import LocalPool
from ..study.budget import run_limits
from ..study.grid import short
from ..study.model import StudyBase
from ..words import plural
from .asking import Ask
from .kinds import kind_named


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


def overview(
    study: StudyBase,
    *,
    say: Callable[[str], None] = lambda line: None,
    executor: Executor | None = None,
) -> Overview:
    """Import the solvers of a study, check their parameters and count the runs.

    Parameters
    ----------
    study : StudyBase
    say : callable
        Takes one line for the user: what takes long.
    executor : Executor, optional
        Where solvers are imported; a worker process by default.

    Raises
    ------
    UserError
        If a solver cannot be imported or does not take its parameters.
    """
    if executor is not None:
        return _counted(study, Ask(executor, run_limits(study.budget), say))
    with tempfile.TemporaryDirectory() as logs, LocalPool(1, Path(logs)) as pool:
        return _counted(study, Ask(pool, run_limits(study.budget), say))


def _counted(study: StudyBase, ask: Ask) -> Overview:
    kind = kind_named(study.kind)
    solvers = kind.solvers(study, ask)
    n_seeds, skipped = dict[tuple[str, str], int](), dict[tuple[str, str], str]()
    for task in study.tasks:
        for entry in study.solvers:
            labels, info = (task.label, entry.label), solvers[entry.label]
            n_seeds[labels] = len(kind.seeds(study, task, entry, info))
            if n_seeds[labels] and (why := kind.skip_reason(study, task, entry, info)):
                skipped[labels] = why
    return Overview(study, n_seeds, skipped)


def in_words(found: Overview) -> Iterator[str]:
    """Lines for the terminal."""
    study = found.study
    yield f"{study.name}: {study.title}" if study.title else study.name
    if study.cost:
        yield f"cost: {study.cost}"
    yield found.size
    limits = study.budget.limits().items()
    yield f"budget: {_listed({name: value for name, value in limits if value is not False})}"
    yield ""
    yield from _table("TASK", {task.label: _listed(task.facets) for task in study.tasks})
    yield ""
    yield from _table("SOLVER", {entry.label: _solver(found, entry) for entry in study.solvers})
    yield from found.skips


def as_json(found: Overview) -> str:
    """The same as a JSON object."""
    study = found.study
    content = {
        "name": study.name,
        "kind": study.kind,
        "title": study.title,
        "cost": study.cost,
        "budget": study.budget.limits(),
        "tasks": [task.model_dump() for task in study.tasks],
        "solvers": [
            entry.model_dump() | {"n_runs": found.runs_of[entry.label]} for entry in study.solvers
        ],
        "n_runs": found.n_runs,
        "skipped": [
            {"task": task, "solver": solver, "why": why}
            for (task, solver), why in found.skipped.items()
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False, default=str)


def _solver(found: Overview, entry: Any) -> str:
    words = [plural(found.runs_of[entry.label], "run")]
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
