"""All tasks beside each other: one small figure of each, on the same axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import SvmTask
from ..drawing.figures import Scale, draw_small, shared_scale
from ..frames import first_known, of_task
from ..panels import Gallery, PanelView, legend
from ..panels.traces import reference_of, trace_curves
from ..wording import capitalised
from . import Section

# A study of one task shows it whole.
_FEWEST_TASKS = 2
_VALUES = ("suboptimality", "test_error")
# Far from the optimum solvers differ by powers of ten that say nothing of where they end.
_HIGHEST = {"suboptimality": 100.0}


@dataclass(frozen=True)
class Row:
    """The small figures of one value, one for each task in the order of the study.

    Attributes
    ----------
    title : str
    note : str
        What limits them, and who is not in them.
    gallery : Gallery
    """

    title: str
    note: str
    gallery: Gallery


class Overview(Section):
    """The medians of every task on shared axes: the suboptimality, and the test error."""

    anchor, title, place = "glance", "At a glance", 6
    template = "overview.html"
    kinds = ("svm",)

    def applies(self, analysis: Analysis) -> bool:
        """Where there are tasks to compare, and something to draw of one."""
        tasks = analysis.tasks_of(SvmTask)
        return len(tasks) >= _FEWEST_TASKS and any(analysis.ask(_row, value) for value in _VALUES)

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """A row of figures for each value, with one legend for both."""
        rows = [row for value in _VALUES if (row := analysis.ask(_row, value)) is not None]
        shown = {label for value in _VALUES for label in _solvers(_medians(analysis, value))}
        entries = legend(analysis, {label: "" for label in analysis.styles if label in shown})
        return {
            "rows": rows,
            "legend": entries,
            "marks": " ".join(filter(None, [_words(analysis), analysis.coloring])),
        }


def _cost(analysis: Analysis) -> tuple[str, str, str]:
    """The cost that the figures share: its column, its words, its unit."""
    if not analysis.counters:
        return "cpu_s", "CPU seconds", "s"
    return "evaluations", f"{analysis.measures['evaluations'].words} in units of n²", "n²"


def _words(analysis: Analysis) -> str:
    """What the figures have in common."""
    squares = "n is the number of training points of the task. " if analysis.counters else ""
    return (
        "Each line is a median over the runs that ended as planned, up to the end of the longest. "
        f"All figures of a row have the same logarithmic axes. {squares}"
        "Choose the name of a task for its full results."
    )


def _medians(analysis: Analysis, value: str) -> list[pd.DataFrame]:
    """The medians of each task, costs in units that tasks share."""
    return analysis.ask(_medians_of, value)


def _medians_of(analysis: Analysis, value: str) -> list[pd.DataFrame]:
    cost, _, _ = _cost(analysis)
    curves = analysis.ask(trace_curves, cost, value)
    drawn = pd.concat([curves.curves, curves.points])[["task", "solver", "cost", "median"]]
    return [
        mine.assign(cost=mine["cost"] / _unit(analysis, task.label)).dropna()
        for task in analysis.tasks_of(SvmTask)
        for mine in [of_task(drawn, task.label)]
    ]


def _unit(analysis: Analysis, task: str) -> float:
    """What the costs of a task are divided by; NaN where that is not known."""
    if not analysis.counters:
        return 1.0
    n = first_known(of_task(analysis.runs, task)["n_train"])
    return np.nan if n is None else n**2


def _row(analysis: Analysis, value: str) -> Row | None:
    """The figures of a value; None if there is nothing to draw."""
    _, spent, unit = _cost(analysis)
    medians = _medians(analysis, value)
    measure, highest = analysis.measures[value], _HIGHEST.get(value, np.inf)
    levels = [_level(analysis, task.label, value) for task in analysis.tasks_of(SvmTask)]
    scale = shared_scale(medians, levels, measure, spent, unit, highest)
    if scale is None:
        return None
    return Row(
        title=f"{capitalised(measure.words)} against {spent}",
        note=_note(analysis, value, medians, scale),
        gallery=Gallery(f"glance-{value}", [], _views(analysis, medians, levels, scale)),
    )


def _level(analysis: Analysis, task: str, value: str) -> float:
    """The test error of the reference optimum; NaN where it is unknown, and for other values."""
    error = reference_of(analysis.runs, task).test_error
    return np.nan if value != "test_error" or error is None else error


def _views(
    analysis: Analysis, medians: list[pd.DataFrame], levels: list[float], scale: Scale
) -> list[PanelView]:
    """A figure for each task, named after the task's part of the page."""
    return [
        PanelView(
            f"results-{analysis.slugs[task.label]}",
            task.label,
            draw_small(medians[place], levels[place], scale, analysis.styles, task.label),
        )
        for place, task in enumerate(analysis.tasks_of(SvmTask))
    ]


def _note(analysis: Analysis, value: str, medians: list[pd.DataFrame], scale: Scale) -> str:
    """What dashed lines are, where curves are cut, and who is not shown."""
    sentences = []
    if value == "test_error":
        sentences.append("Dashed: the test error of the reference optimum.")
    highest = _HIGHEST.get(value, np.inf)
    if any((frame["median"] > highest).any() for frame in medians):
        sentences.append(f"Curves are cut off above {highest:g}.")
    if any((frame["median"] <= 0).any() for frame in medians):
        floor = formatting.say(scale.shown, scale.floor)
        sentences.append(f"Zeros are drawn at {floor}.")
    shown = _solvers(medians)
    ended = set(analysis.runs.loc[analysis.runs["ok"], "solver"])
    absent = [label for label in analysis.styles if label in ended - shown]
    if absent:
        sentences.append(f"Not shown: {', '.join(absent)}; the figures of each task say why.")
    return " ".join(sentences)


def _solvers(medians: list[pd.DataFrame]) -> set[str]:
    return {str(solver) for frame in medians for solver in frame["solver"].unique()}
