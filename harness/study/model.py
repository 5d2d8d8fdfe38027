"""What studies of all kinds have in common, as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from ..errors import StudyError
from ..words import plural
from .budget import Budget
from .grid import Axes, expanded
from .labels import fill_in_labels
from .parts import MAX_LABEL, SolverEntry, StudyPart, TaskEntry
from .places import Places, key_path
from .where import Selection

#: More runs are a slip: the plan of so many takes a minute and a gigabyte.
MAX_RUNS = 200_000
#: The value of a parameter that is to be that of the reference optimum.
REFERENCE = "reference"


class StudyBase(StudyPart):
    """A study of any kind: what is run, on what, how often, and within which limits.

    A kind of studies derives from this, adds the tables of its file, and says which of them hold
    tasks and which one solvers.

    Attributes
    ----------
    title, description : str
        For the report.
    cost : str
        What running it takes, in words.
    budget : Budget
    """

    #: The kind's name, in a study file too.
    kind: str
    #: Names of the tables that hold tasks, and of the one that holds solvers.
    task_tables: ClassVar[tuple[str, ...]]
    solver_table: ClassVar[str]

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=MAX_LABEL)]
    title: str = ""
    description: str = ""
    cost: str = ""
    budget: Budget = Budget()

    _places: Places | None = PrivateAttr(default=None)
    _selection: Selection | None = PrivateAttr(default=None)

    @property
    def tasks(self) -> tuple[TaskEntry, ...]:
        """Everything that solvers are run on."""
        return tuple(task for table in self.task_tables for task in getattr(self, table))

    @property
    def solvers(self) -> tuple[SolverEntry, ...]:
        """Every configuration of a solver."""
        entries: tuple[SolverEntry, ...] = getattr(self, self.solver_table)
        return entries

    def with_tasks(self, tasks: Sequence[TaskEntry]) -> Self:
        """The same study on other tasks; each goes to the table of its type."""
        tables: dict[str, tuple[TaskEntry, ...]] = {}
        for table in self.task_tables:
            kept = table_type(type(self), table)
            tables[table] = tuple(task for task in tasks if isinstance(task, kept))
        return self.model_copy(update=tables)

    def with_solvers(self, solvers: Sequence[SolverEntry]) -> Self:
        """The same study with other solvers."""
        return self.model_copy(update={self.solver_table: tuple(solvers)})

    def with_seeds(self, seeds: int) -> Self:
        """The same study with so many seeds."""
        raise NotImplementedError

    def n_seeds(self, task: Any, entry: SolverEntry) -> int:
        """With how many seeds a solver runs on a task, or on how many of its instances."""
        raise NotImplementedError

    def seeds_of(
        self, task: Any, entry: SolverEntry, traits: Mapping[str, Any] = MappingProxyType({})
    ) -> Sequence[int]:
        """The seeds with which a solver runs on a task.

        Parameters
        ----------
        task : TaskEntry
        entry : SolverEntry
        traits : mapping
            What is known of the solver's class.
        """
        once = entry.seeds is None and self.repeats_itself(task, entry, traits)
        seeds = range(1 if once else self.n_seeds(task, entry))
        chosen = self._selection
        if chosen is None:
            return seeds
        return [seed for seed in seeds if (task.label, entry.label, seed) in chosen.runs]

    def repeats_itself(self, task: Any, entry: SolverEntry, traits: Mapping[str, Any]) -> bool:
        """Whether every seed gives the same run of a solver on a task."""
        return False

    def runs(
        self, traits: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> set[tuple[str, str, int]]:
        """Every run of the study: the labels of its task and solver, and its seed.

        Parameters
        ----------
        traits : mapping
            Label of a solver -> what is known of its class.
        """
        return {
            (task.label, entry.label, seed)
            for task in self.tasks
            for entry in self.solvers
            for seed in self.seeds_of(task, entry, traits.get(entry.label, {}))
        }

    def new_task(self, name: str, label: str) -> TaskEntry | None:
        """A task that the command line names although the study has none of it, if it can be."""
        return None

    def other_tasks(self) -> list[str]:
        """What :meth:`new_task` can make a task of."""
        return []

    def fits(self, task: Any, described: Mapping[str, Any]) -> bool:
        """Whether a solver, as ``study.json`` describes it, is run on a task."""
        return True

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        self.check_size()
        return self

    def check_size(self) -> None:
        """Check that there are not more runs than can be planned, without listing them.

        Raises
        ------
        StudyError
        """
        tasks, solvers = self.tasks, self.solvers
        n_runs, how = len(tasks) * len(solvers), "at least"
        if n_runs <= MAX_RUNS:
            how = "up to"
            n_runs = sum(self.n_seeds(task, entry) for task in tasks for entry in solvers)
        if n_runs > MAX_RUNS:
            raise StudyError(
                f"{plural(len(tasks), 'task')} x {plural(len(solvers), 'solver')} with their seeds "
                f"make {how} {n_runs} runs; {MAX_RUNS} are possible: give fewer seeds, shorten the "
                "lists of a grid or divide the study"
            )

    @property
    def selection(self) -> Selection | None:
        """The runs to which an expression restricts the study; None for all."""
        return self._selection

    def restricted(self, selection: Selection) -> Self:
        """The same study with only some of its runs, and only their tasks and solvers."""
        tasks = {task for task, _, _ in selection.runs}
        solvers = {solver for _, solver, _ in selection.runs}
        found = self.with_tasks([task for task in self.tasks if task.label in tasks])
        found = found.with_solvers([entry for entry in found.solvers if entry.label in solvers])
        found._selection = selection
        return found

    @property
    def was_read(self) -> bool:
        """Whether it comes from a file, and so has all names in their own spelling."""
        return self._places is not None

    def check_chosen(self, runs: Sequence[Any]) -> None:
        """Check that an expression has chosen some of the runs that there are.

        Raises
        ------
        StudyError
            If the runs that it chose turn out not to exist.
        """
        if self._selection is not None and not runs:
            raise StudyError(
                f"--where {self._selection.text!r}: no run of the study is chosen; a deterministic "
                "solver has seed 0 alone, and a method runs only on tasks that it fits"
            )

    def read_from(self, places: Places) -> Self:
        """The same study with what is known of its file."""
        found = self.model_copy()
        found._places = places
        return found

    def place(self, solver: str, *keys: str) -> str:
        """The beginning of a message about a solver: file, line and key, as far as there are.

        Parameters
        ----------
        solver : str
            Its label.
        *keys : str
            The way to a value in its entry.
        """
        places = self._places
        if places is None or solver not in places.solvers:
            return f"solver {solver!r}: "
        path = (*places.solvers[solver], *keys)
        return f"{places.at(path)}: {key_path(path)}: "

    def check_entry(self, entry: SolverEntry, where: str) -> None:
        """Check what can be checked of a solver without importing its class.

        Raises
        ------
        StudyError
            The message begins with ``where``.
        """

    @classmethod
    def from_toml(cls, path: Path | str) -> Self:
        """The study of a TOML file, or one that ships with marginbench, by name.

        Raises
        ------
        StudyError
            If there is none, if it does not make sense, or if it is of another kind.
        """
        from .file import load_study

        study = load_study(path)
        if not isinstance(study, cls):
            raise StudyError(f"{path}: is of the kind {study.kind!r}; use load_study")
        return study

    def to_toml(self) -> str:
        """The text of a study file; what has its default is left out.

        Raises
        ------
        StudyError
            For a value that TOML cannot express.
        """
        from .toml import to_toml

        return to_toml(self)

    @model_validator(mode="before")
    @classmethod
    def _write_out(cls, values: Any) -> Any:
        """Grids become entries, and entries without a label get one."""
        stems = {table: axes.stem for table, axes in cls.axes().items() if axes.stem}
        return fill_in_labels(expanded(values, cls.axes()), stems)

    @classmethod
    def axes(cls) -> dict[str, Axes]:
        """Name of each table of entries -> where its lists stand for one entry each."""
        return {
            table: table_type(cls, table).axes for table in (*cls.task_tables, cls.solver_table)
        }

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        tasks = " and ".join(f"[[{table}]]" for table in self.task_tables if getattr(self, table))
        for names, written in (
            (self.task_tables, tasks),
            ((self.solver_table,), f"[[{self.solver_table}]]"),
        ):
            seen: set[str] = set()
            places = (
                (name, number, entry)
                for name in names
                for number, entry in enumerate(getattr(self, name))
            )
            for name, number, entry in places:
                if entry.label.casefold() in seen:
                    raise StudyError(
                        f"two entries of {written} have the label {entry.label!r}; give each its "
                        "own",
                        at=(name, number, "label"),
                    )
                seen.add(entry.label.casefold())
        return self


def table_type(study: type[BaseModel], table: str) -> Any:
    """The type of the entries of a table of a study."""
    return get_args(study.model_fields[table].annotation)[0]
