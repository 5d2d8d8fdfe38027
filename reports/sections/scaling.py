"""How time, evaluations and errors grow with the number of training points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ...harness.results.measures import Measure
from .. import formatting, wording
from ..analysis import Analysis
from ..described import SvmTask
from ..drawing.figures import Against, draw_medians
from ..frames import SPREAD, records
from ..naming import slug, unused
from ..panels import Gallery, PanelView, legend
from ..statistics import scaling
from ..tables import NONE, Cell, Heading, Table
from . import Section

_DRAWN = ("cpu_s", "evaluations", "test_error", "train_error")
_PER_ITERATION = Measure("CPU time per iteration", "CPU seconds per iteration", "seconds")
_ITERATIONS = Measure("Number of iterations", "iterations", "count")
_POINTS = Against("training points", lambda n: f"at {formatting.integer(n)} points")


@dataclass(frozen=True)
class FamilyView:
    """All that the page shows of one family of tasks."""

    label: str
    anchor: str
    gallery: Gallery
    table: Table
    left_out: str


class Scaling(Section):
    """Families of tasks that differ in their size: medians against it, and slopes."""

    anchor, title, place = "scaling", "Scaling", 20
    template = "scaling.html"
    kinds = ("svm",)

    def applies(self, analysis: Analysis) -> bool:
        """Where tasks differ only in their number of training points, or share C n."""
        return not analysis.ask(_families).empty

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The families."""
        groups = [tasks for _, tasks in analysis.ask(_families).groupby("family", sort=False)]
        names: list[str] = []
        for tasks in groups:
            names.append(unused(slug(_first(analysis, tasks).dataset), names))
        views = zip(names, groups, strict=True)
        return {"families": [_view(analysis, name, tasks) for name, tasks in views]}


def _families(analysis: Analysis) -> pd.DataFrame:
    return scaling.families(analysis.tasks_of(SvmTask), analysis.runs)


def _first(analysis: Analysis, tasks: pd.DataFrame) -> SvmTask:
    """The first task of a family."""
    described = {task.label: task for task in analysis.tasks_of(SvmTask)}
    return described[str(tasks["task"].iloc[0])]


def _view(analysis: Analysis, name: str, tasks: pd.DataFrame) -> FamilyView:
    anchor = f"scaling-{name}"
    members = scaling.scaling_runs(analysis.runs, tasks)
    medians = scaling.scaling_medians(members).rename(columns={"n": "x"})
    first = _first(analysis, tasks)
    total = float(tasks["total"].iloc[0])
    words = wording.kernel_words(first, None if math.isnan(total) else total)
    label = ", ".join([first.dataset, *words])
    drawn = [solver for solver in analysis.styles if solver in set(medians["solver"])]
    marks = f"Lines join medians over the runs at each n, bands are {SPREAD}."
    panels = [_panel(analysis, name, medians, label) for name in _DRAWN]
    return FamilyView(
        label=label,
        anchor=anchor,
        gallery=Gallery(
            anchor,
            legend=legend(analysis, dict.fromkeys(drawn, "")),
            panels=panels,
            marks=" ".join([marks, analysis.coloring]).strip(),
        ),
        table=replace(_table(analysis, label, members), name=name),
        left_out=_left_out_sentence(scaling.left_out(members)),
    )


def _panel(analysis: Analysis, name: str, medians: pd.DataFrame, label: str) -> PanelView:
    measure, mine = analysis.measures[name], medians[medians["measure"] == name]
    without = set(medians["solver"]) - set(mine["solver"])
    absent = ", ".join(solver for solver in analysis.styles if solver in without)
    return PanelView(
        name,
        title=f"{wording.capitalised(measure.words)} against {_POINTS.words}",
        drawing=draw_medians(mine, measure, _POINTS, analysis.styles, label),
        note=f"Not shown: {absent} (nothing counted)." if absent else "",
    )


def _table(analysis: Analysis, label: str, members: pd.DataFrame) -> Table:
    rows = []
    for solver, group in scaling.slopes(members).groupby("solver", sort=False):
        fitted = {row["measure"]: row for row in records(group)}
        runs = members[(members["solver"] == solver) & (members["status"] != "skipped")]
        if runs.empty:
            continue
        rows.append(
            [
                Cell(str(solver)),
                Cell(f"{runs['ok'].sum()} / {len(runs)}", incomplete=not bool(runs["ok"].all())),
                _sizes_cell(fitted["cpu_s"]),
                *(slope_cell(fitted[name]) for name in scaling.FITTED),
            ]
        )
    measures = {**analysis.measures, "cpu_s_per_iteration": _PER_ITERATION, "n_iter": _ITERATIONS}
    slopes = [f"Slope of {measures[name].words}" for name in scaling.FITTED]
    headings = [
        Heading("Solver", term="solver"),
        Heading("Runs", "number", term="runs"),
        Heading("Sizes n", "number", term="sizes"),
        *(Heading(title, "number", term="slope") for title in slopes),
    ]
    return Table(
        f"Slopes on {label}",
        headings,
        rows,
        caption="Exponents of n with their 95 % intervals from the t distribution.",
        numbers=scaling.slopes(members),
    )


def _sizes_cell(row: Mapping[str, Any]) -> Cell:
    if not row["n_sizes"]:
        return NONE
    ends = [formatting.integer(row[name]) for name in ("smallest", "largest")]
    words = ends[0] if row["n_sizes"] == 1 else f"{ends[0]} to {ends[1]}"
    return Cell(words, note=formatting.plural(row["n_sizes"], "size"), number=row["n_sizes"])


def slope_cell(row: Mapping[str, Any]) -> Cell:
    """The cell of one row of :func:`marginbench.reports.statistics.scaling.slopes`."""
    if math.isnan(row["slope"]):
        n = formatting.plural(int(row["n_sizes"]), "size")
        return Cell(f"{n}, {scaling.FEWEST_SIZES} needed", absent=True)
    return Cell(
        value=_two_decimals(row["slope"]),
        range=f"{_two_decimals(row['low'])} to {_two_decimals(row['high'])}",
        note=f"{row['degrees_of_freedom']:.0f}{formatting.FIXED}d.f.",
        number=row["slope"],
    )


def _two_decimals(value: float) -> str:
    return formatting.decimals(value, 2)


def _left_out_sentence(left_out: pd.DataFrame) -> str:
    """Which runs are in no figure and no slope."""
    left_out = left_out[left_out["status"] != "skipped"]  # said elsewhere, and no loss of time
    if left_out.empty:
        return ""
    listed = "; ".join(
        f"{row['solver']} at {formatting.integer(row['n'])} points "
        f"({row['count']} of {formatting.plural(row['n_planned'], 'run')}: {row['status']})"
        for row in records(left_out)
    )
    return (
        f"Without a result, and so in no median and no slope: {listed}. Where those are the slow "
        "ones, what is left looks faster than the method is."
    )
