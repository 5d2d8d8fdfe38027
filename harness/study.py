"""What studies of all kinds have in common, as typed objects."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from marginbench.harness.errors import StudyError
from marginbench.harness.jobs import Limits
from marginbench.harness.words import visible

MAX_SEEDS = 10_000


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


class StudyPart(BaseModel):
    """A table of a study file: no unknown keys, no values of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Budget(StudyPart):
    """Limits of each run.

    Attributes
    ----------
    timeout : float
        Seconds of solving; data, compilation and evaluation do not count.
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
    memory: Positive = 4096.0
    checkpoint_factor: Annotated[float, Field(ge=1.01, allow_inf_nan=False)] = 1.19
    epoch_checkpoints: bool = False
    compile_timeout: Positive = 60.0
    data_timeout: Positive = 1800.0
    evaluation_timeout: Positive = 600.0
    total_timeout: Positive | None = None

    def limits(self) -> dict[str, Any]:
        """All of it by name, with the total limit that holds."""
        total = self.total_timeout
        if total is None:
            fixed = self.compile_timeout + self.data_timeout + self.evaluation_timeout
            total = fixed + 2 * self.timeout
        return {**self.model_dump(), "total_timeout": total}


def run_limits(budget: Budget, grace: float = 0.0) -> Limits:
    """What the parent enforces of a budget.

    Parameters
    ----------
    budget : Budget
    grace : float
        Seconds that a run which ends itself at its timeout is given beyond it.
    """
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
    )


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
    seeds : int or None
        Run with no more than so many of the study's seeds, or of a task's instances.
    """

    name: Name
    label: Label = ""
    params: dict[str, Any] = {}
    seeds: Annotated[int, Field(ge=1)] | None = None

    @property
    def class_name(self) -> str:
        return self.name.rsplit(":", 1)[-1]


class TaskEntry(StudyPart):
    """What solvers are run on: one table of a study file, with a label of its own."""

    label: Label = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What the command line may call it."""
        return (self.label,)

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

    def includes(self, task: str, solver: str, seed: int) -> bool:
        """Whether a run is of this study, by the labels of its task and solver and its seed."""
        tasks = {entry.label: entry for entry in self.tasks}
        solvers = {entry.label: entry for entry in self.solvers}
        if task not in tasks or solver not in solvers:
            return False
        return seed < self.n_seeds(tasks[task], solvers[solver])

    def fits(self, task: Any, described: Mapping[str, Any]) -> bool:
        """Whether a solver, as ``study.json`` describes it, is run on a task."""
        return True

    def check_entry(self, entry: SolverEntry, where: str) -> None:
        """Check what can be checked of a solver without importing its class.

        Raises
        ------
        StudyError
            The message begins with ``where``.
        """

    @model_validator(mode="before")
    @classmethod
    def _fill_in_labels(cls, values: Any) -> Any:
        return fill_in_labels(values, {cls.solver_table: "name", **cls._labels()})

    @classmethod
    def _labels(cls) -> dict[str, str]:
        """Tables of tasks whose labels may be left out -> the key that they are made of."""
        return {}

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        tasks = " and ".join(f"[[{table}]]" for table in self.task_tables if getattr(self, table))
        for tables, entries in ((tasks, self.tasks), (f"[[{self.solver_table}]]", self.solvers)):
            seen: set[str] = set()
            for entry in entries:
                if entry.label.casefold() in seen:
                    raise StudyError(
                        f"two entries of {tables} have the label {entry.label!r}; give each its own"
                    )
                seen.add(entry.label.casefold())
        return self


def table_type(study: type[BaseModel], table: str) -> type[BaseModel]:
    """The type of the entries of a table of a study."""
    entry: type[BaseModel] = get_args(study.model_fields[table].annotation)[0]
    return entry


def fill_in_labels(values: Any, defaults: Mapping[str, str]) -> Any:
    """A study's values with a label for each entry that has none, made of another of its keys.

    Parameters
    ----------
    values : dict
        As read; anything else is handed back.
    defaults : mapping
        Section -> the key that labels are made of.
    """
    if not isinstance(values, dict):
        return values
    filled = dict(values)
    for section, default in defaults.items():
        entries = filled.get(section)
        if isinstance(entries, list | tuple):
            filled[section] = _labelled(entries, default)
    return filled


def _labelled(entries: Sequence[Any], default: str) -> list[Any]:
    """The entries with the missing labels filled in; a second "SMO" becomes "SMO-2"."""
    given = [entry if isinstance(entry, dict) else _as_dict(entry) for entry in entries]
    taken = {
        str(entry["label"]).casefold()
        for entry in given
        if isinstance(entry, dict) and entry.get("label")
    }
    labelled = []
    for entry in given:
        base = entry.get(default) if isinstance(entry, dict) else None
        if isinstance(base, str) and base and "label" not in entry:
            stem = label_of(base)
            label, number = stem, 1
            while label.casefold() in taken:
                number += 1
                label = f"{stem}-{number}"
            taken.add(label.casefold())
            entry = {**entry, "label": label}
        labelled.append(entry)
    return labelled


def label_of(name: str) -> str:
    """The label of what has a name: the last part of a path, and of "file.py:name" the name."""
    if name.startswith("like:"):  # "like:susy" must never be shown as "susy"
        return name
    return PurePath(name.rpartition(":")[2]).name or name


def _as_dict(entry: Any) -> Any:
    return entry.model_dump(exclude_unset=True) if isinstance(entry, BaseModel) else entry
