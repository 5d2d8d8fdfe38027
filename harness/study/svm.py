"""Studies of SVM solvers: tasks x solvers x seeds."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ...solvers.kernels import Kernel, kernel_class, kernel_names
from ..errors import SolverError, StudyError
from ..evaluation.svm import Fold, Problem, shown_kernel
from ..loading import SolverSpec
from .grid import Axes
from .model import (
    LIST_OPTIONS,
    MAX_RUNS,
    REFERENCE,
    DatasetTask,
    Finite,
    Positive,
    SolverEntry,
    StudyBase,
    StudyPart,
    is_foreign,
    registered_source,
)

MAX_FOLDS = 1000
#: Parameters of kernels that every estimator with a kernel takes.
_SHARED = ("gamma", "degree", "coef0")


class ReferenceSettings(StudyPart):
    """What is asked of the reference optimum of each task.

    Attributes
    ----------
    tol : float
        Largest certified duality gap of the reference optimum, relative to the primal value.
    timeout : float
        Seconds for computing it.
    """

    tol: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    timeout: Positive = 1800.0


class Tuning(StudyPart):
    """How the values of ``tune`` are chosen, the same for every solver; see docs/tuning.md.

    Attributes
    ----------
    method : {"grid", "halving"}
        Try all configurations, or halve their number while the resource doubles.
    resource : {"points", "kernel_evals"}
        What doubles: the points that a trial is fitted to, or its evaluations.
    validation : float or None, 0.25 without ``folds``
        Fraction of the training part that configurations are scored on.
    folds : int or None
        Score them by cross-validation on the training part instead.
    seed : int
        Of the splits; together with the seed of the run.
    seconds : float or None
        Seconds inside the solver that all trials of a run may take together.
    kernel_evals : float or None
        Evaluations that all trials of a run may take together.
    """

    method: Literal["grid", "halving"] = "grid"
    resource: Literal["points", "kernel_evals"] = "points"
    validation: Annotated[float, Field(gt=0, lt=1)] | None = None
    folds: Annotated[int, Field(ge=2)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    seconds: Positive | None = None
    kernel_evals: Positive | None = None

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if self.folds is not None and self.validation is not None:
            raise StudyError(
                "tuning: validation and folds exclude each other; remove one",
                at=("tuning", "validation"),
            )
        return self


class Task(DatasetTask):
    """One optimisation problem: a dataset, a kernel and C.

    Attributes
    ----------
    dataset : str
        A name that ``marginbench data list`` shows, or your own data, see docs/your-data.md: a path
        from the folder of the study file, or ``"file.py:name"``.
    dataset_params : dict
        Parameters of the dataset, such as ``{ n_train = 1000 }``, or options of your own data.
    label : str, the dataset
        Name in tables and options; must be unique.
    kernel : str
        ``"rbf"``, ``"linear"``, ``"poly"``, ``"laplacian"``, or your own, ``"file.py:Name"``, see
        docs/adding-a-solver.md.
    gamma : float or None, that of the dataset
        Kernel width or scale. For your own data it is computed once they are loaded: 1 / (d var(X))
        of the training part.
    degree : int
        Of the polynomial kernel.
    coef0 : float
        Of the polynomial kernel.
    kernel_params : dict
        Parameters of a kernel besides these.
    C : float or None, that of the dataset
        Weight of the summed hinge loss; 1 for your own data.
    fit_intercept : bool
        Whether the problem has an unregularised bias.
    reference : bool
        ``false`` if the reference optimum would take too long.
    folds : int or None
        Each seed is a fold of a cross-validation on the training part, see
        [above](#cross-validation).
    tune : dict
        Values of C and of the kernel's parameters that each solver chooses from, see
        docs/tuning.md. Such a task has no reference optimum.
    """

    kernel: str = "rbf"
    gamma: Positive | None = None
    degree: Annotated[int, Field(ge=1)] = 3
    coef0: Finite = 0.0
    kernel_params: dict[str, Any] = Field(default_factory=dict)
    C: Positive | None = None
    fit_intercept: bool = False
    reference: bool = True
    folds: Annotated[int, Field(ge=2, le=MAX_FOLDS)] | None = None
    tune: dict[str, Annotated[list[float], Field(min_length=1)]] = Field(default_factory=dict)
    _kernel_code: str = PrivateAttr(default="")

    axes: ClassVar[Axes] = Axes(
        keys=("dataset", "kernel", *_SHARED, "C", "fit_intercept"),
        tables=("dataset_params", "kernel_params"),
        stem="dataset",
        lists=LIST_OPTIONS,
    )

    @field_validator("kernel")
    @classmethod
    def _check_kernel(cls, name: str) -> str:
        # Only the kernel that is named: some import numba, which takes a second.
        if is_foreign(name) or (name in kernel_names() and kernel_class(name).evaluates):
            return name
        names = [each for each in kernel_names() if kernel_class(each).evaluates]
        raise PydanticCustomError(
            "literal_error", "Input should be {expected}", {"expected": ", ".join(names)}
        )

    @field_validator(*_SHARED)
    @classmethod
    def _check_shared(cls, value: Any, info: ValidationInfo) -> Any:
        """The kernel checks a parameter that it has; of others it takes the default alone."""
        kernel, name = _kernel_so_far(info), str(info.field_name)
        is_set = value != cls.model_fields[name].default
        if is_set and is_foreign(info.data.get("kernel") or ""):
            raise ValueError("give the parameters of a kernel of your own in kernel_params")
        if is_set and kernel is not None:
            kernel.of({name: value})
        return value

    @field_validator("kernel_params")
    @classmethod
    def _check_own(cls, values: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        kernel = _kernel_so_far(info)
        for name in values if kernel is not None else ():
            if name in _SHARED:
                raise ValueError(f"{name} is a key of the task itself")
        if kernel is not None:
            kernel.of(values)
        return values

    @field_validator("tune")
    @classmethod
    def _check_tune(cls, values: dict[str, list[float]], info: ValidationInfo) -> Any:
        kernel = _kernel_so_far(info)
        tunable = ["C", *(name for name in _SHARED if kernel and name in kernel.parameters())]
        for name, choices in values.items():
            if name not in tunable:
                raise ValueError(f"{name} cannot be tuned; give values of {', '.join(tunable)}")
            if name == "degree":
                choices[:] = [int(value) if value.is_integer() else value for value in choices]
            if name != "C" and kernel is not None:
                for value in choices:
                    kernel.of({name: value})
            elif any(not 0 < value < math.inf for value in choices):
                raise ValueError("C must be greater than 0")
            if info.data.get(name) not in (None, cls.model_fields[name].default):
                raise ValueError(f"{name} is tuned and given as well; remove one")
        return values

    @property
    def why_no_reference(self) -> str:
        """Why the task has no reference optimum by its own account; empty if it has one."""
        if self.tune:
            return "its " + " and ".join(self.tune) + " are tuned: each solver has its own problem"
        return "" if self.reference else "the task has reference = false"

    @property
    def kernel_description(self) -> dict[str, Any]:
        """The kernel's name and the parameters that it has."""
        if is_foreign(self.kernel):
            return {"name": self.kernel, **self.kernel_params}
        cls = kernel_class(self.kernel)
        shared = {name: self._value(name) for name in _SHARED}
        params = cls.of(self.kernel_params).describe()
        return {"name": self.kernel} | {
            name: shared.get(name, params[name]) for name in cls.parameters()
        }

    @property
    def kernel_parameters(self) -> dict[str, Any]:
        """The kernel as an estimator's parameters: ``kernel``, ``gamma`` and so on."""
        description = shown_kernel(self.kernel_description)
        foreign = is_foreign(self.kernel)
        shared = {k: description.pop(k) for k in _SHARED if k in description and not foreign}
        return {"kernel": description["name"] if len(description) == 1 else description, **shared}

    def _value(self, name: str) -> Any:
        """A key of the problem, or the first of the values that it is chosen from."""
        return self.tune[name][0] if name in self.tune else getattr(self, name)

    @property
    def facets(self) -> dict[str, Any]:
        """Of the kernel's parameters only those that it has."""
        kernel = shown_kernel(self.kernel_description)
        name = kernel.pop("name")
        return {
            "dataset": self.dataset,
            **self.dataset_params,
            "kernel": name,
            **{key: value for key, value in kernel.items() if key not in self.tune},
            **({} if self.C is None else {"C": self.C}),
            "fit_intercept": self.fit_intercept,
            **({} if self.folds is None else {"folds": self.folds}),
        }

    def problem(self, seed: int) -> Problem:
        """The task as workers get it, with the first values of what is tuned."""
        C = self._value("C")
        assert C is not None
        return Problem(
            self.dataset,
            dict(self.dataset_params),
            self.kernel_description,
            C,
            self.fit_intercept,
            self.folder,
            fold=None if self.folds is None else Fold.of_seed(self.folds, seed),
            kernel_code=self._kernel_code,
        )

    def completed(self, folder: str | None = None) -> Self:
        """The task with the dataset's own kernel width and C where it has none."""
        task = super().completed(folder)
        source = registered_source(task.dataset)
        values: dict[str, Any] = {}
        if task.C is None and "C" not in task.tune:
            values["C"] = 1.0 if source is None else float(source.default_C)
        if source is not None and task._lacks_gamma and source.default_gamma is not None:
            values["gamma"] = float(source.default_gamma)
        if is_foreign(task.kernel):
            try:
                values["kernel"] = SolverSpec.parse(task.kernel, folder).checked().text
            except SolverError as error:
                raise StudyError(str(error), at=("kernel",)) from None
        return task.model_copy(update=values)

    def with_kernel(self, gamma: float | None, code: str) -> Self:
        """The task with this width if it lacks one, and the hash of the code of its own kernel."""
        task = self.model_copy(update={"gamma": gamma} if self._lacks_gamma else {})
        task._kernel_code = code
        return task

    @property
    def _lacks_gamma(self) -> bool:
        if self.gamma is not None or "gamma" in self.tune or is_foreign(self.kernel):
            return False
        return "gamma" in kernel_class(self.kernel).parameters()


def _kernel_so_far(info: ValidationInfo) -> type[Kernel] | None:
    """The kernel of a task whose fields are being checked; None if there is none of that name."""
    name = info.data.get("kernel")
    return None if name is None or is_foreign(name) else kernel_class(name)


class Study(StudyBase):
    """Tasks x solvers x seeds, with budgets.

    Attributes
    ----------
    name : str
        Letters, digits, ``.``, ``_`` and ``-``; names the results folder.
    kind : str
        ``"feasibility"`` for feasibility methods, see [above](#feasibility-methods).
    title : str
        Text for the report.
    description : str
        Text for the report.
    cost : str
        Text for the report: what running the study takes.
    seeds : int
        Runs of each solver on each task, with the seeds 0, 1, ...
    """

    task_tables: ClassVar[tuple[str, ...]] = ("task",)
    solver_table: ClassVar[str] = "solver"

    kind: Literal["svm"] = "svm"
    seeds: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 3
    reference: ReferenceSettings = ReferenceSettings()
    tuning: Tuning = Tuning()
    task: Annotated[tuple[Task, ...], Field(min_length=1, strict=False)]
    solver: Annotated[tuple[SolverEntry, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _check_resource(self) -> Self:
        if self.tuning.resource == "kernel_evals" and self.budget.kernel_evals is None:
            raise StudyError(
                "tuning.resource = 'kernel_evals' doubles up to kernel_evals of [budget]; set it",
                at=("tuning", "resource"),
            )
        return self

    def check_entry(self, entry: SolverEntry) -> None:
        for name in entry.tune.keys() & entry.params.keys():
            raise StudyError("is in params and in tune; remove one", at=("tune", name))
        for name, value in entry.params.items():
            if value == REFERENCE and name != "nu":
                message = "only nu can be 'reference', that of the reference optimum"
                raise StudyError(message, at=("params", name))
