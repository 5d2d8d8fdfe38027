"""Studies: what to run, as typed objects that a TOML file, the command line or Python builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from marginbench.harness.errors import StudyError

MAX_SEEDS = 10_000


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must hold printable characters only")
    return text


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# Labels stand in file names, tables and lines of progress: printable, no control characters.
Name = Annotated[str, Field(min_length=1), AfterValidator(_printable)]


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
        Seconds for building and warming up a solver, for getting the data, and for one evaluation.
        They are there to catch what hangs.
    """

    timeout: Positive = 60.0
    memory: Positive = 4096.0
    checkpoint_factor: Annotated[float, Field(ge=1.01, allow_inf_nan=False)] = 1.19
    epoch_checkpoints: bool = False
    compile_timeout: Positive = 60.0
    data_timeout: Positive = 1800.0
    evaluation_timeout: Positive = 600.0


class ReferenceSettings(StudyPart):
    """What is asked of the reference optimum of each task.

    Attributes
    ----------
    tol : float
        Largest certified duality gap, relative to the primal value.
    timeout : float
        Seconds for computing it.
    """

    tol: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    timeout: Positive = 1800.0


class Task(StudyPart):
    """One optimisation problem: a dataset, a kernel and C.

    ``label``, ``gamma`` and ``C`` may be left out of a TOML file; they are filled in from the
    dataset when the study is loaded. ``gamma`` stays None for a linear kernel. Without
    ``reference`` no optimum is computed, which saves its time where it cannot be had.
    """

    dataset: Name
    label: Name = ""
    dataset_params: dict[str, Any] = {}
    kernel: Literal["rbf", "linear", "poly"] = "rbf"
    gamma: Positive | None = None
    degree: Annotated[int, Field(ge=1)] = 3
    coef0: Finite = 0.0
    C: Positive | None = None
    fit_intercept: bool = False
    reference: bool = True

    @property
    def kernel_description(self) -> dict[str, Any]:
        """The kernel's name and the parameters that it has."""
        if self.kernel == "linear":
            return {"name": "linear"}
        if self.kernel == "rbf":
            return {"name": "rbf", "gamma": self.gamma}
        return {
            "name": "poly",
            "degree": self.degree,
            "gamma": self.gamma,
            "coef0": self.coef0,
        }

    @property
    def kernel_parameters(self) -> dict[str, Any]:
        """The kernel as an estimator's parameters: ``kernel``, ``gamma`` and so on."""
        description = self.kernel_description
        return {"kernel": description.pop("name"), **description}


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
        optimum.
    seeds : int or None
        Run with no more than so many of the study's seeds.
    """

    name: Name
    label: Name = ""
    params: dict[str, Any] = {}
    seeds: Annotated[int, Field(ge=1)] | None = None

    @property
    def class_name(self) -> str:
        return self.name.rsplit(":", 1)[-1]


class Study(StudyPart):
    """Tasks x solvers x seeds, with budgets."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    title: str = ""
    description: str = ""
    seeds: Annotated[int, Field(ge=1, le=MAX_SEEDS)] = 3
    budget: Budget = Budget()
    reference: ReferenceSettings = ReferenceSettings()
    task: Annotated[tuple[Task, ...], Field(min_length=1, strict=False)]
    solver: Annotated[tuple[SolverEntry, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="before")
    @classmethod
    def _fill_in_labels(cls, values: Any) -> Any:
        return fill_in_labels(values, {"task": "dataset", "solver": "name"})

    @model_validator(mode="after")
    def _check_labels(self) -> Study:
        for section, entries in (("task", self.task), ("solver", self.solver)):
            seen: set[str] = set()
            for entry in entries:
                if entry.label.casefold() in seen:
                    raise StudyError(
                        f"two entries of [[{section}]] have the label {entry.label!r}; "
                        "give each its own"
                    )
                seen.add(entry.label.casefold())
        return self


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
            stem = base.rsplit(":", 1)[-1]
            label, number = stem, 1
            while label.casefold() in taken:
                number += 1
                label = f"{stem}-{number}"
            taken.add(label.casefold())
            entry = {**entry, "label": label}
        labelled.append(entry)
    return labelled


def _as_dict(entry: Any) -> Any:
    return entry.model_dump(exclude_unset=True) if isinstance(entry, BaseModel) else entry
