"""Test errors of classes of images against iterations and seconds."""

from __future__ import annotations

import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import ImagesTask
from ..drawing.figures import Against, draw_medians
from ..frames import SPREAD, medians, of_task
from ..view import Figure

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
