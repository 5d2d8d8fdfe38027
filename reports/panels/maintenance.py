"""Budget maintenance: how often models on a budget are brought back to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..drawing.canvas import Drawing, SolverStyle
from ..drawing.figures import by_style
from ..drawing.lines import Axis, Lines
from ..frames import of_task, records
from ..statistics.epochs import (
    epochs_frame,
    maintenance_curves,
    predicted_fractions,
)
from ..view import Figure

# Which steps a class makes: the column of their prediction, and in words.
_STEPS = {"BSGD": ("primal_steps", "subgradient"), "BSCA": ("dual_steps", "coordinate")}
_NOTE = (
    "Dashed: the fraction of iterations that add a point at the reference optimum, the sum of "
    "its dual variables over nC for subgradient steps (BSGD), and the part of them strictly "
    "between 0 and C for coordinate steps (BSCA)."
)


def maintenance_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """Maintenance events of solvers that keep a budget, by epoch."""
    classes = {solver.class_.rpartition(":")[2] for solver in analysis.study.solvers}
    curves = analysis.ask(_curves)
    drawn = draw_maintenance(curves, analysis.ask(_predictions), analysis.styles, task, classes)
    title = "Budget maintenance: events per iteration, by epoch"
    return [Figure("maintenance", title, drawn, _NOTE)] if drawn else [], ""


def _curves(analysis: Analysis) -> pd.DataFrame:
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
