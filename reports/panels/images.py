"""Test errors of classes of images against iterations and seconds."""

from __future__ import annotations

import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import ImagesTask
from ..drawing.figures import Against, draw_medians
from ..frames import SPREAD, medians, of_task
from . import Panels, PanelView

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


class Images(Panels):
    """The test error at the stages of a task of images."""

    kinds = ("feasibility",)
    place = 20

    def views(self, analysis: Analysis, task: str) -> list[PanelView]:
        """Against iterations and against seconds; nothing for generated problems."""
        if task not in {item.label for item in analysis.tasks_of(ImagesTask)}:
            return []
        measure = analysis.measures["test_error"]
        mine = of_task(analysis.traces, task)
        drawn = {
            name: draw_medians(_stages(mine, name), measure, against, analysis.styles, task)
            for name, against in _AXES.items()
        }
        return [
            PanelView(name, f"{task}: test error against {_AXES[name].words}", drawing)
            for name, drawing in drawn.items()
            if drawing is not None
        ]

    def marks(self, analysis: Analysis, task: str) -> str:
        """What lines and bands are."""
        return f"Lines are medians, bands {SPREAD}."


def _stages(traces: pd.DataFrame, name: str) -> pd.DataFrame:
    """The errors at each stage, at the median of a column over the runs."""
    keys = ["solver", "n_iter"]
    places = medians(traces, keys, name).rename(columns={"median": "x"})
    found = medians(traces, keys, "test_error").merge(places[[*keys, "x"]], on=keys)
    return found.sort_values("x", kind="stable")
