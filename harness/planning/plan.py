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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ...data_loaders import suggest
from ..errors import StudyError
from ..hashing import canonical_json
from ..jobs import Limits, Work
from ..results.journal import Cell, Entry
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.model import KINDS, Budget, SolverEntry, StudyBase, is_foreign, run_limits
from .fingerprint import numeric_versions

if TYPE_CHECKING:
    from .preflight import DatasetInfo, Datasets, Facts, ReferenceQuestion, SolverInfo

_TIMEOUTS = frozenset(
    {
        *("timeout", "cpu_timeout", "compile_timeout", "data_timeout", "evaluation_timeout"),
        "total_timeout",
    }
)


@dataclass(frozen=True)
class Details:
    """What is needed of a run only when it is done."""

    work: Work  # what a worker does; it hands back the other columns of the record
    columns: Mapping[str, Any]  # columns of the record that are decided before the run


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
    # Makes the details of the run with this seed; a run of a plan has it.
    detailed: Any = field(default=None, repr=False)
    n_train: int | None = None  # training points, where there are data
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
    def details(self) -> Details:
        """What is needed of it when it is done; made anew each time."""
        details: Details = self.detailed(self.seed)
        return details

    @property
    def work(self) -> Work:
        """What a worker does."""
        return self.details.work

    @property
    def columns(self) -> Mapping[str, Any]:
        """Columns of the record that are decided before the run."""
        return self.details.columns


@dataclass(frozen=True)
class Seeded:
    """What a run of a configuration has by its seed."""

    seed: int
    explicit: dict[str, Any]  # parameters that the study, its task or the seed set
    params: dict[str, Any]  # all parameters
    problem: dict[str, Any]  # what is solved and when it is looked at, for the key
    dataset: DatasetInfo | None = None
    failure: str = ""
    reference: Any = None


class Configuration(ABC):
    """A solver on a task, with what all of its runs share; they differ by their seeds."""

    skipped = ""  # why it is not supported

    def __init__(self, study: Any, facts: Facts, task: Any, entry: SolverEntry) -> None:
        self.study, self.task, self.entry = study, task, entry
        self.info = facts.solvers[entry.label]
        loaded = facts.datasets.get(task.label)
        self.dataset = None if isinstance(loaded, str) else loaded
        self.failure = loaded if isinstance(loaded, str) else ""
        self.foreign = is_foreign(entry.name)
        self.limits = run_limits(study.budget)
        self.versions = {**numeric_versions(), **self.info.traits.get("packages", {})}

    @abstractmethod
    def seeded(self, seed: int) -> Any:
        """What the run with a seed has by it."""

    @abstractmethod
    def work(self, seeded: Any) -> Work:
        """What a worker does."""

    @abstractmethod
    def columns(self, seeded: Any) -> dict[str, Any]:
        """Columns of the record that only this kind has, or names differently."""

    def run(self, seed: int) -> Run:
        """The run with a seed."""
        seeded = self.seeded(seed)
        return Run(
            key=hashlib.sha256(self._key_text(seeded).encode()).hexdigest(),
            task=self.task.label,
            solver=self.entry.label,
            seed=seed,
            limits=self.limits,
            detailed=self.details,
            n_train=None if seeded.dataset is None else seeded.dataset.n_train,
            foreign=self.foreign,
            skip_reason=self.skipped,
            failure=seeded.failure or self.info.traits.get("missing", ""),
            traits=self.info.traits,
            reference=seeded.reference,
        )

    def details(self, seed: int) -> Details:
        """What is needed of that run when it is done."""
        seeded = self.seeded(seed)
        columns = {
            "key_parts": self._key_text(seeded),
            "version": self.info.version,
            "solver_class": self.info.shown,
            "params": canonical_json(seeded.params),
        }
        return Details(self.work(seeded), columns | self.columns(seeded))

    def _key_text(self, seeded: Seeded) -> str:
        """All that determines a run, by name, as canonical JSON; the run's key is the hash of it.

        Two runs with the same key give the same numbers, timings apart; limits that only cut a run
        short (timeout, memory, parallel jobs) are no part of it.
        """
        parts = {"params": seeded.params, "task": seeded.problem, "seed": seeded.seed}
        texts = self._shared_texts | {name: canonical_json(part) for name, part in parts.items()}
        return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"

    @cached_property
    def _shared_texts(self) -> dict[str, str]:
        """What of it all runs share: to write it anew takes as long as the rest of the key."""
        shared = {
            "kind": self.study.kind,
            "source": self.info.source_hash,
            "class": self.info.shown,
            "labels": (self.task.label, self.entry.label),
            "versions": self.versions,
        }
        return {name: canonical_json(part) for name, part in shared.items()}


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

    def stand_ins(self, cls: type[Any]) -> dict[str, Any]:
        """Values of what tasks decide with which the other parameters of a class are checked."""
        return {}

    @abstractmethod
    def mistakes(self, study: Any, solvers: Mapping[str, SolverInfo]) -> Iterable[str]:
        """What is wrong with the solvers of a study, by their classes."""

    def remarks(self, study: Any) -> Iterable[str]:
        """Lines for the user on a study, before it is planned."""
        return ()

    def references(self, study: Any, datasets: Datasets) -> Iterable[ReferenceQuestion]:
        """The reference optima that its runs are compared with."""
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
        solvers = []
        for entry in study.solvers:
            info = facts.solvers[entry.label]
            shared = {"class": info.shown, "params": dict(entry.params), "summary": info.summary}
            shared["citation"] = info.citation
            described = self.described_solver(entry, info)
            solvers.append({"label": entry.label, **shared, **described})
        tasks = []
        for task in study.tasks:
            data, credit = facts.datasets.get(task.label), dict[str, Any]()
            if isinstance(data, str):
                credit = {"citation": "", "licence": "", "decided": []}
            elif data is not None:
                credit = {"citation": data.citation, "licence": data.licence}
                credit["decided"] = list(data.decided)
            tasks.append({**self.described_task(task), **credit})
        return {**self.described_study(study), "tasks": tasks, "solvers": solvers}

    @abstractmethod
    def described_study(self, study: Any) -> dict[str, Any]:
        """What study.json says of what only this kind has."""

    @abstractmethod
    def described_task(self, task: Any) -> dict[str, Any]:
        """What study.json says of a task, but for its data."""

    @abstractmethod
    def described_solver(self, entry: SolverEntry, info: SolverInfo) -> dict[str, Any]:
        """What study.json says of a solver of this kind besides what it says of all."""

    def complete(self, record: Any, run: Run) -> None:
        """Fill in the columns that follow from the others and from the run's reference."""
        return

    def is_current(self, record: Any, run: Run) -> bool:
        """Whether a stored record was completed with the run's reference."""
        return True

    def limits_hit(self, record: Any) -> frozenset[str]:
        """Names of the budget's limits of which a run that ended early may have hit one."""
        return frozenset()

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
    first: dict[tuple[str, str], Run] = {}
    for run in shuffled:
        first.setdefault((run.task, run.solver), run)
    keys = {run.key for run in first.values()}
    return [*first.values(), *(run for run in shuffled if run.key not in keys)]


def kind_named(name: str) -> Kind:
    """The kind with this name."""
    if name not in KINDS:
        raise StudyError(f"unknown kind {name!r}{suggest(name, list(KINDS))}")
    kind: Kind = importlib.import_module(f".{name}", __package__).KIND
    return kind


def limits_hit(kind: Kind, record: RecordBase | Entry) -> frozenset[str]:
    """Names of the limits that may have cut a run short."""
    if record.status == "timeout":
        return kind.limits_hit(record) | _TIMEOUTS
    if record.status == "memory":
        return kind.limits_hit(record) | {"memory"}
    return kind.limits_hit(record)


def wider_limits(kind: Kind, budget: Budget, record: RecordBase | Entry) -> list[str]:
    """Names of the limits that may have cut a run short and that the budget has raised."""
    limits = limits_hit(kind, record)
    if not limits:
        return []
    # A limit that is in no budget: there was none then.
    before: dict[str, float] = json.loads(record.budget)
    now = budget.limits()
    wider = {
        name
        for name in limits
        if now.get(name, math.inf) > before.get(name, math.inf if name == "cpu_timeout" else 0.0)
    }
    if budget.total_timeout is None and len(wider) > 1:
        # It follows from the others.
        wider.discard("total_timeout")
    return sorted(wider)


def reusable(
    kind: Kind, budget: Budget, entry: Entry | None, *, retry_failed: bool = False
) -> Entry | None:
    """What is recorded of a run, unless it is run again: it failed, or its limit is wider now."""
    if entry is None or (retry_failed and entry.status not in EXPECTED_STATUSES):
        return None
    return None if wider_limits(kind, budget, entry) else entry
