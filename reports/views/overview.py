"""All tasks beside each other: one small figure of each, on the same axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import SvmTask
from ..drawing.figures import Scale, draw_small, shared_scale
from ..frames import first_known, of_task
from ..panels.svm import reference_of, trace_curves
from ..view import Figure, LegendEntry, Section, legend
from ..wording import capitalised

# A study of one task shows it whole.
_FEWEST_TASKS = 2
_VALUES = ("suboptimality", "test_error")
# Far from the optimum solvers differ by powers of ten that say nothing of where they end.
_HIGHEST = {"suboptimality": 100.0}


def overview_section(analysis: Analysis) -> Iterator[Section]:
    """The medians of every task on shared axes, where there are tasks to compare."""
    if len(analysis.tasks_of(SvmTask)) < _FEWEST_TASKS:
        return
    shown = {label for value in _VALUES for label in _solvers(analysis.ask(_medians, value))}
    entries = legend(analysis, {label: "" for label in analysis.styles if label in shown})
    rows = [row for value in _VALUES if (row := _row(analysis, value, entries)) is not None]
    if rows:
        marks = " ".join(filter(None, [_words(analysis), analysis.coloring]))
        yield Section("glance", "At a glance", "overview.html", {"rows": rows, "marks": marks})


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


def _row(
    analysis: Analysis, value: str, entries: list[LegendEntry]
) -> tuple[str, str, list[Figure]] | None:
    """The title and note of a value and its figures, one for each task; None if all are empty."""
    _, spent, unit = _cost(analysis)
    medians = analysis.ask(_medians, value)
    measure, highest = analysis.measures[value], _HIGHEST.get(value, np.inf)
    levels = [_level(analysis, task.label, value) for task in analysis.tasks_of(SvmTask)]
    scale = shared_scale(medians, levels, measure, spent, unit, highest)
    if scale is None:
        return None
    figures = []
    for task, mine, level in zip(analysis.study.tasks, medians, levels, strict=True):
        place = f"results-{analysis.slugs[task.label]}"
        drawn = draw_small(mine, level, scale, analysis.styles, task.label)
        figures.append(
            Figure(f"glance-{value}-{place}", task.label, drawn, legend=entries, link=place)
        )
    title = f"{capitalised(measure.words)} against {spent}"
    return title, _note(analysis, value, medians, scale), figures


def _level(analysis: Analysis, task: str, value: str) -> float:
    """The test error of the reference optimum; NaN where it is unknown, and for other values."""
    error = reference_of(analysis.runs, task).test_error
    return np.nan if value != "test_error" or error is None else error


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
