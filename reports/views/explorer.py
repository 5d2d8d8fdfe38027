"""The explorer of a page: one Vega-Lite specification, and the medians that it can show.

A reader chooses task, value, cost, scales and solvers; ``templates/scripts/50_explorer.js`` writes
the choice into the specification, ``templates/explorer.json``, and draws it again with Vega.
Medians, spread and ends are those of :mod:`.statistics.curves`, as in the figures of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from ...harness.results.measures import Measure, counter_measures
from ...harness.words import visible
from .. import analysis, formatting
from ..analysis import once
from ..described import SvmTask
from ..drawing.canvas import COLOR_VARIABLES
from ..drawing.figures import changes
from ..frames import RUN, by_solver, n_planned
from ..measures import FURTHER
from ..results import Results
from ..statistics import curves
from .svm import references

#: Points of a curve at most, and in any case, so that the page of a large study stays small.
MOST_POINTS, FEWEST_POINTS = 60, 16
#: Numbers of all curves, where fewer points suffice.
MOST_NUMBERS = 300_000

# Formats of what a run spends; an error or an objective has another one.
_SPENT = ("count", "integer", "seconds")
# Columns of the statistics as the specification calls them.
_COLUMNS = {
    "cost": "x", "cost_low": "x_low", "cost_high": "x_high", "median": "y", "low": "low",
    "high": "high",
}  # fmt: skip
_LAST = 10**6  # the place of measures that no table has a place for
# How Vega writes the numbers of a format: on an axis, and to be read.
_FORMATS = {
    "percent": ("~%", ".2%"),
    "count": ("~s", ".3s"),
    "integer": ("~s", ","),
    "seconds": ("~g", ".3~g"),
    "scientific": ("~e", ".2e"),
}
_SHAPES = {
    "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "P": "cross", "<": "triangle-left", ">": "triangle-right",
    "X": "M-.4-1L0-.6 .4-1 1-.4 .6 0 1 .4 .4 1 0 .6-.4 1-1 .4-.6 0-1-.4z",
    "p": "M0-1L.95-.31 .59.81-.59.81-.95-.31z",
}  # fmt: skip


@once
def explorer_json(results: Results) -> Markup:
    """The data as JSON, safe inside a ``script`` element."""
    return htmlsafe_json_dumps(explorer_data(results), separators=(",", ":"), allow_nan=False)


@once
def explorer_data(results: Results) -> dict[str, Any] | None:
    """What the explorer shows; None if no run has a checkpoint to draw.

    ``tasks``, ``solvers``, ``costs``, ``values`` and ``series``: for each task, solver, cost and
    value (by their places) the medians.
    """
    traces = _with_further(results)
    costs, values = _axes(results, traces)
    series = _series(results, traces, list(costs), list(values))
    if not series:
        return None
    solvers = [
        {
            "label": visible(label),
            "color": f"var({COLOR_VARIABLES[style.color]})",
            "shape": _SHAPES.get(style.marker, "circle"),
        }
        for label, style in analysis.styles(results).items()
    ]
    return {
        "tasks": [_task(results, task.label, list(values)) for task in results.study.tasks],
        "solvers": solvers,
        "costs": [_axis(name, item) for name, item in costs.items()],
        "values": [_axis(name, item) for name, item in values.items()],
        "series": series,
    }


def _axes(results: Results, traces: pd.DataFrame) -> tuple[dict[str, Measure], dict[str, Measure]]:
    """What can be on the horizontal and on the vertical axis, by column, in reading order."""
    names = [
        name for name in analysis.measures(results) if name in traces and traces[name].notna().any()
    ]
    measures = {name: analysis.measures(results)[name] for name in names}
    measures = dict(sorted(measures.items(), key=lambda item: item[1].table or _LAST))
    spent = {n: item for n, item in measures.items() if item.format in _SPENT and not item.better}
    values = {name: item for name, item in measures.items() if name not in spent}
    values |= {n: item for n, item in FURTHER.items() if n in traces and traces[n].notna().any()}
    # A counter that nobody used is no axis, and a sum of one counter is that counter.
    unused = set(counter_measures()) - set(analysis.counters(results))
    used = {n: item for n, item in spent.items() if n not in unused and (traces[n] > 0).any()}
    first = {item.words: name for name, item in reversed(used.items())}
    costs = {name: item for name, item in used.items() if first[item.words] == name}
    # What is counted comes before times.
    return dict(sorted(costs.items(), key=lambda item: item[1].format == "seconds")), values


def _with_further(results: Results) -> pd.DataFrame:
    """The checkpoints with columns that no record declares a measure for."""
    traces = analysis.traces(results)
    if {"phi_lo", "phi_up"} <= set(traces):
        return traces.assign(margin_gap=traces["phi_up"] - traces["phi_lo"])
    if not {"primal", "dual"} <= set(traces):
        return traces
    gap = (traces["primal"] - traces["dual"]) / traces["primal"]
    extended = traces.assign(certified_gap=gap.where(traces["minimises"]))
    epochs = analysis.epochs(results).dropna(subset=["n_iter", "maintenance_fraction"])
    if epochs.empty:
        return extended
    key = [*RUN, "n_iter"]
    noted = epochs[[*key, "maintenance_fraction"]].drop_duplicates(key, keep="last")
    noted = extended[key].merge(noted, on=key, how="left")
    return extended.assign(maintenance_fraction=noted["maintenance_fraction"].to_numpy())


def _series(
    results: Results, traces: pd.DataFrame, costs: list[str], values: list[str]
) -> list[dict[str, Any]]:
    """The medians of every solver on every task, the lone ends, and where failed runs ended."""
    tasks = {task.label: index for index, task in enumerate(results.study.tasks)}
    solvers = {label: index for index, label in enumerate(analysis.styles(results))}
    n_curves = len(tasks) * len(solvers) * max(len(costs) * len(values), 1)
    n_points = min(max(MOST_NUMBERS // (4 * n_curves), FEWEST_POINTS), MOST_POINTS)
    planned, failed = n_planned(results.runs), traces[~traces["ok"]]
    series: list[dict[str, Any]] = []
    for index, cost in enumerate(costs):
        for names in curves.by_checkpoints(traces, cost, values):
            for group in curves.steps(traces, cost, names):
                columns = group.medians(n_points) or {}
                counts = {"n": len(group.starts), "of": planned[group.task, group.solver]}
                cell = {"task": tasks[group.task], "solver": solvers[group.solver], "cost": index}
                kind = "end" if group.only_ends else "median"
                for row, name in enumerate(names if columns else ()):
                    about = {"value": values.index(name), "kind": kind}
                    series.append(cell | about | _numbers(columns, row) | counts)
        for value, name in enumerate(() if failed.empty else values):
            # Their last checkpoints.
            last = curves.unfinished(failed, cost, name).drop_duplicates(RUN, keep="last")
            for task, solver, ends in by_solver(last):
                cell = {"task": tasks[task], "solver": solvers[solver], "cost": index}
                numbers = {"x": _rounded(ends["cost"]), "y": _rounded(ends["value"])}
                status = {"status": ends["status"].tolist()}
                series.append(cell | {"value": value, "kind": "failed"} | numbers | status)
    kinds = ("median", "end", "failed")
    return sorted(series, key=lambda one: (one["cost"], one["value"], kinds.index(one["kind"])))


def _numbers(columns: Mapping[str, npt.NDArray[Any]], row: int) -> dict[str, list[float | None]]:
    """The columns of a curve or point, without places where nothing changes before the last."""
    curve = {name: np.atleast_2d(values) for name, values in columns.items()}
    curve = {
        new: curve[name][row % len(curve[name])] for name, new in _COLUMNS.items() if name in curve
    }
    kept = changes(curve["y"], curve["low"], curve["high"])
    return {name: _rounded(values[kept]) for name, values in curve.items()}


def _rounded(values: Iterable[float]) -> list[float | None]:
    """Four significant digits; None for what is not finite."""
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values]


def _task(results: Results, label: str, values: Iterable[str]) -> dict[str, Any]:
    """A task with the line that is drawn for each value, where it has one."""
    lines: dict[str, tuple[float, str]] = {}
    if results.tasks_of(SvmTask):
        reference = references(results)[label]
        error = reference["reference_test_error"]
        lines = {
            "test_error": (error, f"reference optimum, {formatting.percent(error)}"),
            "suboptimality": (reference["resolution"], "resolution of the certificate"),
        }
        lines = {name: line for name, line in lines.items() if not math.isnan(line[0])}
    return {"label": visible(label), "lines": [lines.get(name) for name in values]}


def _axis(name: str, measure: Measure) -> dict[str, Any]:
    ticks, tooltip = _FORMATS.get(measure.format, ("~g", ".4~g"))
    return {"name": name, "words": measure.words, "ticks": ticks, "said": tooltip}
