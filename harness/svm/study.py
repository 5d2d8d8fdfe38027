"""Studies of SVM solvers: tasks x solvers x seeds."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from marginbench.harness.errors import StudyError
from marginbench.harness.selection import checked_dataset, source_of
from marginbench.harness.study import (
    MAX_SEEDS,
    Finite,
    Name,
    Positive,
    SolverEntry,
    StudyBase,
    StudyPart,
    TaskEntry,
)
from marginbench.harness.svm.work import Problem


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


class Task(TaskEntry):
    """One optimisation problem: a dataset, a kernel and C.

    ``label``, ``gamma`` and ``C`` may be left out of a TOML file; they are filled in from the
    dataset when the study is loaded. ``gamma`` stays None for a linear kernel. Without
    ``reference`` no optimum is computed, which saves its time where it cannot be had.
    """

    dataset: Name
    dataset_params: dict[str, Any] = Field(default_factory=dict)
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

    @property
    def names(self) -> tuple[str, ...]:
        return self.label, self.dataset

    @property
    def problem(self) -> Problem:
        """The task as workers get it."""
        assert self.C is not None
        return Problem(
            self.dataset,
            dict(self.dataset_params),
            self.kernel_description,
            self.C,
            self.fit_intercept,
        )

    def completed(self, where: str = "") -> Self:
        """The task with the dataset's own kernel width and C where it has none.

        Raises
        ------
        StudyError
            For an unknown dataset, or one that does not take the task's parameters.
        """
        dataset = checked_dataset(self.dataset, self.dataset_params, where)
        source = source_of(dataset)
        values: dict[str, Any] = {"dataset": dataset}
        if self.C is None:
            values["C"] = float(source.default_C)
        if self.gamma is None and self.kernel != "linear":
            values["gamma"] = float(source.default_gamma)
        return self.model_copy(update=values)


class Study(StudyBase):
    """Tasks x solvers x seeds, with budgets."""

    task_tables: ClassVar[tuple[str, ...]] = ("task",)
    solver_table: ClassVar[str] = "solver"

    kind: Literal["svm"] = "svm"
    seeds: Annotated[int, Field(ge=1, le=MAX_SEEDS)] = 3
    reference: ReferenceSettings = ReferenceSettings()
    task: Annotated[tuple[Task, ...], Field(min_length=1, strict=False)]
    solver: Annotated[tuple[SolverEntry, ...], Field(min_length=1, strict=False)]

    @classmethod
    def _labels(cls) -> dict[str, str]:
        return {"task": "dataset"}

    def with_seeds(self, seeds: int) -> Self:
        return self.model_copy(update={"seeds": seeds})

    def check_entry(self, entry: SolverEntry, where: str) -> None:
        for parameter, value in entry.params.items():
            if value == "reference" and parameter != "nu":
                raise StudyError(
                    f"{where}.params.{parameter} = 'reference': only nu can be taken from the "
                    "reference optimum"
                )
