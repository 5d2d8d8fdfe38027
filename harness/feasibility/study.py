"""Studies of feasibility methods: generated problems, and image classes one against the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from marginbench.data_loaders import suggest
from marginbench.harness.errors import StudyError
from marginbench.harness.selection import split_names
from marginbench.harness.study import Budget, Name, Positive, StudyPart, fill_in_labels

MAX_INSTANCES = 10_000
Count = Annotated[int, Field(ge=1)]


class Cell(StudyPart):
    """Instances of one size from one generator, solved by the methods on columns.

    Attributes
    ----------
    generator : {"ldfp", "lap"}
        Separable problems, or problems that nothing separates.
    m, n : int
        Dimension and number of columns.
    kappa : float
        As in :func:`marginbench.data_loaders.ldfp` and :func:`marginbench.data_loaders.lap`.
    tol : float
        The methods' own: the length of a convex combination that passes for 0. On separable
        problems it must be far below the margin, or it ends runs before they separate; 0 never
        does.
    instances : int
        How many; instance i has the seed i.
    published : dict
        Label of a method -> mean seconds that the source of the study reports, or its word for a
        failure.
    """

    label: Name
    generator: Literal["ldfp", "lap"]
    m: Count
    n: Annotated[int, Field(ge=2)]
    kappa: Positive = 1.0
    tol: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    instances: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 20
    published: dict[str, float | str] = Field(default_factory=dict)


class Images(StudyPart):
    """A data set of several classes, each against the rest, solved by the kernel methods.

    Attributes
    ----------
    dataset, dataset_params
        A registered data set with more than two classes.
    n_train, n_validation : int
        Points drawn from the training part by the instance's seed, apart from each other, the same
        number of every class. The test part is used whole.
    gammas : list of float
        Widths of the Gaussian kernel; the one with the least validation error is taken, for each
        method by itself.
    tuning_iterations : int
        Iterations with which the widths are compared.
    stages : list of int
        Iterations for each class after which the predictor is scored.
    unit_norm : bool
        Whether points are scaled to unit length.
    """

    label: Name
    dataset: Name
    dataset_params: dict[str, Any] = Field(default_factory=dict)
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
    instances: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 1


class Method(StudyPart):
    """One configuration of a feasibility method."""

    name: Name
    label: Name = ""
    params: dict[str, Any] = Field(default_factory=dict)


class FeasibilityStudy(StudyPart):
    """Cells x methods on columns x instances, and images x kernel methods x instances.

    Attributes
    ----------
    source : str
        Where the published numbers come from.
    budget : Budget
        ``timeout``: seconds of iterations of each run, after which it ends with what it has.
    """

    kind: Literal["feasibility"]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    title: str = ""
    description: str = ""
    source: str = ""
    budget: Budget = Budget()
    cell: Annotated[tuple[Cell, ...], Field(strict=False)] = ()
    images: Annotated[tuple[Images, ...], Field(strict=False)] = ()
    method: Annotated[tuple[Method, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="before")
    @classmethod
    def _labels(cls, values: Any) -> Any:
        return fill_in_labels(values, {"method": "name"})

    @model_validator(mode="after")
    def _check(self) -> FeasibilityStudy:
        if not self.parts:
            raise StudyError("a feasibility study needs at least one [[cell]] or [[images]]")
        for section, entries in (("cell", self.parts), ("method", self.method)):
            labels = [entry.label.casefold() for entry in entries]
            for label in labels:
                if labels.count(label) > 1:
                    raise StudyError(
                        f"two entries of [[{section}]] have the label {label!r}; give each its own"
                    )
        return self

    @property
    def parts(self) -> tuple[Cell | Images, ...]:
        """Everything that methods are run on."""
        return (*self.cell, *self.images)


def select_parts(
    study: FeasibilityStudy,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
) -> FeasibilityStudy:
    """The same study with only some cells and methods, or fewer instances.

    Parameters
    ----------
    study : FeasibilityStudy
    datasets : sequence of str, optional
        Labels of cells or images, generators or data sets.
    solvers : sequence of str, optional
        Labels or names of methods.
    seeds : int, optional
        The most instances of a cell.
    timeout : float, optional
        Seconds of iterations per run.

    Raises
    ------
    StudyError
        For a name that the study does not have, or a number out of range.
    """
    changes: dict[str, Any] = {}
    parts = study.parts
    if datasets is not None:
        parts = tuple(_chosen("dataset", parts, datasets, _part_names))
    if seeds is not None:
        if not 1 <= seeds <= MAX_INSTANCES:
            raise StudyError(f"the number of seeds must be from 1 to {MAX_INSTANCES}, not {seeds}")
        parts = tuple(
            part.model_copy(update={"instances": min(part.instances, seeds)}) for part in parts
        )
    changes["cell"] = tuple(part for part in parts if isinstance(part, Cell))
    changes["images"] = tuple(part for part in parts if isinstance(part, Images))
    if solvers is not None:
        changes["method"] = tuple(
            _chosen("solver", study.method, solvers, lambda method: (method.label, method.name))
        )
    if timeout is not None:
        if not 0 < timeout < float("inf"):
            raise StudyError(f"the timeout must be a number of seconds > 0, not {timeout:g}")
        changes["budget"] = study.budget.model_copy(update={"timeout": float(timeout)})
    return study.model_copy(update=changes)


def _part_names(part: Cell | Images) -> tuple[str, str]:
    return part.label, part.generator if isinstance(part, Cell) else part.dataset


def _chosen(what: str, entries: Sequence[Any], names: Iterable[str], names_of: Any) -> list[Any]:
    chosen: list[Any] = []
    for name in split_names(names, [entry.label for entry in entries]):
        key = name.casefold()
        found = [entry for entry in entries if key == entry.label.casefold()] or [
            entry for entry in entries if key in map(str.casefold, names_of(entry))
        ]
        if not found:
            known = list(dict.fromkeys(text for entry in entries for text in names_of(entry)))
            raise StudyError(f"unknown {what} {name!r} in this study{suggest(name, known)}")
        chosen.extend(entry for entry in found if entry not in chosen)
    if not chosen:
        raise StudyError(f"no {what} is selected")
    return chosen
