"""What studies of all kinds have in common, as typed objects."""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from ..errors import StudyError
from ..jobs import Limits
from ..words import plural, visible
from .grid import Axes, expanded, fill_in_labels
from .names import checked_dataset, is_users_file

#: More runs are a slip: the plan of so many takes a minute and a gigabyte.
MAX_RUNS = 200_000
#: The value of a parameter that is to be that of the reference optimum.
REFERENCE = "reference"
#: The way to a value in a study: names of tables and keys, and places in lists from 0.
KeyPath: TypeAlias = tuple[str | int, ...]
#: Characters of a label: it stands in tables and figures.
MAX_LABEL = 100


def _printable(text: str) -> str:
    if not text.isprintable() or visible(text, 10 * len(text)) != text.strip(" "):
        raise ValueError("must hold printable characters only")
    return text


def _label(text: str) -> str:
    if text and all(unicodedata.category(character)[0] in "MZ" for character in text):
        raise ValueError("must hold a letter, a digit or a sign, not only spaces and accents")
    if len(text) > MAX_LABEL:
        raise ValueError(f"must have at most {MAX_LABEL} characters, not {len(text)}")
    return text


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# Names and labels stand in file names, tables and lines of progress.
Name = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
Label = Annotated[Name, AfterValidator(_label)]


@dataclass(frozen=True, eq=False)
class StudyFile:
    """The file of a study, for messages that name file and line.

    It equals anything: two studies that say the same are the same, whatever they were read from.
    """

    where: str  # what messages call the file
    text: str = ""  # its content; empty if there is none
    # Name of a table -> for each entry of the study the entry of the file that it comes from;
    # they differ where the file has grids.
    origins: Mapping[str, Sequence[int]] = field(default_factory=dict)
    # Label of a solver -> the path of its entry in the file.
    solvers: Mapping[str, KeyPath] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def written(self, path: KeyPath) -> KeyPath:
        """The path in the file of a path in the study."""
        if len(path) < 2 or not isinstance(path[1], int):
            return path
        origins = self.origins.get(str(path[0]), ())
        return (path[0], origins[path[1]], *path[2:]) if path[1] < len(origins) else path

    @cached_property
    def lines(self) -> Mapping[KeyPath, int]:
        """The line of each key; only messages need it."""
        from .toml import key_lines

        return key_lines(self.text)

    def line(self, path: KeyPath) -> int | None:
        """The line of a path in the file, or of the nearest table around it."""
        parts = (tuple(path[:length]) for length in range(len(path), 0, -1))
        return next((self.lines[part] for part in parts if part in self.lines), None)

    def at(self, path: KeyPath) -> str:
        """ "study.toml:12" for a path in the file; without a line if that is not known."""
        line = self.line(path)
        return self.where if line is None else f"{self.where}:{line}"


def key_path(path: Sequence[str | int]) -> str:
    """``('task', 1, 'C')`` as ``task[2].C``: entries are counted from one, as people do."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part + 1}]"
        else:
            words += f".{part}" if words else part
    return words


class StudyPart(BaseModel):
    """A table of a study file: no unknown keys, no values of another type.

    Raises
    ------
    StudyError
        For values that make none; one line for each mistake.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            from .toml import mistakes

            cls = type(self)
            lines = mistakes(error, StudyFile(cls.__name__), cls)
            raise StudyError(*map(visible, lines)) from None

    # Tables inside a study are checked with it, and told with their places in it.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class SolverEntry(StudyPart):
    """One configuration of a solver.

    Attributes
    ----------
    name : str
        A registry name, "file.py:Class" or "package.module:Class".
    label : str
        Unique in the study; by default the name of the class.
    params : dict
        Parameters of the estimator. ``nu = "reference"`` takes the value of the task's reference
        optimum, in studies of SVM solvers.
    tune : dict
        Values to choose from, by parameter, in studies of SVM solvers: see ``[tuning]``.
    seeds : int or None
        Run with no more than so many of the study's seeds, or of a task's instances.
    other_problem : bool
        Run a solver of SVM studies that always fits a bias, or never fits one, on other tasks too:
        it solves another problem there, and its objective is not compared.
    """

    name: Name
    label: Label = ""
    params: dict[str, Any] = {}
    tune: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    seeds: Annotated[int, Field(ge=1)] | None = None
    other_problem: bool = False

    #: Where lists stand for one entry each.
    axes: ClassVar[Axes] = Axes(tables=("params",), stem="name")

    @property
    def class_name(self) -> str:
        return self.name.rsplit(":", 1)[-1]


class TaskEntry(StudyPart):
    """What solvers are run on: one table of a study file, with a label of its own."""

    label: Label = ""

    #: Where lists stand for one entry each.
    axes: ClassVar[Axes] = Axes()

    @property
    def names(self) -> tuple[str, ...]:
        """What the command line may call it."""
        return (self.label,)

    @property
    def facets(self) -> dict[str, Any]:
        """What it is, by name; the values in its tables have names of their own."""
        facets: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in self.axes.tables:
                facets = {**value, **facets}
            elif value is not None and name != "label" and not isinstance(value, Mapping):
                facets[name] = value
        return facets

    def completed(self, where: str = "", folder: str | None = None) -> Self:
        """The same with names in their own spelling and what the data decide filled in.

        Relative paths begin in ``folder``, or where we are.

        Raises
        ------
        StudyError
            For a name that there is not; the message begins with ``where``.
        """
        return self

    def placed(self, folder: str | None) -> Self:
        """The same with relative paths that begin in a folder; nothing is looked at."""
        return self

    def portable(self, results: Path) -> dict[str, Any]:
        """The fields that name files, with the way to them from the results folder."""
        return {}


#: Options of the user's own data that are lists.
LIST_OPTIONS = ("categorical", "drop", "missing_words")


class DatasetTask(TaskEntry):
    """A task on a dataset.

    Attributes
    ----------
    dataset : str
        A registered or imported name, a path, or "file.py:name".
    dataset_params : dict
        Parameters of a registered dataset, or options of the user's own.
    """

    dataset: Name
    dataset_params: dict[str, Any] = Field(default_factory=dict)
    # Where a relative path begins. Not a field: no results folder is to name it.
    _folder: str | None = PrivateAttr(default=None)

    @property
    def folder(self) -> str | None:
        """Where the path of the user's file begins if it is relative; None: where we are."""
        return self._folder

    @property
    def runs_code(self) -> bool:
        """Whether loading the dataset may run code from outside the project."""
        return self.dataset.rpartition(":")[0].endswith(".py")

    @property
    def names(self) -> tuple[str, ...]:
        return self.label, self.dataset

    def completed(self, where: str = "", folder: str | None = None) -> Self:
        """With the dataset's name in its own spelling.

        Raises
        ------
        StudyError
            For an unknown dataset or a file that is not there, or one that does not take the
            parameters.
        """
        folder = self.folder if folder is None else folder
        dataset = checked_dataset(self.dataset, self.dataset_params, where, folder)
        return self.model_copy(update={"dataset": dataset}).placed(folder)

    def placed(self, folder: str | None) -> Self:
        if not is_users_file(self.dataset, folder):
            return self
        task = self.model_copy()
        task._folder = folder
        return task

    def portable(self, results: Path) -> dict[str, Any]:
        if not is_users_file(self.dataset, self.folder):
            return {}
        params = dict(self.dataset_params)
        test = params.get("test")
        if isinstance(test, str) and test and not test.startswith("last "):
            params["test"] = self._from(results, test)
        file, colon, name = self.dataset.rpartition(":")
        if colon and file.endswith(".py"):
            return {"dataset": f"{self._from(results, file)}:{name}", "dataset_params": params}
        return {"dataset": self._from(results, self.dataset), "dataset_params": params}

    def _from(self, results: Path, file: str) -> str:
        """The way to a file from the results folder."""
        path = Path(self.folder or ".").joinpath(Path(file).expanduser()).resolve()
        return os.path.relpath(path, results.resolve())


class Stop(StudyPart):
    """What a run need not go beyond.

    Attributes
    ----------
    suboptimality : float
        Relative to the task's reference optimum, as checkpoints find it.
    """

    suboptimality: Positive


class Budget(StudyPart):
    """Limits of each run.

    Attributes
    ----------
    timeout : float
        Seconds of solving; data, compilation and evaluation do not count.
    cpu_timeout : float or None
        CPU seconds of solving, of all threads and child processes together. It does not depend on
        what else the machine does; ``timeout`` holds as well.
    kernel_evals : float or None
        Evaluations that a run may ask for: kernel entries and what other methods have in their
        place, counted as in :class:`marginbench.Counters`. Looked at when a checkpoint is due.
    iterations : int or None
        Iterations that a run may do. Looked at when a checkpoint is due.
    stop : Stop or None
        Ends a run that is good enough.
    memory : float
        Megabytes (10^6 bytes) that a worker process, its children included, may hold resident.
    checkpoint_factor : float
        Checkpoints come at kernel evaluations that grow by this factor.
    epoch_checkpoints : bool
        And at the end of each epoch, of solvers that say where theirs end (BSGD and BSCA).
    compile_timeout, data_timeout, evaluation_timeout : float
        Seconds for importing a solver and for warming it up, for getting the data, and for one
        evaluation. They are there to catch what hangs.
    total_timeout : float or None
        Seconds that all phases of a run may take together. By default the sum of the other four,
        with ``timeout`` counted twice.
    """

    timeout: Positive = 60.0
    cpu_timeout: Positive | None = None
    kernel_evals: Positive | None = None
    iterations: Annotated[int, Field(ge=1)] | None = None
    stop: Stop | None = None
    memory: Positive = 4096.0
    checkpoint_factor: Annotated[float, Field(ge=1.01, allow_inf_nan=False)] = 1.19
    epoch_checkpoints: bool = False
    compile_timeout: Positive = 60.0
    data_timeout: Positive = 1800.0
    evaluation_timeout: Positive = 600.0
    total_timeout: Positive | None = None

    def limits(self) -> dict[str, Any]:
        """What is set of it by name, with the total limit that holds."""
        total = self.total_timeout
        if total is None:
            fixed = self.compile_timeout + self.data_timeout + self.evaluation_timeout
            total = fixed + 2 * self.timeout
        return {**self.model_dump(exclude_none=True), "total_timeout": total}

    @property
    def rules(self) -> dict[str, Any]:
        """Those that end a run by what it has done, and so decide its result, where there are."""
        return self.model_dump(include={"kernel_evals", "iterations", "stop"}, exclude_none=True)


def run_limits(budget: Budget, grace: float = 0.0) -> Limits:
    """What the parent enforces of a budget."""
    return Limits(
        seconds={
            "import": budget.compile_timeout,
            "data": budget.data_timeout,
            "compile": budget.compile_timeout,
            "solve": budget.timeout + grace,
            "evaluate": budget.evaluation_timeout,
        },
        memory=budget.memory,
        total=budget.limits()["total_timeout"] + grace,
        cpu=math.inf if budget.cpu_timeout is None else budget.cpu_timeout,
    )


@dataclass(frozen=True)
class Selection:
    """Some runs of a study that need not be a product of tasks, solvers and seeds."""

    text: str  # the expression that chose them
    runs: frozenset[tuple[str, str, int]]  # labels of task and solver, and the seed


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

    _file: StudyFile | None = PrivateAttr(default=None)
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

    @property
    def most_seeds(self) -> int:
        """With how many seeds the solver runs that has most."""
        return max(self.n_seeds(task, entry) for task in self.tasks for entry in self.solvers)

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
        part = self.with_tasks([task for task in self.tasks if task.label in tasks])
        part = part.with_solvers([entry for entry in part.solvers if entry.label in solvers])
        part._selection = selection
        return part

    @property
    def was_read(self) -> bool:
        """Whether it comes from a file, and so has all names in their own spelling."""
        return self._file is not None

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

    def read_from(self, file: StudyFile) -> Self:
        """The same study with what is known of its file."""
        study = self.model_copy()
        study._file = file
        return study

    def message_prefix(self, solver: str, *keys: str) -> str:
        """The beginning of a message about a solver: file, line and key, as far as there are.

        Parameters
        ----------
        solver : str
            Its label.
        *keys : str
            The way to a value in its entry.
        """
        file = self._file
        if file is None or solver not in file.solvers:
            return f"solver {solver!r}: "
        path = (*file.solvers[solver], *keys)
        return f"{file.at(path)}: {key_path(path)}: "

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
        from .toml import load_study

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
