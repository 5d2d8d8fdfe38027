"""The figures of studies of feasibility methods."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import CellTask, ImagesTask
from ..drawing.figures import Against, draw_medians, draw_profile
from ..formatting import plural
from ..frames import SPREAD, medians, of_task
from ..solved import solved
from ..statistics.profiles import data_profile
from ..view import Figure

# ---- kappa: what methods need, where generated problems differ in it

_FEWEST = 3
_MEASURES = {
    "cpu_s": "Median CPU seconds",
    "n_iter": "Median iterations",
    "matvecs": "Median products with A or its transpose",
}
_KAPPA = Against("κ", lambda kappa: f"at κ = {kappa:g}", linear=True)


def kappa_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """CPU seconds, iterations and products where there are at least three values of kappa."""
    kappas = {cell.label: cell.kappa for cell in analysis.tasks_of(CellTask)}
    if len(set(kappas.values())) < _FEWEST:
        return [], ""
    table = analysis.ask(solved).table
    cells = table[table["task"].isin(kappas) & (table["n"] > 0)]
    cells = cells.assign(x=cells["task"].map(kappas)).sort_values("x", kind="stable")
    figures = []
    for name, title in _MEASURES.items():
        mine = cells[cells["measure"] == name]
        drawing = draw_medians(mine, analysis.measures[name], _KAPPA, analysis.styles)
        figures += [] if drawing is None else [Figure(name, f"{title} against κ", drawing)]
    return figures, "Medians; bands from the least to the largest value."


# ---- images: test errors of classes against iterations and seconds

_AXES = {
    "n_iter": Against(
        "iterations for each class", lambda n: f"after {formatting.integer(n)} iterations"
    ),
    "wall_s": Against(
        "seconds, without the kernel matrix",
        lambda seconds: f"after {formatting.seconds(seconds)}",
        format="seconds",
    ),
}


def image_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """The test error of images against iterations and against seconds."""
    if task not in {item.label for item in analysis.tasks_of(ImagesTask)}:
        return [], ""
    measure = analysis.measures["test_error"]
    mine = of_task(analysis.traces, task)
    figures = []
    for name, against in _AXES.items():
        drawn = draw_medians(_stages(mine, name), measure, against, analysis.styles, task)
        if drawn is not None:
            figures.append(Figure(name, f"{task}: test error against {against.words}", drawn))
    return figures, f"Lines are medians, bands {SPREAD}."


def _stages(traces: pd.DataFrame, name: str) -> pd.DataFrame:
    """The errors at each stage, at the median of a column over the runs."""
    keys = ["solver", "n_iter"]
    places = medians(traces, keys, name).rename(columns={"median": "x"})
    found = medians(traces, keys, "test_error").merge(places[[*keys, "x"]], on=keys)
    return found.sort_values("x", kind="stable")


# ---- profiles: the share of generated problems solved within a cost

_COSTS = ("n_iter", "matvecs")
# Of one method, or one problem, the table says it all.
_FEWEST_TO_COMPARE = 2


_MARKS = (
    "Data profiles: an instance that was not solved counts as never; each problem counts once, its "
    "instances share the weight. A method that was skipped has fewer problems."
)


def solved_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """Data profiles of instances solved, where there are several methods and several problems."""
    cells = [cell.label for cell in analysis.tasks_of(CellTask)]
    runs = analysis.ask(solved).runs
    tried = runs[runs["task"].isin(cells) & ~runs["status"].isin(["skipped", "missing"])]
    if min(tried["task"].nunique(), tried["solver"].nunique()) < _FEWEST_TO_COMPARE:
        return [], ""
    return [_view(analysis, tried, cost) for cost in _COSTS], _MARKS


def _view(analysis: Analysis, tried: pd.DataFrame, cost: str) -> Figure:
    values = tried[cost].where(tried["solved"], np.inf)
    problems = tried[["task", "solver", "seed"]].assign(target=0, value=values)
    problems = problems[values.notna()]
    known = set(problems["solver"])
    shown = {label: style for label, style in analysis.styles.items() if label in known}
    words = analysis.measures[cost].words
    title = f"Instances solved, against {words}"
    parts = []
    for label in shown:
        mine = problems[problems["solver"] == label]
        n_solved = int(np.isfinite(mine["value"]).sum())
        parts.append(f"{label} {n_solved} of {plural(len(mine), 'instance')}")
    return Figure(
        f"solved-{cost.replace('_', '-')}",
        title,
        draw_profile(data_profile(problems), shown, title, words),
        note=f"Solved: {', '.join(parts)}." if parts else "",
    )
