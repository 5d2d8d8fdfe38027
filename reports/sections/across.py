"""What holds over all tasks of a study together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..analysis import Analysis
from ..derived.to_target import ERROR_TARGET
from ..drawing.figures import draw_profile, draw_trade
from ..formatting import plural
from ..frames import records
from ..panels import Gallery, PanelView, legend
from ..statistics import pareto, profiles
from ..statistics.pairwise import FEWEST_DATASETS
from ..tables import Table
from . import Section
from .across_tables import (
    FAMILIES,
    FAMILY_WORDS,
    Question,
    answers,
    costs,
    datasets,
    fronts_table,
    incomplete,
    pairs_table,
    problems,
    questions,
    rank_sentence,
    rank_table,
    running_time_table,
    solved_table,
    wins_table,
)

# Short names of costs and of families of targets, for anchors.
_NAMES = {
    "evaluations": "evaluations",
    "cpu_s": "seconds",
    "suboptimality": "objective",
    "test_error": "error",
}


@dataclass(frozen=True)
class _Asked:
    """The tables of one question."""

    words: str
    wins: Table | None
    pairs: Table | None
    running_time: Table


class Across(Section):
    """Profiles, pairwise wins, ranks, Pareto fronts and expected running times."""

    anchor, title, place = "across", "Across tasks", 10
    template = "across.html"
    kinds = ("svm",)

    def applies(self, analysis: Analysis) -> bool:
        """Where two solvers and two tasks have results, and there are costs and targets."""
        ok = analysis.runs[analysis.runs["ok"]]
        several = ok["task"].nunique() > 1 and ok["solver"].nunique() > 1
        return several and bool(costs(analysis)) and bool(ERROR_TARGET.levels(ok).notna().any())

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The figures and tables, and how many datasets stand behind them."""
        known = datasets(analysis)
        asked = questions(analysis)
        fronts = analysis.ask(_fronts)
        return {
            "n_tasks": len(known),
            "n_datasets": len(set(known.values())),
            "fewest_datasets": FEWEST_DATASETS,
            "times": "cpu_s" in costs(analysis),
            "data_profiles": _data_profiles(analysis),
            "solved": solved_table(analysis),
            "performance_profiles": _performance_profiles(analysis, asked),
            "asked": [
                _Asked(
                    question.words,
                    wins_table(analysis, question),
                    pairs_table(analysis, question),
                    running_time_table(analysis, question),
                )
                for question in asked
            ],
            "ranks": rank_table(analysis),
            "rank_sentences": [rank_sentence(analysis, question) for question in asked],
            "trade": _trade(analysis, fronts),
            "fronts": fronts_table(analysis, fronts) if len(fronts) else None,
            "front_cost": analysis.measures[_front_cost(analysis)].words,
        }


def _data_profiles(analysis: Analysis) -> Gallery:
    views = [
        _data_profile(analysis, family, cost) for cost in costs(analysis) for family in FAMILIES
    ]
    return _gallery(analysis, "across-data", views)


def _data_profile(analysis: Analysis, family: str, cost: str) -> PanelView:
    found = analysis.ask(problems, family, cost)
    words = analysis.measures[cost].words
    if cost == "evaluations":
        found, words = profiles.in_squares(found, analysis.runs), f"{words} in units of n²"
    steps = profiles.data_profile(found)
    shown = {
        label: style for label, style in analysis.styles.items() if label in set(found["solver"])
    }
    title = f"Problems solved {FAMILY_WORDS[family]}, against {words}"
    return PanelView(
        f"{_NAMES[family]}-{_NAMES[cost]}",
        title,
        draw_profile(steps, shown, title, words),
        note=_solved_note(analysis, found, family, cost),
    )


def _solved_note(analysis: Analysis, found: pd.DataFrame, family: str, cost: str) -> str:
    """How many problems each solver solved, of how many, and who has none."""
    n_tasks = len(datasets(analysis))
    parts, absent = [], []
    for label in analysis.styles:
        mine = found[found["solver"] == label]
        if mine.empty:
            absent.append(f"{label} ({_why_absent(analysis, label, family, cost)})")
            continue
        tasks = mine["task"].nunique()
        some = f" on {tasks} of {n_tasks} tasks" if tasks < n_tasks else ""
        parts.append(f"{label} {int(np.isfinite(mine['value']).sum())} of {len(mine)}{some}")
    words = [f"Solved: {', '.join(parts)}."]
    words += [f"Not counted: {', '.join(absent)}."] if absent else []
    return " ".join([*words, *_bounds_note(found)])


def _bounds_note(problems: pd.DataFrame) -> list[str]:
    """How many costs are drawn at an upper bound, and whose; nothing without any."""
    counts = problems[problems["upper_bound"]].groupby("solver", sort=False).size()
    if counts.empty:
        return []
    listed = ", ".join(f"{solver} {count}" for solver, count in counts.items())
    return [f"Drawn at an upper bound, the cost of the first checkpoint: {listed}."]


def _why_absent(analysis: Analysis, label: str, family: str, cost: str) -> str:
    mine = analysis.runs[analysis.runs["solver"] == label]
    for status in ("skipped", "missing"):
        if (mine["status"] == status).all():
            return status
    if family == "suboptimality" and not mine["minimises"].any():
        return "objective not minimised"
    if cost == "evaluations" and not mine["instrumented"].any():
        return "not instrumented"
    return "no target or no count"


def _performance_profiles(analysis: Analysis, asked: list[Question]) -> Gallery:
    views = [_performance_profile(analysis, question) for question in asked]
    return _gallery(analysis, "across-performance", views)


def _performance_profile(analysis: Analysis, question: Question) -> PanelView:
    found = answers(analysis, question)
    middle = profiles.medians(found)
    ratios = profiles.performance_ratios(middle, analysis.ask(incomplete))
    known = set(ratios["solver"])
    shown = {label: style for label, style in analysis.styles.items() if label in known}
    title = f"{question.words}, as a ratio to the best"
    parts = [
        f"{row['solver']} {int(row['solved'])} of {plural(row['n'], 'task')}"
        for row in records(_solved_tasks(ratios))
    ]
    return PanelView(
        f"{_NAMES[question.target.value]}-{_NAMES[question.cost]}",
        title,
        draw_profile(
            profiles.performance_profile(ratios), shown, title, "ratio to the best of the task"
        ),
        note=" ".join([f"Solved: {', '.join(parts)}."] * bool(parts) + _bounds_note(found)),
    )


def _solved_tasks(ratios: pd.DataFrame) -> pd.DataFrame:
    found = ratios.assign(solved=np.isfinite(ratios["value"]))
    counts = found.groupby("solver", sort=False)["solved"].agg(["sum", "size"]).reset_index()
    return counts.set_axis(["solver", "solved", "n"], axis=1)


def _front_cost(analysis: Analysis) -> str:
    """CPU seconds where they compare, as every solver has them."""
    return costs(analysis)[-1]


def _fronts(analysis: Analysis) -> pd.DataFrame:
    return pareto.fronts(analysis.runs, ("test_error", _front_cost(analysis), "n_support"))


def _trade(analysis: Analysis, fronts: pd.DataFrame) -> Gallery:
    cost = _front_cost(analysis)
    words = analysis.measures[cost].words
    of_task = fronts.groupby("task")
    points = fronts[["task", "solver", "front"]].assign(
        ratio=fronts[cost] / of_task[cost].transform("min"),
        excess=fronts["test_error"] - of_task["test_error"].transform("min"),
    )
    points = points[np.isfinite(points["ratio"])]
    title = f"Test error above the lowest of the task, in points, against {words}"
    labels = (f"{words}, ratio to the lowest of the task", "points of test error")
    drawn = draw_trade(points, analysis.styles, title, labels)
    return _gallery(analysis, "across-front", [PanelView("error-cost", title, drawn)])


def _gallery(analysis: Analysis, prefix: str, views: list[PanelView]) -> Gallery:
    """Panels with a legend of the solvers that one of them draws."""
    drawn = {
        str(label)
        for view in views
        if view.drawing is not None
        for label in view.drawing.data["solver"].unique()
    }
    return Gallery(prefix, legend(analysis, dict.fromkeys(drawn, "")), views, marks="")
