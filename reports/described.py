"""The study of a results folder, as its ``study.json`` describes it, and its tasks in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..harness.errors import UserError
from ..harness.results.description import read_description
from ..solvers.kernels import kernel_class, kernel_names
from . import formatting
from .errors import ReportError

#: How parameters of kernels are written, where that is not their name.
SYMBOLS = {"gamma": "\N{GREEK SMALL LETTER GAMMA}"}


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Task(_Described):
    """A task; ``dataset`` is empty where the problems are generated.

    ``decided`` is what was decided when the user's own data were read, a line each.
    """

    label: str
    dataset: str = ""
    dataset_params: dict[str, Any] = Field(default_factory=dict)
    citation: str = ""
    licence: str = ""
    decided: tuple[str, ...] = ()


class SvmTask(Task):
    """A soft-margin SVM to train: data, kernel and C."""

    kernel: dict[str, Any]
    C: float
    fit_intercept: bool = False
    reference: bool = True
    folds: int | None = None
    tune: dict[str, list[float]] = Field(default_factory=dict)


class CellTask(Task):
    """Generated feasibility problems of one size."""

    type: Literal["cell"]
    generator: str
    m: int
    n: int
    kappa: float
    tol: float
    published: dict[str, float | str] = Field(default_factory=dict)


class ImagesTask(Task):
    """Classes of images, each to be separated from the rest."""

    type: Literal["images"]
    n_train: int
    gammas: tuple[float, ...]
    stages: tuple[int, ...]


class Solver(_Described):
    """A configuration of a solver of the soft-margin SVM, or of a feasibility method."""

    label: str
    class_: str = Field("", alias="class")
    name: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    summary: str = ""
    citation: str = ""
    scalarization: str | None = None
    certificate: str | None = None
    instrumented: bool = True
    deterministic: bool = False
    judged_by: str = "model"
    takes: str = ""

    def traits_in(self, run: Mapping[str, Any]) -> dict[str, bool]:
        """The traits that a measure may need, in one of its runs: see ``Measure.needs``."""
        return {
            "instrumented": self.instrumented,
            "minimises": self.scalarization is not None and not run.get("other_problem"),
            "shows_model": run.get("judged_by", self.judged_by) == "model",
        }

    def facts(self, kind: str) -> dict[str, str]:
        """What a table of solvers of a kind of studies says of it, by heading."""
        if kind == "feasibility":
            return {"Takes": self.takes}
        return {
            "Minimises the objective": "yes" if self.scalarization else "no",
            "Certificate": self.certificate or "none",
            "Counts evaluations": "yes" if self.instrumented else "no",
            "Judged by": "" if self.judged_by == "model" else f"its {self.judged_by}",
        }


class PlannedRun(_Described):
    """One run that the study asks for."""

    key: str
    task: str
    solver: str
    seed: int


class Size(_Described):
    """How many runs there are when all of a study was run."""

    runs: int


class Study(_Described):
    """What all kinds of studies say of themselves.

    What is planned may be a part of the study: ``of`` says of how much.
    """

    kind: str
    marginbench: str = ""
    name: str
    title: str = ""
    description: str = ""
    source: str = ""
    budget: dict[str, Any] = Field(default_factory=dict)
    command: str = ""
    tasks: tuple[Task, ...]
    solvers: tuple[Solver, ...]
    planned: tuple[PlannedRun, ...]
    of: Size | None = None


class SvmStudy(Study):
    """A study of solvers of the soft-margin SVM."""

    kind: Literal["svm"]
    tuning: dict[str, Any] = Field(default_factory=dict)
    tasks: tuple[SvmTask, ...]


class FeasibilityStudy(Study):
    """A study of feasibility methods."""

    kind: Literal["feasibility"]
    tasks: tuple[Annotated[CellTask | ImagesTask, Field(discriminator="type")], ...]


_STUDIES: TypeAdapter[Study] = TypeAdapter(
    Annotated[SvmStudy | FeasibilityStudy, Field(discriminator="kind")]
)


def read_study(folder: Path) -> Study:
    """Read the study of a results folder."""
    path = folder / "study.json"
    try:
        description = read_description(folder)
    except UserError as error:
        raise ReportError(str(error)) from None
    if description is None:
        raise ReportError(
            f"{folder}: not a results folder (it has no study.json); give the folder that "
            "`marginbench run` wrote"
        )
    try:
        study = _STUDIES.validate_python(description)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = first["msg"] + (f" at {where}" if where else "")
        raise ReportError(f"{path}: not a study of this release ({problem})") from None
    for what, entries in (("task", study.tasks), ("solver", study.solvers)):
        known = {entry.label for entry in entries}
        for label in (getattr(run, what) for run in study.planned):
            if label not in known:
                raise ReportError(f"{path}: a planned run names the unknown {what} {label!r}")
    return study


@dataclass(frozen=True)
class KindWords:
    """What a kind of studies calls its tasks, its solvers, and the seeds of its runs."""

    task: str
    solver: str
    seed: str


@dataclass(frozen=True)
class Finding:
    """What the data say on one question.

    Attributes
    ----------
    question : str
        The target and the cost, or what is compared.
    answer : str
        Who won.
    detail : str
        By how much and how surely; empty where the answer says it.
    """

    question: str
    answer: str
    detail: str = ""

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        return f"{self.question}: {self.answer}{self.detail}."


#: The words of each kind of studies.
KIND_WORDS: Mapping[str, KindWords] = MappingProxyType(
    {
        "svm": KindWords("task", "solver", "seed"),
        "feasibility": KindWords("problem", "method", "instance"),
    }
)


def capitalised(words: str) -> str:
    """The words with a capital at their beginning; the others as they are."""
    return words[:1].upper() + words[1:]


def part_of_study(study: Study) -> list[str]:
    """A sentence where only a part of the study was ever run, else none."""
    if study.of is None or len(study.planned) >= study.of.runs:
        return []
    return [f"Only a part of the study was run: {len(study.planned)} of {study.of.runs} runs."]


def kernel_words(task: SvmTask, total: float | None = None) -> list[str]:
    """The kernel, its parameters, C and the bias of a task, as parts of a list.

    With ``total``, that of tasks which share this C n and not C.
    """
    name = str(task.kernel.get("name", ""))
    # Records may name a kernel that this version does not have.
    words = kernel_class(name).words if name in kernel_names() else f"{name} kernel"
    settings = {key: value for key, value in task.kernel.items() if key != "name"}
    settings |= {"C": task.C} if total is None else {"C n": total}
    values = [
        f"{SYMBOLS.get(key, key)} tuned over {', '.join(map(value_text, task.tune[key]))}"
        if key in task.tune
        else f"{SYMBOLS.get(key, key)} = {value_text(value)}"
        for key, value in settings.items()
        # A width that follows from the data is not known where they could not be loaded.
        if value is not None
    ]
    bias = "with bias" if task.fit_intercept else "no bias"
    return [words, *values, bias]


def parameters(values: Mapping[str, Any]) -> str:
    """Parameters as "name = value", separated by commas."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in values.items())


def value_text(value: Any) -> str:
    """The value of a parameter as it reads in tables: a text as it is, else as JSON."""
    if isinstance(value, float):
        return formatting.plain(value)
    return value if isinstance(value, str) else json.dumps(value)


def with_unit(name: str, value: Any) -> str:
    """A limit of the budget with the unit that its name implies."""
    if isinstance(value, Mapping):
        return parameters(value)
    unit = "s" if name.endswith("timeout") else "MB" if name == "memory" else ""
    return f"{value_text(value)}{formatting.THIN}{unit}" if unit else value_text(value)
