"""What the template of a study's page is given: plain values, words and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from marginbench.reports.cells import Cell


@dataclass(frozen=True)
class LegendEntry:
    """A solver in the legend of a task."""

    label: str
    swatch: Markup
    note: str


@dataclass(frozen=True)
class PanelView:
    """A panel with its caption; ``svg`` is None when no run has anything to draw."""

    title: str
    svg: Markup | None
    note: str


@dataclass(frozen=True)
class ResultRow:
    """A solver's row of the results table."""

    solver: str
    runs: str
    failed: bool
    statuses: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class TaskView:
    """All that the page shows of one task."""

    label: str
    anchor: str
    problem: str
    legend: list[LegendEntry]
    panels: list[PanelView]
    marks: str
    rows: list[ResultRow]
    target: str
