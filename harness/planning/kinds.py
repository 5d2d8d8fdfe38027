"""Kinds of studies: how one is planned, run, judged and described.

A kind is one object; everything else in the harness (sessions, workers, records, selection, the
command line) is the same for every kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ...data_loaders import suggest
from ..errors import RecordError, StudyError
from ..execution.jobs import Limits, Work
from ..results.records import RecordBase
from ..study.model import StudyBase
from ..study.parts import TaskEntry
from .judging import Judging
from .questions import DatasetInfo, SolverInfo

if TYPE_CHECKING:
    from .asking import Ask

#: The module of each kind; its ``KIND`` is the kind.
_MODULES = {
    "svm": "marginbench.harness.planning.svm",
    "feasibility": "marginbench.harness.planning.feasibility",
}


@dataclass(frozen=True)
class Facts:
    """What the workers found out about a study; a reason (str) stands for what is not to be had.

    Attributes
    ----------
    solvers : mapping
        Label of a solver -> its class.
    datasets : mapping
        Label of a task -> its dataset, or why it cannot be loaded. Tasks whose data are generated
        in the run have none.
    """

    solvers: Mapping[str, SolverInfo]
    datasets: Mapping[str, DatasetInfo | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Details:
    """What is needed of a run only when it is done.

    Attributes
    ----------
    work : Work
        What a worker does; it hands back the columns of the record that it found out.
    known : mapping
        Columns of the record that are known before the run.
    """

    work: Work
    known: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One solver on one task with one seed.

    A plan may hold a hundred thousand of them, so each holds only what the plan needs.

    Attributes
    ----------
    key : str
        SHA-256 of all that determines what it computes, and of its labels.
    task, solver : str
        Labels.
    seed : int
    limits : Limits
    detailed : callable
        Makes the details of the run with this seed.
    n_train : int or None
        Training points, where they are known.
    foreign : bool
        Whether it runs code from outside the project.
    skip_reason : str
        Why the combination is not supported; empty if it is.
    failure : str
        Why the run cannot even start; empty if it can.
    traits : mapping
        What is known of the solver's class.
    reference : object
        What the kind compares its result with.
    """

    key: str
    task: str
    solver: str
    seed: int
    limits: Limits
    detailed: Callable[[int], Details]
    n_train: int | None = None
    foreign: bool = False
    skip_reason: str = ""
    failure: str = ""
    traits: Mapping[str, Any] = field(default_factory=dict)
    reference: Any = None

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


class Kind(Protocol):
    """What makes one kind of studies different from the others."""

    #: Also what a study file calls it.
    name: str
    study: type[StudyBase]
    record: type[RecordBase]

    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        """What its studies ask of a solver's class; called in a worker.

        Raises
        ------
        SolverError
            If it is no solver for this kind of studies.
        """
        ...

    def judging(self, traits: Mapping[str, Any]) -> Judging:
        """The files that decide how runs of a solver are judged: an edit changes their keys."""
        ...

    def new_task(self, study: Any, name: str, label: str) -> TaskEntry:
        """A task that the command line names although the study has none of it.

        Raises
        ------
        StudyError
            If the kind can make none of this name.
        """
        ...

    def stand_ins(self, cls: type[Any]) -> dict[str, Any]:
        """Values of what tasks decide with which the other parameters of a class are checked."""
        ...

    def solvers(self, study: Any, ask: Ask) -> dict[str, SolverInfo]:
        """The classes of the solvers by label, their parameters checked; found out in workers.

        Raises
        ------
        UserError
            If a solver cannot be imported or does not take its parameters.
        """
        ...

    def seeds(self, study: Any, task: Any, entry: Any, info: SolverInfo) -> Sequence[int]:
        """The seeds with which a solver runs on a task; empty if it does not fit the task."""
        ...

    def skip_reason(self, study: Any, task: Any, entry: Any, info: SolverInfo) -> str:
        """Why a solver will be skipped on a task, as far as this shows without the data; or ""."""
        ...

    def facts(self, study: Any, ask: Ask) -> Facts:
        """What planning must know; found out in workers.

        Raises
        ------
        UserError
            If a solver cannot be imported or does not take its parameters.
        """
        ...

    def plan(self, study: Any, facts: Any) -> list[Run]:
        """Every run of the study."""
        ...

    def describe(self, study: Any, facts: Any) -> dict[str, Any]:
        """What study.json says of its tasks and solvers, and of what only this kind has."""
        ...

    def complete(self, record: Any, run: Run) -> None:
        """Fill in the columns that follow from the others and from the run's reference."""
        ...

    def is_current(self, record: Any, run: Run) -> bool:
        """Whether a stored record was completed with the run's reference."""
        ...

    def limits_hit(self, record: Any) -> frozenset[str]:
        """Names of the budget's limits of which a run that ended early may have hit one."""
        ...

    def headline(self, record: Any) -> Iterator[str]:
        """The findings of a run in words, for its line in the terminal."""
        ...


def kind_names() -> list[str]:
    """The names of all kinds."""
    return list(_MODULES)


def kind_named(name: str) -> Kind:
    """The kind with this name.

    Raises
    ------
    StudyError
        If there is none.
    """
    if name not in _MODULES:
        raise StudyError(f"unknown kind {name!r}{suggest(name, kind_names())}")
    kind: Kind = importlib.import_module(_MODULES[name]).KIND
    return kind


def record_type(row: Mapping[str, Any]) -> type[RecordBase]:
    """The type of the record that a stored row is.

    Raises
    ------
    RecordError
        If it is of no known kind.
    """
    name = str(row.get("kind"))
    if name not in _MODULES:
        raise RecordError(f"a record of the kind {name!r}, this release knows {_known()}")
    return kind_named(name).record


def _known() -> str:
    return " and ".join(kind_names())
