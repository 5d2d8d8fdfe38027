"""What is run: runs, the order in which they are done, and the kinds of studies that plan them.

A kind is one object; everything else in the harness (workers, records, selection, the command line)
is the same for every kind.
"""

from __future__ import annotations

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
from ..jobs import Limits, Work
from ..results.journal import Cell, Entry
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..study.model import KINDS, Budget, StudyBase

if TYPE_CHECKING:
    from .preflight import Facts, ReferenceQuestion, SolverInfo

_TIMEOUTS = frozenset(
    {
        *("timeout", "cpu_timeout", "compile_timeout", "data_timeout", "evaluation_timeout"),
        "total_timeout",
    }
)


@dataclass(frozen=True)
class Details:
    """What is needed of a run only when it is done."""

    work: Work  # what a worker does; it hands back the columns of the record that it found out
    known: Mapping[str, Any]  # columns of the record that are known before the run


def _no_details(seed: int) -> Details:
    raise AssertionError("a run outside a plan has no details")


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
    # Makes the details of the run with this seed.
    detailed: Callable[[int], Details] = field(default=_no_details, repr=False)
    n_train: int | None = None  # training points, where they are known
    foreign: bool = False  # whether it runs code from outside the project
    skip_reason: str = ""  # why the combination is not supported; empty if it is
    failure: str = ""  # why the run cannot even start; empty if it can
    traits: Mapping[str, Any] = field(default_factory=dict)  # what is known of the solver's class
    reference: Any = None  # what the kind compares its result with

    @property
    def cell(self) -> Cell:
        """Task, solver and seed."""
        return self.task, self.solver, self.seed

    @property
    def details(self) -> Details:
        """What is needed of it when it is done; made anew each time."""
        return self.detailed(self.seed)

    @property
    def work(self) -> Work:
        """What a worker does."""
        return self.details.work

    @property
    def known(self) -> Mapping[str, Any]:
        """Columns of the record that are known before the run."""
        return self.details.known


class Configuration(ABC):
    """A solver on a task, with what all of its runs share; they differ by their seeds."""

    @abstractmethod
    def run(self, seed: int) -> Run:
        """The run with a seed."""

    @abstractmethod
    def details(self, seed: int) -> Details:
        """What is needed of that run when it is done."""


class Kind(ABC):
    """What makes one kind of studies different from the others."""

    #: Also what a study file calls it.
    name: ClassVar[str]
    study: ClassVar[type[StudyBase]]
    record: ClassVar[type[RecordBase]]

    @abstractmethod
    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        """What its studies ask of a solver's class; called in a worker."""

    def stand_ins(self, cls: type[Any]) -> dict[str, Any]:
        """Values of what tasks decide with which the other parameters of a class are checked."""
        return {}

    @abstractmethod
    def check_solvers(self, study: Any, solvers: Mapping[str, SolverInfo]) -> dict[str, SolverInfo]:
        """The classes of the solvers by label, once their parameters are checked."""

    def remarks(self, study: Any, solvers: Mapping[str, SolverInfo]) -> Iterable[str]:
        """What the user is told of a study before it is planned."""
        return ()

    @abstractmethod
    def data_tasks(self, study: Any) -> Sequence[Any]:
        """The tasks that are on datasets."""

    def references(self, study: Any) -> Iterable[ReferenceQuestion]:
        """The reference optima that its runs are compared with."""
        return ()

    def seeds(self, study: Any, task: Any, entry: Any, info: SolverInfo) -> Sequence[int]:
        """The seeds with which a solver runs on a task; empty if it does not fit the task."""
        seeds: Sequence[int] = study.seeds_of(task, entry, info.traits)
        return seeds

    def skip_reason(self, study: Any, task: Any, entry: Any, info: SolverInfo) -> str:
        """Why a solver will be skipped on a task, as far as this shows without the data; or ""."""
        return ""

    def completed(self, study: Any, facts: Facts) -> Any:
        """The study with what was computed from its data."""
        return study

    @abstractmethod
    def configuration(self, study: Any, facts: Facts, task: Any, entry: Any) -> Configuration:
        """A solver on a task; of a completed study."""

    def plan(self, study: Any, facts: Facts) -> list[Run]:
        """Every run of the study."""
        study = self.completed(study, facts)
        runs: list[Run] = []
        for task in study.tasks:
            for entry in study.solvers:
                seeds = self.seeds(study, task, entry, facts.solvers[entry.label])
                if seeds:
                    runs += map(self.configuration(study, facts, task, entry).run, seeds)
        study.check_chosen(runs)
        return runs

    @abstractmethod
    def describe(self, study: Any, facts: Facts) -> dict[str, Any]:
        """What study.json says of its tasks and solvers, and of what only this kind has."""

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
    done, the time that the others need is known.
    """
    shuffled = list(runs)
    random.Random(name).shuffle(shuffled)
    first: dict[tuple[str, str], Run] = {}
    for run in shuffled:
        first.setdefault((run.task, run.solver), run)
    keys = {run.key for run in first.values()}
    return [*first.values(), *(run for run in shuffled if run.key not in keys)]


def kind_names() -> list[str]:
    """The names of all kinds."""
    return list(KINDS)


def kind_named(name: str) -> Kind:
    """The kind with this name."""
    if name not in KINDS:
        raise StudyError(f"unknown kind {name!r}{suggest(name, kind_names())}")
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


def is_repeated(
    kind: Kind, budget: Budget, record: RecordBase | Entry, *, retry_failed: bool
) -> bool:
    """Whether a recorded run is run again: it failed, or its limit is wider now."""
    if retry_failed and record.status not in EXPECTED_STATUSES:
        return True
    return bool(wider_limits(kind, budget, record))
