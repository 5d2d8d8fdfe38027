"""What studies of all kinds have in common, as typed objects, and what names in them mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    ValidationInfo,
    model_validator,
)

from ...data_loaders import DataError, Source, sources, suggest
from ...data_loaders.cache import datasets_folder
from ...data_loaders.own.finding import find_own, is_own
from ...data_loaders.own.importing import imported_names as names_in
from ...data_loaders.sources import unknown
from ...solvers.registration import solver_names
from ..errors import StudyError
from ..jobs import Limits
from ..loading import SolverSpec
from ..words import plural, visible
from .grid import Axes, key_path, written_out

#: The kinds of studies.
KINDS = ("svm", "feasibility")
#: More runs are a slip: the plan of so many takes a minute and a gigabyte.
MAX_RUNS = 200_000
#: The value of a parameter that is to be that of the reference optimum.
REFERENCE = "reference"
#: The way to a value in a study: names of tables and keys, and places in lists from 0.
KeyPath: TypeAlias = tuple[str | int, ...]
#: Characters of a label: it stands in tables and figures.
MAX_LABEL = 100


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must hold printable characters only")
    return text


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# Names and labels stand in file names, tables and lines of progress.
Name = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL), AfterValidator(_printable)]


@dataclass(frozen=True)
class StudyFile:
    """The file of a study, for messages that name file and line.

    It equals any other: two studies that say the same are the same, whatever they were read from.
    """

    where: str = field(default="study", compare=False)  # what messages call the file
    text: str = field(default="", compare=False)  # its content; empty if there is none
    # Name of a table -> for each entry of the study the entry of the file that it comes from;
    # they differ where the file has grids.
    origins: Mapping[str, Sequence[int]] = field(default_factory=dict, compare=False)
    # Label of a solver -> the path of its entry in the file.
    solvers: Mapping[str, KeyPath] = field(default_factory=dict, compare=False)

    def written(self, path: KeyPath) -> KeyPath:
        """The path in the file of a path in the study."""
        if len(path) < 2 or not isinstance(path[1], int):
            return path
        origins = self.origins.get(str(path[0]), ())
        return (path[0], origins[path[1]], *path[2:]) if path[1] < len(origins) else path

    def line(self, path: KeyPath) -> int | None:
        """The line of a path in the file, or of the nearest table around it."""
        from .toml import key_line

        return key_line(self.text, path)

    def at(self, path: KeyPath) -> str:
        """ "study.toml:12" for a path in the file; without a line if it has none."""
        line = self.line(path)
        return self.where if line is None else f"{self.where}:{line}"


def find(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that this is in any case, or None."""
    exact = {candidate.casefold(): candidate for candidate in candidates}
    return exact.get(name.casefold())


def is_foreign(name: str) -> bool:
    """Whether a solver's name means code from outside the project, not a registered solver."""
    return ":" in name


def resolve_solver_name(
    name: str, kind: str, *, folder: str | None = None, labels: Iterable[str] = ()
) -> str:
    """A registry name in its own spelling; a file's path made absolute; a module's name as is."""
    if is_foreign(name):
        return SolverSpec.parse(name, folder).checked().text
    registered = find(name, solver_names(kind))
    if registered is not None:
        return registered
    for other in KINDS:
        if find(name, solver_names(other)) is not None:
            raise StudyError(f"{name} is a solver for studies of the kind {other!r}, not {kind!r}")
    if name.endswith(".py"):
        raise StudyError(f"{name!r} is a file; name the class in it too, as in {name}:MySolver")
    names = dict.fromkeys([*labels, *solver_names(kind)])
    raise StudyError(f"unknown solver {name!r}{suggest(name, list(names))}")


def dataset_names() -> list[str]:
    """Names of the registered datasets and of the imported ones."""
    return [*(source.name for source in sources()), *names_in(datasets_folder())]


def registered_source(dataset: str) -> Source | None:
    """Where a registered dataset comes from, by its name in any case; None for any other."""
    name = dataset.casefold()
    return next((source for source in sources() if source.name.casefold() == name), None)


def is_users_file(dataset: str, folder: str | None) -> bool:
    """Whether the name of a dataset means a file, a folder or code of the user."""
    return dataset not in dataset_names() and is_own(dataset, folder)


def _checked_dataset(name: str, params: Mapping[str, Any], folder: str | None) -> str:
    """The name of a dataset in its own spelling; of the user's files no content is looked at."""
    source = registered_source(name)
    try:
        if source is not None:
            source.resolve(dict(params))
            return source.name
        if name in dataset_names():
            if params:
                raise DataError(f"{name}: was imported with its options; remove dataset_params")
        elif is_own(name, folder):
            find_own(name, params, folder)
        else:
            raise StudyError(unknown(name, dataset_names()))
    except DataError as error:
        at = () if source is None else ("dataset_params",)
        raise StudyError(str(error), at=at) from None
    return name


def _plain(value: Any) -> Any:
    """Numbers of numpy, wherever they stand, as Python's own."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return value.item()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value


class StudyPart(BaseModel):
    """A table of a study file: no unknown keys, no values of another type.

    Values that make none raise a StudyError, with a line for each mistake. What the attributes of
    parts are said to be is the text of docs/study-files.md.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**_plain(values))
        except ValidationError as error:
            from .toml import mistakes

            cls = type(self)
            lines = mistakes(error, StudyFile(cls.__name__), cls)
            raise StudyError(*map(visible, lines)) from None

    # Tables inside a study are checked with it, and reported with their paths in it.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class SolverEntry(StudyPart):
    """One configuration of a solver.

    Attributes
    ----------
    name : str
        A name that ``marginbench solvers`` lists, ``"file.py:Class"`` (from the folder of the study
        file), ``"package.module:Class"``, or a classifier or program from elsewhere, see
        docs/outside-solvers.md.
    label : str, the class
        Name in tables and options; must be unique.
    params : dict
        Parameters of the class; ``nu = "reference"`` takes the value at the reference optimum, in
        studies of SVM solvers.
    tune : dict
        Values of the class's own parameters to choose from, in studies of SVM solvers, see
        docs/tuning.md.
    seeds : int or None, all
        Run with no more than so many of the study's seeds, or of a task's instances.
    other_problem : bool
        Run a solver of SVM studies that always fits a bias, or never fits one, on other tasks too:
        it solves another problem there, marked as such, and its objective is not compared; see
        docs/outside-solvers.md.
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
        known = (getattr(self, name, "") for name in ("label", "dataset", "generator"))
        return tuple(filter(None, known))

    @property
    def facets(self) -> dict[str, Any]:
        """What it is, by name; the values in its tables have names of their own."""
        values = self.model_dump(exclude={"label"})
        facets = dict(item for table in self.axes.tables for item in values.pop(table).items())
        return facets | {k: v for k, v in values.items() if not isinstance(v, Mapping)}

    def completed(self, folder: str | None = None) -> Self:
        """The same with names in their own spelling and what the data decide filled in."""
        return self


#: Options of the user's own data that are lists.
LIST_OPTIONS = ("categorical", "drop", "missing_words")


class DatasetTask(TaskEntry):
    """A task on a dataset."""

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

    def completed(self, folder: str | None = None) -> Self:
        """With the dataset's name in its own spelling."""
        folder = self.folder if folder is None else folder
        dataset = _checked_dataset(self.dataset, self.dataset_params, folder)
        return self.model_copy(update={"dataset": dataset}).placed(folder)

    def placed(self, folder: str | None) -> Self:
        """The same with a relative path that begins in a folder; nothing is looked at."""
        if not is_users_file(self.dataset, folder):
            return self
        task = self.model_copy()
        task._folder = folder
        return task


class Stop(StudyPart):
    """What a run need not go beyond: a suboptimality relative to the task's reference optimum."""

    suboptimality: Positive


class Budget(StudyPart):
    """Limits of each run.

    Attributes
    ----------
    timeout : float
        Seconds of solving; data, compilation and evaluation do not count. In a study of feasibility
        methods a run ends by it with what it has.
    cpu_timeout : float or None
        CPU seconds of solving, all threads and child processes together: a limit that other work on
        the machine does not change. ``timeout`` holds as well; set it well above.
    kernel_evals : float or None
        Evaluations at which a run ends: kernel entries, inner products and matrix entries, counted
        as in :class:`marginbench.Counters` and looked at when a checkpoint is due; see
        docs/tuning.md.
    iterations : int or None
        Iterations at which a run ends, looked at when a checkpoint is due.
    stop : Stop or None
        ``{ suboptimality = 1e-3 }`` ends runs that are so near to the reference optimum.
    memory : float
        Megabytes (10^6 bytes) that a worker process, its children included, may hold resident.
    checkpoint_factor : float
        Checkpoints come at kernel evaluations that grow by this factor.
    epoch_checkpoints : bool
        And at the end of each epoch, for solvers that report it (BSGD and BSCA).
    compile_timeout : float
        Seconds for importing a solver, and for its warm-up.
    data_timeout : float
        Seconds for loading the data.
    evaluation_timeout : float
        Seconds for one evaluation.
    total_timeout : float or None, 2 ``timeout`` + ``compile_``, ``data_``, ``evaluation_timeout``
        Seconds of everything together.
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

    _file: StudyFile = PrivateAttr(default=StudyFile())
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
        """The same study with so many seeds, or with no more than so many instances of a task."""
        if "seeds" in type(self).model_fields:
            return self.model_copy(update={"seeds": seeds})
        fewer = []
        for task in self.tasks:
            most = min(getattr(task, "instances", seeds), seeds)
            fewer.append(task.model_copy(update={"instances": most}))
        return self.with_tasks(fewer)

    def n_seeds(self, task: Any, entry: SolverEntry) -> int:
        """With how many seeds a solver runs on a task, or on how many of its instances."""
        most: int = getattr(task, "instances", getattr(self, "seeds", 1))
        return min(most, entry.seeds or most)

    @property
    def most_seeds(self) -> int:
        """With how many seeds the solver runs that has most."""
        return max(self.n_seeds(task, entry) for task in self.tasks for entry in self.solvers)

    def seeds_of(
        self, task: Any, entry: SolverEntry, traits: Mapping[str, Any] = MappingProxyType({})
    ) -> Sequence[int]:
        """The seeds with which a solver runs on a task, by the traits of its class."""
        takes = getattr(task, "takes", None)
        if traits.get("takes", takes) != takes:
            return ()  # a method for other problems
        # What is tuned is split by the seed, and what is chosen may differ.
        varies = any(getattr(task, name, None) for name in ("folds", "tune")) or entry.tune
        once = entry.seeds is None and not varies and traits.get("deterministic", False)
        seeds = range(1 if once else self.n_seeds(task, entry))
        chosen = self._selection
        if chosen is None:
            return seeds
        return [seed for seed in seeds if (task.label, entry.label, seed) in chosen.runs]

    def runs(
        self, traits: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> set[tuple[str, str, int]]:
        """The labels of task and solver, and the seed, of every run; ``traits`` are by label."""
        return {
            (task.label, entry.label, seed)
            for task in self.tasks
            for entry in self.solvers
            for seed in self.seeds_of(task, entry, traits.get(entry.label, {}))
        }

    @model_validator(mode="after")
    def check_size(self) -> Self:
        """Check that there are not more runs than can be planned, without listing them."""
        tasks, solvers = self.tasks, self.solvers
        n_runs = len(tasks) * len(solvers)
        if n_runs <= MAX_RUNS:
            n_runs = sum(self.n_seeds(task, entry) for task in tasks for entry in solvers)
        if n_runs > MAX_RUNS:
            raise StudyError(
                f"{plural(len(tasks), 'task')} x {plural(len(solvers), 'solver')} with their seeds "
                f"make more than {MAX_RUNS} runs; give fewer seeds, shorten the lists of a grid or "
                "divide the study"
            )
        return self

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

    def message_prefix(self, solver: str, *keys: str) -> str:
        """The beginning of a message about a solver: file, line and key, as far as there are."""
        file = self._file
        if solver not in file.solvers:
            return f"solver {solver!r}: "
        path = (*file.solvers[solver], *keys)
        return f"{file.at(path)}: {key_path(path)}: "

    def check_entry(self, entry: SolverEntry) -> None:
        """Check what can be checked of a solver without importing its class."""

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
    def _write_out(cls, values: Any, info: ValidationInfo) -> Any:
        """Grids become entries, and entries without a label get one."""
        written, origins = written_out(values, cls.axes())
        if info.context is not None:
            info.context.update(origins)
        return written

    @classmethod
    def axes(cls) -> dict[str, Axes]:
        """Name of each table of entries -> where its lists stand for one entry each."""
        return {
            table: table_type(cls, table).axes for table in (*cls.task_tables, cls.solver_table)
        }

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        for tables in (self.task_tables, (self.solver_table,)):
            seen: set[str] = set()
            for table in tables:
                for number, entry in enumerate(getattr(self, table)):
                    if entry.label.casefold() in seen:
                        written = " and ".join(f"[[{t}]]" for t in tables if getattr(self, t))
                        raise StudyError(
                            f"two entries of {written} have the label {entry.label!r} (case does "
                            "not count); give each its own",
                            at=(table, number, "label"),
                        )
                    seen.add(entry.label.casefold())
        return self


def table_type(study: type[BaseModel], table: str) -> Any:
    """The type of the entries of a table of a study."""
    return get_args(study.model_fields[table].annotation)[0]
