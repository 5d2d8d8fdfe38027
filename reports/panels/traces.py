"""Errors and suboptimality of each task against what its runs spend."""

from __future__ import annotations

import pandas as pd

from ..analysis import Analysis
from ..described import SvmTask
from ..drawing.figures import Quantities, Reference, TraceCurves, draw_traces
from ..frames import of_task
from ..statistics import curves, objective, summary
from ..view import Figure
from ..wording import capitalised

#: A value against a cost (columns of the traces), in reading order.
PANELS = (
    ("evaluations", "test_error"),
    ("cpu_s", "test_error"),
    ("evaluations", "suboptimality"),
    ("cpu_s", "suboptimality"),
)

# Why a solver is not shown, where the table of results says it too briefly.
_WITHOUT = {
    "not minimised": "does not minimise the SVM objective",
    summary.OTHER_PROBLEM: "solves another problem",
    summary.NO_MODEL: "shows no model, only predictions",
}


def trace_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """Two panels of the test error, and two of the suboptimality with a reference."""
    (described,) = (item for item in analysis.tasks_of(SvmTask) if item.label == task)
    figures = [
        _view(analysis, task, quantities(analysis, cost, value))
        for cost, value in PANELS
        if described.reference or value != "suboptimality"
    ]
    return figures, _marks(analysis, task)


def _marks(analysis: Analysis, task: str) -> str:
    """What lines, bands, lone markers and crosses are."""
    data = [analysis.ask(_of_task, *panel, task) for panel in PANELS]
    sentences = [f"Lines are medians over seeds, {curves.BAND}."]
    if any(not panel.points.empty for panel in data):
        names = sorted({str(name) for panel in data for name in panel.points["solver"]})
        sentences.append(
            f"A lone marker with range bars is a solver that is seen only at its end "
            f"({', '.join(names)})."
        )
    if any(not panel.unfinished.empty for panel in data):
        sentences.append(
            "A thin line that ends in a cross is a failed run; it is in no median and no band."
        )
    return " ".join(sentences)


def quantities(analysis: Analysis, cost: str, value: str) -> Quantities:
    """A value against a cost, with their measures."""
    return Quantities(cost, value, analysis.measures[cost], analysis.measures[value])


def trace_curves(analysis: Analysis, cost: str, value: str) -> TraceCurves:
    """The statistics that a panel draws, for :meth:`.Analysis.ask`."""
    runs, traces = analysis.runs, analysis.traces
    return TraceCurves(
        curves=curves.curves(runs, traces, cost, value),
        singles=curves.singles(traces, cost, value),
        points=curves.points(runs, traces, cost, value),
        unfinished=curves.unfinished(traces, cost, value),
    )


def _of_task(analysis: Analysis, cost: str, value: str, task: str) -> TraceCurves:
    return analysis.ask(trace_curves, cost, value).of_task(task)


def reference_of(runs: pd.DataFrame, task: str) -> Reference:
    """The reference optimum that the records of a task carry; of several folds their median."""
    mine = of_task(runs, task)
    n_test = _median(mine["n_test"])
    return Reference(
        test_error=_median(mine["reference_test_error"]),
        resolution=_median(objective.resolution(mine)),
        n_test=None if n_test is None else int(n_test),
    )


def _median(values: pd.Series) -> float | None:
    known = values.dropna()
    return float(known.median()) if len(known) else None


def _view(analysis: Analysis, task: str, drawn: Quantities) -> Figure:
    data = analysis.ask(_of_task, drawn.cost, drawn.value, task)
    reference = reference_of(analysis.runs, task)
    return Figure(
        name=f"{drawn.value}-{drawn.cost}",
        title=capitalised(f"{drawn.shown.words} against {drawn.spent.words}"),
        drawing=draw_traces(drawn, data, analysis.styles, reference, task),
        note=_absent_note(analysis.runs, task, drawn, data.solvers()),
    )


def _absent_note(runs: pd.DataFrame, task: str, drawn: Quantities, shown: set[str]) -> str:
    """Which solvers with results a panel does not show, and why."""
    mine = of_task(runs, task)
    mine = mine[mine["ok"] & ~mine["solver"].isin(shown)]
    reasons: dict[str, list[str]] = {}
    for solver, group in mine.groupby("solver", sort=False):
        reasons.setdefault(_reason(group, drawn), []).append(str(solver))
    listed = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
    return f"Not shown: {listed}." if listed else ""


def _reason(group: pd.DataFrame, drawn: Quantities) -> str:
    if drawn.shown.needs and not group[drawn.shown.needs].any():
        reason = summary.without(drawn.shown, group)
        return _WITHOUT.get(reason, reason)
    if group[drawn.cost].isna().all():
        return drawn.spent.absent or "nothing recorded"
    if (group[drawn.cost] == 0).all():
        return f"spent no {drawn.spent.words}"
    return "nothing recorded"
