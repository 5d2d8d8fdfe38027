"""How time, evaluations and errors grow with the number of training points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from .. import analysis, described, formatting
from ..described import SvmTask
from ..drawing.figures import Against, draw_medians
from ..formatting import slug, unused
from ..frames import SPREAD, records
from ..measures import OF_SCALING
from ..results import Results
from ..statistics import scaling
from ..tables import NONE, Cell, Heading, Table
from ..view import Figure, Section, legend

_DRAWN = ("cpu_s", "evaluations", "test_error", "train_error")
_POINTS = Against("training points", lambda n: f"at {formatting.integer(n)} points")


def scaling_section(results: Results) -> Iterator[Section]:
    """Families of tasks that differ in their size: medians against it, and slopes.

    Where tasks differ only in their number of training points, or share C n.
    """
    found = scaling.families(results.tasks_of(SvmTask), results.runs)
    shown, names = [], list[str]()
    for _, tasks in found.groupby("family", sort=False):
        names.append(unused(slug(_first(results, tasks).dataset), names))
        shown.append(_family(results, f"scaling-{names[-1]}", tasks))
    if shown:
        marks = f"Lines join medians over the runs at each n, bands are {SPREAD}."
        data = {"marks": f"{marks} {analysis.coloring(results)}".strip(), "families": shown}
        yield Section("scaling", "Scaling", "scaling.html", data)


def _first(results: Results, tasks: pd.DataFrame) -> SvmTask:
    """The first task of a family."""
    described = {task.label: task for task in results.tasks_of(SvmTask)}
    return described[str(tasks["task"].iloc[0])]


def _family(
    results: Results, anchor: str, tasks: pd.DataFrame
) -> tuple[str, str, list[Figure], Table, str]:
    """The anchor and title of a family, its figures and table, and which runs are left out."""
    members = scaling.scaling_runs(results.runs, tasks)
    medians = scaling.scaling_medians(members).rename(columns={"n": "x"})
    first = _first(results, tasks)
    total = float(tasks["total"].iloc[0])
    words = described.kernel_words(first, None if math.isnan(total) else total)
    label = ", ".join([first.dataset, *words])
    entries = legend(results, dict.fromkeys(medians["solver"], ""))
    figures = [
        replace(_panel(results, name, medians, label), name=f"{anchor}-{name}", legend=entries)
        for name in _DRAWN
    ]
    table = replace(_table(results, label, members), name=anchor)
    return anchor, label, figures, table, _left_out_sentence(scaling.left_out(members))


def _panel(results: Results, name: str, medians: pd.DataFrame, label: str) -> Figure:
    measure, mine = analysis.measures(results)[name], medians[medians["measure"] == name]
    without = set(medians["solver"]) - set(mine["solver"])
    absent = ", ".join(solver for solver in analysis.styles(results) if solver in without)
    return Figure(
        name,
        title=f"{described.capitalised(measure.words)} against {_POINTS.words}",
        drawing=draw_medians(mine, measure, _POINTS, analysis.styles(results), label),
        note=f"Not shown: {absent} (nothing counted)." if absent else "",
    )


def _table(results: Results, label: str, members: pd.DataFrame) -> Table:
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
    measures = {**analysis.measures(results), **OF_SCALING}
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
