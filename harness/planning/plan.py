"""What is run: runs, the order in which they are done, and the kinds of studies that plan them.

A kind is one object; everything else in the harness (workers, records, selection, the command line)
is the same for every kind.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ...data_loaders import suggest
from ..errors import RecordError, StudyError
from ..execution.jobs import Limits, Work
from ..results.records import RecordBase, file_name_of
from ..study.model import StudyBase

if TYPE_CHECKING:
    from .preflight import ReferenceQuestion, SolverInfo

#: The module of each kind; its ``KIND`` is the kind.
_MODULES = {
    "svm": "marginbench.harness.planning.svm",
    "feasibility": "marginbench.harness.planning.feasibility",
}


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

    @property
    def file_name(self) -> str:
        """Name of the record's file."""
        return file_name_of(self.key, self.task, self.solver, self.seed)


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

    def stand_ins(self, cls: type[Any]) -> dict[str, Any]:
        """Values of what tasks decide with which the other parameters of a class are checked."""
        ...

    def check_solvers(self, study: Any, solvers: Mapping[str, SolverInfo]) -> dict[str, SolverInfo]:
        """The classes of the solvers by label, once their parameters are checked.

        Raises
        ------
        UserError
            If one does not take its parameters.
        """
        ...

    def remarks(self, study: Any, solvers: Mapping[str, SolverInfo]) -> Iterable[str]:
        """What the user is told of a study before it is planned."""
        ...

    def data_tasks(self, study: Any) -> Sequence[Any]:
        """The tasks that are on datasets."""
        ...

    def references(self, study: Any) -> Iterable[ReferenceQuestion]:
        """The reference optima that its runs are compared with."""
        ...

    def seeds(self, study: Any, task: Any, entry: Any, info: SolverInfo) -> Sequence[int]:
        """The seeds with which a solver runs on a task; empty if it does not fit the task."""
        ...

    def skip_reason(self, study: Any, task: Any, entry: Any, info: SolverInfo) -> str:
        """Why a solver will be skipped on a task, as far as this shows without the data; or ""."""
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


def in_rounds(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs in random order, but one of each pair of task and solver first.

    Neighbours in time must not be neighbours in the plan: machines drift. With one run of each pair
    done, the time that the others need is known.

    Parameters
    ----------
    runs : sequence of Run
    name : str
        Of the study; it decides the order.
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
    # Before version 4 of the schema there was no column for the kind.
    default = "feasibility" if "method_class" in row else "svm"
    name = str(row.get("kind", default))
    if name not in _MODULES:
        raise RecordError(f"a record of the kind {name!r}, this release knows {_known()}")
    return kind_named(name).record


def _known() -> str:
    return " and ".join(kind_names())
