"""The tables of a study file that all kinds have, and the types of their values."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..errors import StudyError
from ..words import visible
from .grid import Axes
from .places import Places

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
            from .mistakes import mistakes

            cls = type(self)
            lines = mistakes(error, Places(cls.__name__), cls)
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
        found: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in self.axes.tables:
                found = {**value, **found}
            elif value is not None and name != "label" and not isinstance(value, Mapping):
                found[name] = value
        return found

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
