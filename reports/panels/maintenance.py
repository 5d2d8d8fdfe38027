"""Budget maintenance: how often models on a budget are brought back to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd
from matplotlib.ticker import MaxNLocator

from .. import formatting
from ..analysis import Analysis
from ..drawing.canvas import Drawing, drawing, dress, panel_axes
from ..drawing.labels import end_labels, label_ends, reference_lines
from ..drawing.styles import SolverStyle
from ..frames import by_solver, of_task, records
from ..statistics.epochs import (
    epochs_frame,
    maintenance_curves,
    predicted_fractions,
)
from . import Panels, PanelView

# Which steps a class makes: the column of their prediction, and in words.
_STEPS = {"BSGD": ("primal_steps", "subgradient"), "BSCA": ("dual_steps", "coordinate")}
_NOTE = (
    "Dashed: the fraction of iterations that add a point at the reference optimum, the sum of "
    "its dual variables over nC for subgradient steps (BSGD), and the part of them strictly "
    "between 0 and C for coordinate steps (BSCA)."
)


class Maintenance(Panels):
    """Maintenance events of solvers that keep a budget, by epoch."""

    kinds = ("svm",)
    place = 20

    def views(self, analysis: Analysis, task: str) -> list[PanelView]:
        """One panel; nothing where no solver keeps a budget."""
        classes = {solver.class_.rpartition(":")[2] for solver in analysis.study.solvers}
        drawn = draw_maintenance(
            analysis.ask(_curves),
            analysis.ask(_predictions),
            analysis.styles,
            task,
            classes,
        )
        if drawn is None:
            return []
        title = "Budget maintenance: events per iteration, by epoch"
        return [PanelView("maintenance", title, drawn, _NOTE)]


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

    Parameters
    ----------
    curves : DataFrame
        Of :func:`maintenance_curves`.
    predictions : DataFrame
        Of :func:`predicted_fractions`.
    styles : mapping of str to SolverStyle
    task : str
    classes : collection of str
        Classes of the study's solvers; what is predicted for the steps of others is not drawn.

    Returns
    -------
    Drawing or None
        None if no solver of the task keeps a budget.
    """
    mine = of_task(curves, task)
    if mine.empty:
        return None
    axes = panel_axes(end_labels(dict.fromkeys(mine["solver"]), styles))
    sentences, ends = [], {}
    for _, solver, curve in by_solver(mine):
        style = styles[solver]
        if not style.muted:
            axes.fill_between(
                curve["epoch"], curve["low"], curve["high"], color=style.color, alpha=0.13
            )
        every = max(1, len(curve) // 12)
        axes.plot(curve["epoch"], curve["median"], markevery=every, **style.line(1.4, 4))
        end = float(curve["median"].iloc[-1])
        ends[solver] = (float(curve["epoch"].iloc[-1]), end)
        sentences.append(f"{solver} ends at {formatting.percent(end)}.")
    predicted = []
    for line in records(of_task(predictions, task)):
        for name, words in (_STEPS[name] for name in _STEPS if name in classes):
            value = float(line[name])
            predicted.append((value, f"predicted for {words} steps, {value:.3g}"))
            sentences.append(f"Predicted for {words} steps: {formatting.percent(value)}.")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    dress(axes, "epoch")
    label_ends(axes, ends, styles)
    # So that a line above all curves is in view before its label looks for a place.
    axes.set_ylim(top=max([axes.get_ylim()[1], *(1.1 * value for value, _ in predicted)]))
    reference_lines(axes, predicted)
    title = f"{task}: maintenance events per iteration, by epoch"
    return drawing(axes, title, " ".join(sentences), mine)
