"""The figures that every task of a study of SVM solvers has."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import SvmTask
from ..drawing.axes import padded
from ..drawing.canvas import Drawing, SolverStyle
from ..drawing.figures import (
    Quantities,
    Reference,
    TraceCurves,
    by_style,
    draw_distributions,
    draw_traces,
)
from ..drawing.lines import Axis, Lines
from ..formatting import decimals
from ..frames import FEWEST_FOR_QUARTILES, of_task, records
from ..statistics import curves, objective, summary
from ..statistics.bundle_gaps import FIRST_OF_SLOPE, bundle_gaps, gap_slopes
from ..statistics.epochs import epochs_frame, maintenance_curves, predicted_fractions
from ..view import Figure
from ..wording import capitalised

# ---- traces: errors and suboptimality against what runs spend

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


# ---- finals: how the test errors at the end of many runs are distributed

#: Of fewer runs of each solver, medians with their range say all that there is to say.
FEWEST_RUNS = 10


def final_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """The test error at the end of each run; nothing where no solver has ten runs."""
    mine = of_task(analysis.runs, task)
    finals = mine.loc[mine["ok"], ["solver", "seed", "test_error"]]
    finals = finals.rename(columns={"test_error": "value"}).dropna(subset="value")
    if not (finals["solver"].value_counts() >= FEWEST_RUNS).any():
        return [], ""
    measure = analysis.measures["test_error"]
    level = reference_of(analysis.runs, task).test_error
    drawing = draw_distributions(
        finals, measure, np.nan if level is None else level, analysis.styles, task
    )
    return [Figure("finals", "Test error at the end of each run", drawing, _finals_note(level))], ""


def _finals_note(level: float | None) -> str:
    dashed = "" if level is None else " Dashed: the reference optimum."
    return (
        "Each thin stroke is a run; equal errors coincide. Boxes span the quartiles of "
        f"{FEWEST_FOR_QUARTILES} runs or more, with the median.{dashed}"
    )


# ---- maintenance: how often models on a budget are brought back to it

# Which steps a class makes: the column of their prediction, and in words.
_STEPS = {"BSGD": ("primal_steps", "subgradient"), "BSCA": ("dual_steps", "coordinate")}
_MAINTENANCE_NOTE = (
    "Dashed: the fraction of iterations that add a point at the reference optimum, the sum of "
    "its dual variables over nC for subgradient steps (BSGD), and the part of them strictly "
    "between 0 and C for coordinate steps (BSCA)."
)


def maintenance_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """Maintenance events of solvers that keep a budget, by epoch."""
    classes = {solver.class_.rpartition(":")[2] for solver in analysis.study.solvers}
    curves = analysis.ask(_epoch_curves)
    drawn = draw_maintenance(curves, analysis.ask(_predictions), analysis.styles, task, classes)
    title = "Budget maintenance: events per iteration, by epoch"
    return [Figure("maintenance", title, drawn, _MAINTENANCE_NOTE)] if drawn else [], ""


def _epoch_curves(analysis: Analysis) -> pd.DataFrame:
    return maintenance_curves(epochs_frame(analysis.runs))


def _predictions(analysis: Analysis) -> pd.DataFrame:
    return predicted_fractions(analysis.runs)


def draw_maintenance(
    curves: pd.DataFrame,
    predictions: pd.DataFrame,
    styles: Mapping[str, SolverStyle],
    task: str,
    classes: Collection[str] = tuple(_STEPS),
) -> Drawing | None:
    """Maintenance events per iteration in each epoch, and what Lemma 2 predicts for the optimum.

    ``classes`` are those of the study's solvers: what is predicted for the steps of others is not
    drawn. None if no solver of the task keeps a budget.
    """
    mine = of_task(curves, task)
    if mine.empty:
        return None
    levels = [
        (float(line[name]), f"predicted for {words} steps, {float(line[name]):.3g}")
        for line in records(of_task(predictions, task))
        for name, words in (_STEPS[name] for name in _STEPS if name in classes)
    ]
    top = 1.1 * max([float(mine["high"].max()), *(value for value, _ in levels)]) or 1.0
    lines = Lines(
        mine.rename(columns={"epoch": "x", "median": "y"}),
        Axis("epoch", "integer", log=False),
        Axis("", "", log=False, limits=(0.0, top)),
        styles,
        steps=False,
        levels=levels,
        markers=12,
    )
    sentences = [
        f"{solver} ends at {formatting.percent(float(curve['median'].iloc[-1]))}."
        for solver, curve in by_style(mine, styles)
    ]
    sentences += [
        f"{words.partition(',')[0].capitalize()}: {formatting.percent(value)}."
        for value, words in levels
    ]
    title = f"{task}: maintenance events per iteration, by epoch"
    return Drawing(lines, title, " ".join(sentences), mine)


# ---- bundle: how far bundle methods are from the optimum, against their iterations

_GAMMA = "\N{GREEK SMALL LETTER GAMMA}"


def bundle_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """gamma_t and epsilon_t of bundle methods (BMRM07 section 3.2)."""
    drawn = draw_bundle_gaps(analysis.ask(_gaps), analysis.styles, task)
    if drawn is None:
        return [], ""
    title = f"Gap {_GAMMA} of bundle methods against iterations"
    return [Figure("bundle", title, drawn, _bundle_note(of_task(analysis.ask(_slopes), task)))], ""


def _gaps(analysis: Analysis) -> pd.DataFrame:
    return bundle_gaps(analysis.runs)


def _slopes(analysis: Analysis) -> pd.DataFrame:
    return gap_slopes(analysis.ask(_gaps))


def _bundle_note(slopes: pd.DataFrame) -> str:
    note = (
        f"In units of λ/2 ‖w‖² + mean loss. {_GAMMA} is the objective of an iterate less the best "
        "lower bound; dashed, ε: the same for the best iterate so far, where it differs."
    )
    said = [f"{row['solver']} {decimals(row['slope'], 1)}" for row in records(slopes)]
    if not said:
        return note
    return (
        f"{note} Slopes of {_GAMMA} on these axes from iteration {FIRST_OF_SLOPE} on: "
        f"{'; '.join(said)} (the bound for the hinge loss has {decimals(-1.0, 1)})."
    )


def draw_bundle_gaps(
    gaps: pd.DataFrame, styles: Mapping[str, SolverStyle], task: str
) -> Drawing | None:
    """gamma_t of each bundle method as a line, epsilon_t dashed where it is another number.

    None if the task has no run of a bundle method.
    """
    mine = of_task(gaps, task)
    mine = mine[(mine["gamma"] > 0) & (mine["epsilon"] > 0)]
    if mine.empty:
        return None
    iterates = mine[["solver", "n_iter", "gamma", "epsilon"]].rename(columns={"n_iter": "x"})
    differs = iterates.groupby("solver")[["gamma", "epsilon"]].transform("sum")
    best = iterates[differs["epsilon"] < differs["gamma"]]
    frame = [iterates.assign(y=iterates["gamma"]), best.assign(y=best["epsilon"], drawn="dashed")]
    lines = Lines(
        pd.concat(frame, ignore_index=True).fillna({"drawn": "median"}),
        # Of few iterations, too, the axis has room for a slope.
        Axis("iteration t", limits=padded(np.append(iterates["x"], [1.0, 3.0]), 0.04, 0.07)),
        Axis("", "scientific"),
        styles,
        steps=False,
    )
    sentences = [
        f"{solver} ends at {formatting.scientific(float(last['gamma']))} after "
        f"{formatting.integer(float(last['n_iter']))} iterations."
        for solver, curve in by_style(mine, styles)
        for last in records(curve.tail(1))
    ]
    return Drawing(lines, f"{task}: gamma_t against iterations", " ".join(sentences), mine)
