"""What is run: runs, the order in which they are done, and the kinds of studies that plan them.

A kind is one object; everything else in the harness (workers, records, selection, the command line)
is the same for every kind.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ...data_loaders import suggest
from ..errors import StudyError
from ..hashing import canonical_json
from ..jobs import Job, Limits, Work
from ..results.description import Cell
from ..results.journal import Entry
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.model import KINDS, Budget, SolverEntry, StudyBase, is_foreign, run_limits
from .fingerprint import numeric_versions

if TYPE_CHECKING:
    from .preflight import Datasets, Facts, SolverInfo


@dataclass(frozen=True, slots=True)
class Run:
    """One solver on one task with one seed.

    A plan may hold a hundred thousand of them, so each holds only what the plan needs.
    """

    key: str  # SHA-256 of all that determines what it computes, and of its labels
    task: str  # labels
    solver: str
    seed: int
    limits: Limits
    # Makes the rest for this seed when it is needed; a run of a plan has it.
    configuration: Any = field(default=None, repr=False)
    foreign: bool = False  # whether it runs code from outside the project
    skip_reason: str = ""  # why the combination is not supported; empty if it is
    failure: str = ""  # why the run cannot even start; empty if it can
    traits: Mapping[str, Any] = field(default_factory=dict)  # those of the solver's class
    reference: Any = None  # what the kind compares its result with

    @property
    def cell(self) -> Cell:
        """Task, solver and seed."""
        return self.task, self.solver, self.seed

    @property
    def work(self) -> Work:
        """What a worker does; it hands back the columns of the record that are not decided."""
        seeded: Seeded = self.configuration.seeded(self.seed)
        return seeded.work()

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of the record that are decided before the run."""
        made: Configuration = self.configuration
        seeded = made.seeded(self.seed)
        return {
            "key_parts": made.key_text(seeded),
            "version": made.info.version,
            "solver_class": made.info.shown,
            "params": canonical_json(seeded.params),
            **seeded.columns,
        }


@dataclass(frozen=True)
class Seeded:
    """What a run of a configuration has by its seed."""

    seed: int
    params: dict[str, Any]  # all parameters
    problem: dict[str, Any]  # what is solved and when it is looked at, for the key
    columns: dict[str, Any]  # those of the record that only this kind has, or names differently
    work: Callable[[], Work]  # makes what a worker does
    failure: str = ""
    reference: Any = None


class Configuration(ABC):
    """A solver on a task, with what all of its runs share; they differ by their seeds."""

    skipped = ""  # why it is not supported

    def __init__(self, study: Any, facts: Facts, task: Any, entry: SolverEntry) -> None:
        self.study, self.task, self.entry = study, task, entry
        self.info = info = facts.solvers[entry.label]
        loaded = facts.datasets.get(task.label)
        self.dataset = None if isinstance(loaded, str) else loaded
        self.failure = loaded if isinstance(loaded, str) else ""
        self.foreign = is_foreign(entry.name)
        self.limits = run_limits(study.budget)
        # To write it anew for each run takes as long as the rest of the key.
        shared = {
            "kind": study.kind,
            "source": info.source_hash,
            "class": info.shown,
            "labels": (task.label, entry.label),
            "versions": {**numeric_versions(), **info.traits.get("packages", {})},
        }
        self._key_texts = {name: canonical_json(part) for name, part in shared.items()}

    @abstractmethod
    def seeded(self, seed: int) -> Seeded:
        """What the run with a seed has by it."""

    def run(self, seed: int) -> Run:
        """The run with a seed."""
        seeded = self.seeded(seed)
        return Run(
            key=hashlib.sha256(self.key_text(seeded).encode()).hexdigest(),
            task=self.task.label,
            solver=self.entry.label,
            seed=seed,
            limits=self.limits,
            configuration=self,
            foreign=self.foreign,
            skip_reason=self.skipped,
            failure=seeded.failure or self.info.traits.get("missing", ""),
            traits=self.info.traits,
            reference=seeded.reference,
        )

    def key_text(self, seeded: Seeded) -> str:
        """All that determines a run, by name, as canonical JSON; the run's key is the hash of it.

        Two runs with the same key give the same numbers, timings apart; limits that only cut a run
        short (timeout, memory, parallel jobs) are no part of it.
        """
        parts = {"params": seeded.params, "task": seeded.problem, "seed": seeded.seed}
        texts = self._key_texts | {name: canonical_json(part) for name, part in parts.items()}
        return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"


class Kind(ABC):
    """What makes one kind of studies different from the others."""

    #: Also what a study file calls it.
    name: ClassVar[str]
    study: ClassVar[type[StudyBase]]
    record: ClassVar[type[RecordBase]]
    configuration: ClassVar[type[Configuration]]

    @abstractmethod
    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        """What its studies ask of a solver's class; called in a worker."""

    @abstractmethod
    def mistakes(self, study: Any, solvers: Mapping[str, SolverInfo]) -> Iterable[str]:
        """What is wrong with the solvers of a study, by their classes."""

    def references(self, study: Any, datasets: Datasets) -> Iterable[tuple[str, Job | str]]:
        """The reference optima that its runs are compared with: jobs, or why there is none."""
        return ()

    def skip_reason(
        self, study: Any, task: Any, entry: Any, info: SolverInfo, dataset: Any = None
    ) -> str:
        """Why a solver will be skipped on a task, as far as this shows; or ""."""
        return ""

    def completed(self, study: Any, datasets: Datasets) -> Any:
        """The study with what was computed from its data."""
        return study

    def plan(self, study: Any, facts: Facts) -> list[Run]:
        """Every run of the study."""
        study = self.completed(study, facts.datasets)
        runs: list[Run] = []
        for task in study.tasks:
            for entry in study.solvers:
                seeds = study.seeds_of(task, entry, facts.solvers[entry.label].traits)
                if seeds:
                    runs += map(self.configuration(study, facts, task, entry).run, seeds)
        if study.selection is not None and not runs:
            raise StudyError(
                f"--where {study.selection.text!r}: no run of the study is chosen; a deterministic "
                "solver has seed 0 alone, and a method runs only on tasks that it fits"
            )
        return runs

    def describe(self, study: Any, facts: Facts) -> dict[str, Any]:
        """What study.json says of its tasks and solvers, and of what only this kind has."""
        study = self.completed(study, facts.datasets)
        tasks, solvers = [], []
        for task in study.tasks:
            data = facts.datasets.get(task.label)
            of_data = {name: getattr(data, name, "") for name in ("citation", "licence")}
            of_data["decided"] = list(getattr(data, "decided", ()))
            tasks.append(task.model_dump() | self.about_task(task) | (of_data if data else {}))
        for entry in study.solvers:
            info = facts.solvers[entry.label]
            solver = {"label": entry.label, "class": info.shown, "params": dict(entry.params)}
            solver |= {"summary": info.summary, "citation": info.citation}
            solvers.append(solver | self.about_solver(entry, info.traits))
        return {**self.about(study), "tasks": tasks, "solvers": solvers}

    @abstractmethod
    def about(self, study: Any) -> dict[str, Any]:
        """What study.json says of a study of only this kind."""

    @abstractmethod
    def about_task(self, task: Any) -> dict[str, Any]:
        """What it says of a task besides its keys, or in other words."""

    @abstractmethod
    def about_solver(self, entry: SolverEntry, traits: Mapping[str, Any]) -> dict[str, Any]:
        """What it says of a solver of only this kind."""

    def complete(self, record: Any, run: Run) -> None:
        """Fill in the columns that follow from the others and from the run's reference."""
        return

    def is_current(self, record: Any, run: Run) -> bool:
        """Whether a stored record was completed with the run's reference."""
        return True

    @abstractmethod
    def headline(self, record: Any) -> Iterator[str]:
        """The findings of a run in words, for its line in the terminal."""


def in_rounds(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs in random order, but one of each pair of task and solver first.

    Neighbours in time must not be neighbours in the plan: machines drift. With one run of each pair
    done, the time that the others need can be forecast.
    """
    shuffled = list(runs)
    random.Random(name).shuffle(shuffled)
    first = {(run.task, run.solver): run.key for run in reversed(shuffled)}
    return sorted(shuffled, key=lambda run: first[run.task, run.solver] != run.key)


def kind_named(name: str) -> Kind:
    """The kind with this name."""
    if name not in KINDS:
        raise StudyError(f"unknown kind {name!r}{suggest(name, list(KINDS))}")
    kind: Kind = importlib.import_module(f".{name}", __package__).KIND
    return kind


def wider_limits(budget: Budget, entry: Entry) -> list[str]:
    """Names of the limits that may have cut a run short and that the budget has raised."""
    if not entry.cut:
        return []
    before, now = json.loads(entry.budget), budget.limits()
    wider = {name for name in entry.cut if now.get(name, math.inf) > before[name]}
    if budget.total_timeout is None and len(wider) > 1:
        # It follows from the others.
        wider.discard("total_timeout")
    return sorted(wider)


def reusable(budget: Budget, entry: Entry | None, *, retry_failed: bool = False) -> Entry | None:
    """What is recorded of a run, unless it is run again: it failed, or its limit is wider now."""
    if entry is None or (retry_failed and entry.status not in EXPECTED_STATUSES):
        return None
    return None if wider_limits(budget, entry) else entry
