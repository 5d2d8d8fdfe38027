"""What a page is made of: sections, whose figures and tables are made once for all renderers.

The page fills the template of each section with its data; an export writes the figures and tables
among these data, and the terminal and notebooks show some of the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from . import analysis
from .described import Task
from .drawing.canvas import Drawing, swatch
from .frames import of_task, other_problem_solvers, records
from .results import Results
from .statistics.summary import OTHER_PROBLEM
from .tables import Table


@dataclass(frozen=True)
class LegendEntry:
    """A solver in a legend."""

    label: str
    swatch: Markup
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of a page."""

    name: str  # its anchor on the page and the name of its files
    title: str
    drawing: Drawing | None  # with the frame that it shows; None when no run has anything to draw
    note: str = ""  # what stands below it
    legend: Sequence[LegendEntry] = ()
    link: str = ""  # the anchor that its caption leads to; empty for none


@dataclass(frozen=True)
class Section:
    """A section of a page."""

    anchor: str  # unique on the page: where links to it lead
    title: str
    template: str  # the file in ``templates/`` that makes HTML of the data
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def views(self) -> Iterator[Figure | Table]:
        """The figures and tables among its data, in their order."""
        return _views(self.data.values())


def _views(values: Any) -> Iterator[Figure | Table]:
    for value in values:
        if isinstance(value, Figure | Table):
            yield value
        elif isinstance(value, list | tuple):
            yield from _views(value)


def table_section(
    anchor: str, title: str, table: Table | None, words: str = "", folded: str = ""
) -> Section:
    """A section of a table below some words, folded under others if these are given."""
    return Section(anchor, title, "table.html", {"table": table, "words": words, "folded": folded})


#: Some figures of a task, or of the study where the task is empty, and what their marks mean.
Family = Callable[[Results, str], tuple[list[Figure], str]]


def figures_of(
    results: Results, prefix: str, families: Sequence[Family], task: str = ""
) -> tuple[list[Figure], str]:
    """The figures of all families with their legend and their full names, and their marks."""
    drawn, marks = [], []
    for family in families:
        figures, words = family(results, task)
        drawn += [replace(item, name=f"{prefix}-{item.name}") for item in figures]
        marks += [words] if figures else []
    return with_legend(results, drawn, task), " ".join(filter(None, marks))


def task_section(
    results: Results, task: Task, families: Sequence[Family], table: Table, **words: Any
) -> Section:
    """The section of a task: its problem in words, its figures, and its table with a note."""
    name = analysis.slugs(results)[task.label]
    figures, marks = figures_of(results, f"task-{name}", families, task.label)
    data = {"label": task.label, "decided": task.decided, "figures": figures, "marks": marks}
    return Section(f"results-{name}", task.label, "task.html", data | {"table": table, **words})


def with_legend(results: Results, figures: Sequence[Figure], task: str = "") -> list[Figure]:
    """The figures with a legend of the solvers of a task, or of those that one of them draws."""
    frames = [figure.drawing.data for figure in figures if figure.drawing is not None]
    drawn = dict.fromkeys(
        (str(label) for frame in frames for label in frame["solver"].unique()), ""
    )
    notes = _runs_notes(results, task) if task else drawn
    entries = [
        LegendEntry(label, swatch(style), notes[label])
        for label, style in analysis.styles(results).items()
        if label in notes
    ]
    return [replace(figure, legend=entries) for figure in figures]


def not_shown(results: Results, among: Iterable[str], shown: Iterable[str]) -> str:
    """Which of some solvers a figure leaves out; empty for none."""
    absent = set(among) - set(shown)
    names = ", ".join(label for label in analysis.styles(results) if label in absent)
    return f"Not shown: {names}; the tables say why." if absent else ""


def _runs_notes(results: Results, task: str) -> dict[str, str]:
    """Whether a solver solves another problem, and how many runs its lines stand on if not all."""
    others = other_problem_solvers(results.runs, task)
    notes = {}
    for row in records(of_task(analysis.counts(results), task)):
        if row["n_skipped"] < row["n_planned"]:
            words = [OTHER_PROBLEM] if row["solver"] in others else []
            if row["n_ok"] < row["n_planned"]:
                words.append(f"{row['n_ok']} of {row['n_planned']} runs")
            notes[row["solver"]] = ", ".join(words)
    return notes
