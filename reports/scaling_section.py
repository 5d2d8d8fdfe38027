"""The section on how time and errors grow with the number of training points, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from marginbench.reports import formatting, scaling, wording
from marginbench.reports.analysis import Analysis
from marginbench.reports.cells import Cell
from marginbench.reports.figures import SolverStyle, solver_styles, swatch
from marginbench.reports.frames import records
from marginbench.reports.scaling_figure import PANELS, draw_scaling
from marginbench.reports.views import LegendEntry, PanelView

_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class ScalingRow:
    """A solver's row of the table of slopes; the cells by measure of ``scaling.FITTED``."""

    solver: str
    sizes: Cell
    runs: str
    incomplete: bool
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class FamilyView:
    """All that the page shows of one family of tasks."""

    label: str
    anchor: str
    legend: list[LegendEntry]
    panels: list[PanelView]
    rows: list[ScalingRow]
    left_out: str


def views(analysis: Analysis) -> list[FamilyView]:
    """The families of a study; none where no tasks differ only in their size."""
    styles = solver_styles([solver.label for solver in analysis.results.study.solvers])
    return [
        _view(analysis, place, group, styles)
        for place, (_, group) in enumerate(analysis.families.groupby("family", sort=False))
    ]


def _view(
    analysis: Analysis, family: int, tasks: pd.DataFrame, styles: Mapping[str, SolverStyle]
) -> FamilyView:
    anchor = f"scaling-{family}"
    members = analysis.scaling_runs
    members = members[members["family"] == family]
    medians = scaling.scaling_medians(members)
    described = {task.label: task for task in analysis.results.study.tasks}
    first = described[str(tasks["task"].iloc[0])]
    label = ", ".join([first.dataset, *wording.kernel_words(first)])
    drawn = set(medians["solver"])
    return FamilyView(
        label=label,
        anchor=anchor,
        legend=[
            LegendEntry(solver, Markup(swatch(style, f"{anchor}-key{place}")), "")
            for place, (solver, style) in enumerate(styles.items())
            if solver in drawn
        ],
        panels=[
            _panel(measure, medians, styles, f"{anchor}-panel{place}", label)
            for place, measure in enumerate(PANELS)
        ],
        rows=_rows(scaling.slopes(members), members),
        left_out=_left_out_sentence(scaling.left_out(members)),
    )


def _panel(
    measure: str,
    medians: pd.DataFrame,
    styles: Mapping[str, SolverStyle],
    prefix: str,
    label: str,
) -> PanelView:
    svg = draw_scaling(measure, medians, styles, prefix, label)
    shown = set(medians.loc[medians["measure"] == measure, "solver"])
    absent = [solver for solver in styles if solver in set(medians["solver"]) - shown]
    return PanelView(
        title=f"{PANELS[measure][0]} against training points",
        svg=None if svg is None else Markup(svg),
        note=f"Not shown: {', '.join(absent)} (nothing counted)." if absent else "",
    )


def _rows(slopes: pd.DataFrame, members: pd.DataFrame) -> list[ScalingRow]:
    rows = []
    for solver, group in slopes.groupby("solver", sort=False):
        cells = {row["measure"]: row for row in records(group)}
        runs = members[(members["solver"] == solver) & (members["status"] != "skipped")]
        if runs.empty:
            continue
        rows.append(
            ScalingRow(
                solver=str(solver),
                sizes=_sizes_cell(cells["cpu_s"]),
                runs=f"{int(runs['ok'].sum())} / {len(runs)}",
                incomplete=not bool(runs["ok"].all()),
                cells={measure: slope_cell(row) for measure, row in cells.items()},
            )
        )
    return rows


def _sizes_cell(row: Mapping[str, Any]) -> Cell:
    if not row["n_sizes"]:
        return Cell(formatting.DASH, absent=True)
    ends = [formatting.integer(row[name]) for name in ("smallest", "largest")]
    words = ends[0] if row["n_sizes"] == 1 else f"{ends[0]} to {ends[1]}"
    return Cell(words, note=formatting.plural(row["n_sizes"], "size"))


def slope_cell(row: Mapping[str, Any]) -> Cell:
    """The cell of one row of :func:`marginbench.reports.scaling.slopes`."""
    if math.isnan(row["slope"]):
        n = formatting.plural(int(row["n_sizes"]), "size")
        return Cell(f"{n}, {scaling.FEWEST_SIZES} needed", absent=True)
    return Cell(
        value=_number(row["slope"]),
        range=f"{_number(row['low'])} to {_number(row['high'])}",
        note=f"{row['degrees_of_freedom']:.0f}{formatting.FIXED}d.f.",
    )


def _number(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", _MINUS)


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
