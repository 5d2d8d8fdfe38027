"""The panels of a page, one module for each family of them.

A family defined in a module of this package is shown with every task, or with every study, that it
has something to draw for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from markupsafe import Markup

from ..analysis import Analysis
from ..discovery import members
from ..drawing.canvas import GREY, Drawing, swatch
from ..formatting import plural
from ..frames import of_task, other_problem_solvers, records
from ..statistics.summary import OTHER_PROBLEM


@dataclass(frozen=True)
class PanelView:
    """A panel with its caption.

    Attributes
    ----------
    name : str
        Unique in its gallery: for links, ids and files.
    title : str
        The caption.
    drawing : Drawing or None
        None when no run has anything to draw.
    note : str
        What stands below it.
    """

    name: str
    title: str
    drawing: Drawing | None
    note: str = ""


@dataclass(frozen=True)
class LegendEntry:
    """A solver in a legend."""

    label: str
    swatch: Markup
    note: str = ""


@dataclass(frozen=True)
class Gallery:
    """Panels with their legend, and what their marks mean.

    Attributes
    ----------
    prefix : str
        Unique on the page; with the name of a panel it is the panel's anchor.
    legend : list of LegendEntry
    panels : list of PanelView
    marks : str
    """

    prefix: str
    legend: list[LegendEntry]
    panels: list[PanelView]
    marks: str = ""


class Panels:
    """A family of panels.

    Attributes
    ----------
    kinds : tuple of str
        Names of the kinds of studies that it is for.
    place : int
        Families are in ascending order.
    scope : {"task", "study"}
        Whether it shows one task, or all tasks of a study together.
    """

    kinds: ClassVar[tuple[str, ...]]
    place: ClassVar[int]
    scope: ClassVar[Literal["task", "study"]] = "task"

    def views(self, analysis: Analysis, task: str) -> list[PanelView]:
        """The panels of a task.

        Parameters
        ----------
        analysis : Analysis
        task : str
            The task's label; empty for a family that shows the study.

        Returns
        -------
        list of PanelView
            Empty where it has nothing to do with the task.
        """
        raise NotImplementedError

    def marks(self, analysis: Analysis, task: str) -> str:
        """What the marks of its panels mean; shown below them."""
        return ""


@cache
def families(kind: str) -> tuple[Panels, ...]:
    """The families of panels of a kind of studies, in their order."""
    found = [item for item in members(__name__, Panels) if kind in item.kinds]
    return tuple(sorted(found, key=lambda family: family.place))


def gallery(analysis: Analysis, prefix: str, task: str = "") -> Gallery | None:
    """The panels of a task, or those of the study as a whole; None if there are none.

    Parameters
    ----------
    analysis : Analysis
    prefix : str
        Unique on the page, for the ids of the SVG.
    task : str
        The task's label; empty for the study.
    """
    scope = "task" if task else "study"
    shown = [family for family in families(analysis.kind) if family.scope == scope]
    views = {family: family.views(analysis, task) for family in shown}
    if not any(views.values()):
        return None
    marks = [family.marks(analysis, task) for family in shown if views[family]]
    marks.append(analysis.coloring)
    return Gallery(
        prefix,
        legend=legend(analysis, _runs_notes(analysis, task)),
        panels=[view for family in shown for view in views[family]],
        marks=" ".join(filter(None, marks)),
    )


def legend(analysis: Analysis, notes: Mapping[str, str]) -> list[LegendEntry]:
    """The solvers that a mapping has a note for, often an empty one, in the study's order.

    Those that are grey come last, in one entry.
    """
    styles = analysis.styles
    shown = [label for label in styles if label in notes]
    grey = [label for label in shown if styles[label].muted]
    named = [label for label in shown if label not in grey or len(grey) == 1]
    named.sort(key=lambda label: styles[label].muted)
    entries = [LegendEntry(label, swatch(styles[label]), notes[label]) for label in named]
    if len(grey) > 1:
        noted = "; ".join(f"{label}: {notes[label]}" for label in grey if notes[label])
        entries.append(LegendEntry(plural(len(grey), "other"), swatch(GREY), noted))
    return entries


def _runs_notes(analysis: Analysis, task: str) -> dict[str, str]:
    """Whether a solver solves another problem, and how many runs its lines stand on if not all."""
    if not task:
        return dict.fromkeys(analysis.styles, "")
    counts = of_task(analysis.counts, task)
    shown = counts[counts["n_ok"] + counts["n_failed"] + counts["n_missing"] > 0]
    others = dict.fromkeys(other_problem_solvers(analysis.runs, task), OTHER_PROBLEM)
    return {
        row["solver"]: ", ".join(filter(None, (others.get(row["solver"], ""), _runs_note(row))))
        for row in records(shown)
    }


def _runs_note(row: Mapping[str, Any]) -> str:
    if row["n_ok"] == row["n_planned"]:
        return ""
    return f"{row['n_ok']} of {row['n_planned']} runs"
