"""Studies of feasibility methods: generated problems, and image classes one against the rest."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from ..errors import StudyError
from .grid import Axes
from .model import (
    LIST_OPTIONS,
    MAX_RUNS,
    DatasetTask,
    Label,
    Positive,
    SolverEntry,
    StudyBase,
    TaskEntry,
)

Count = Annotated[int, Field(ge=1)]


class Cell(TaskEntry):
    """Instances of one size from one generator, solved by the methods on columns.

    Attributes
    ----------
    label : str
        Name in tables and options; must be unique.
    generator : {"ldfp", "lap"}
        ``"ldfp"``: separable problems; ``"lap"``: problems that nothing separates.
    m : int
        Dimension.
    n : int
        Number of columns.
    kappa : float
        As in :func:`marginbench.data_loaders.ldfp` and :func:`marginbench.data_loaders.lap`.
    tol : float
        The methods' own: the length of a convex combination that passes for 0, which bounds the
        margin. On separable problems it must be far below the margin, or it ends runs before they
        separate; 0 never does.
    instances : int
        How many; instance i has the seed i.
    published : dict
        Label of a method -> mean seconds that the source of the study reports, or its word for a
        failure.
    """

    label: Label
    generator: Literal["ldfp", "lap"]
    m: Count
    n: Annotated[int, Field(ge=2)]
    kappa: Positive = 1.0
    tol: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    instances: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 20
    published: dict[str, float | str] = Field(default_factory=dict)

    #: The table of the study file, what its methods take, and which of their parameters it decides.
    table: ClassVar[str] = "cell"
    takes: ClassVar[str] = "columns"
    decides: ClassVar[tuple[str, ...]] = ("tol",)
    axes: ClassVar[Axes] = Axes(keys=("generator", "m", "n", "kappa", "tol"))


class Images(DatasetTask):
    """A data set of several classes, each against the rest, solved by the kernel methods.

    Attributes
    ----------
    label : str
        Name in tables and options; must be unique.
    dataset : str
        A data set with classes, a registered one or your own, as in a task.
    dataset_params : dict
        Its parameters.
    n_train : int
        Points drawn from the training part by the instance's seed, the same number of every class:
        of three classes 999 for 1000. The test part is used whole.
    n_validation : int
        Points drawn likewise, apart from those.
    gammas : list of float
        Widths of the Gaussian kernel; the one with the least validation error is taken, for each
        method by itself.
    tuning_iterations : int
        Iterations with which the widths are compared.
    stages : list of int
        Iterations for each class after which the predictor is scored, in ascending order.
    unit_norm : bool
        Whether points are scaled to unit length.
    instances : int
        How many; instance i has the seed i.
    """

    label: Label
    n_train: Count = 10_000
    n_validation: Count = 2_000
    gammas: Annotated[tuple[Positive, ...], Field(min_length=1, strict=False)]
    tuning_iterations: Count = 32
    stages: Annotated[tuple[Count, ...], Field(min_length=1, strict=False)] = (
        10,
        32,
        100,
        320,
        1000,
    )
    unit_norm: bool = True
    instances: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 1

    @field_validator("gammas", "stages")
    @classmethod
    def _check_lists(cls, values: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        if len(set(values)) < len(values):
            raise ValueError("a value stands twice in the list")
        if info.field_name == "stages" and list(values) != sorted(values):
            raise ValueError("numbers of iterations must ascend")
        return values

    table: ClassVar[str] = "images"
    takes: ClassVar[str] = "kernel"
    decides: ClassVar[tuple[str, ...]] = ("kernel", "gamma", "max_iter")
    axes: ClassVar[Axes] = Axes(
        keys=("dataset", "n_train", "n_validation", "tuning_iterations", "unit_norm"),
        tables=("dataset_params",),
        lists=LIST_OPTIONS,
    )


class FeasibilityStudy(StudyBase):
    """Cells x methods on columns x instances, and images x kernel methods x instances.

    Attributes
    ----------
    source : str
        Where the published numbers come from. All other keys but ``seeds``, ``[reference]``,
        ``[tuning]``, and the budget's ``kernel_evals``, ``iterations`` and ``stop`` are those
        above; ``instances`` sets how often a method runs.
    """

    task_tables: ClassVar[tuple[str, ...]] = ("cell", "images")
    solver_table: ClassVar[str] = "method"

    kind: Literal["feasibility"] = "feasibility"
    source: str = ""
    cell: Annotated[tuple[Cell, ...], Field(strict=False)] = ()
    images: Annotated[tuple[Images, ...], Field(strict=False)] = ()
    method: Annotated[tuple[SolverEntry, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _check_tasks(self) -> Self:
        if not self.tasks:
            raise StudyError("a feasibility study needs at least one [[cell]] or [[images]]")
        for name in self.budget.rules:
            raise StudyError(
                f"budget.{name} is for studies of SVM solvers; limit feasibility methods by "
                "timeout, or by max_iter in params"
            )
        return self

    def check_entry(self, entry: SolverEntry) -> None:
        for key in ("tune", "other_problem"):
            if getattr(entry, key):
                raise StudyError("is for solvers of SVM studies; remove it", at=(key,))
