"""The share of generated problems that feasibility methods solve within a cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..analysis import Analysis
from ..described import CellTask
from ..drawing.figures import draw_profile
from ..formatting import plural
from ..solved import solved
from ..statistics.profiles import data_profile
from ..view import Figure

_COSTS = ("n_iter", "matvecs")
# Of one method, or one problem, the table says it all.
_FEWEST = 2


_MARKS = (
    "Data profiles: an instance that was not solved counts as never; each problem counts once, its "
    "instances share the weight. A method that was skipped has fewer problems."
)


def solved_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """Data profiles of instances solved, where there are several methods and several problems."""
    cells = [cell.label for cell in analysis.tasks_of(CellTask)]
    runs = analysis.ask(solved).runs
    tried = runs[runs["task"].isin(cells) & ~runs["status"].isin(["skipped", "missing"])]
    if min(tried["task"].nunique(), tried["solver"].nunique()) < _FEWEST:
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
