"""How far bundle methods are from the optimum, against their iterations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..drawing.axes import padded, set_log_axis
from ..drawing.canvas import Drawing, drawing, dress, panel_axes
from ..drawing.labels import end_labels, label_ends
from ..drawing.styles import SolverStyle
from ..formatting import decimals
from ..frames import by_solver, of_task, records
from ..statistics.bundle_gaps import FIRST_OF_SLOPE, bundle_gaps, gap_slopes
from . import Panels, PanelView

_GAMMA = "\N{GREEK SMALL LETTER GAMMA}"
_PADDING = 1.25


class BundleGaps(Panels):
    """gamma_t and epsilon_t of bundle methods (BMRM07 section 3.2)."""

    kinds = ("svm",)
    place = 30

    def views(self, analysis: Analysis, task: str) -> list[PanelView]:
        """One panel; nothing where there is no run of a bundle method."""
        gaps = analysis.ask(_gaps)
        drawn = draw_bundle_gaps(gaps, analysis.styles, task)
        if drawn is None:
            return []
        title = f"Gap {_GAMMA} of bundle methods against iterations"
        return [PanelView("bundle", title, drawn, _note(of_task(analysis.ask(_slopes), task)))]


def _gaps(analysis: Analysis) -> pd.DataFrame:
    return bundle_gaps(analysis.runs)


def _slopes(analysis: Analysis) -> pd.DataFrame:
    return gap_slopes(analysis.ask(_gaps))


def _note(slopes: pd.DataFrame) -> str:
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

    Parameters
    ----------
    gaps : DataFrame
        Of :func:`marginbench.reports.statistics.bundle_gaps.bundle_gaps`.
    styles : mapping of str to SolverStyle
    task : str

    Returns
    -------
    Drawing or None
        None if the task has no run of a bundle method.
    """
    mine = of_task(gaps, task)
    mine = mine[(mine["gamma"] > 0) & (mine["epsilon"] > 0)]
    if mine.empty:
        return None
    axes = panel_axes(end_labels(dict.fromkeys(mine["solver"]), styles))
    sentences, ends = [], {}
    for _, solver, curve in by_solver(mine):
        style = styles[solver]
        if (curve["epsilon"] < curve["gamma"]).any():
            axes.plot(curve["n_iter"], curve["epsilon"], color=style.color, lw=1.1, dashes=(4, 1.8))
        every = max(1, len(curve) // 6)
        line = style.line(1.3, 4.5) | {"dashes": (None, None)}
        axes.plot(curve["n_iter"], curve["gamma"], markevery=every, **line)
        last = curve.iloc[-1]
        ends[solver] = (float(last["n_iter"]), float(last["gamma"]))
        sentences.append(
            f"{solver} ends at {formatting.scientific(float(last['gamma']))} after "
            f"{formatting.integer(float(last['n_iter']))} iterations."
        )
    values = mine[["gamma", "epsilon"]].to_numpy()
    iterations = np.append(mine["n_iter"].to_numpy(float), [1.0, 3.0])
    set_log_axis(axes, "x", *padded(iterations, 0.04, 0.07), "count")
    low, high = float(values.min()) / _PADDING, float(values.max()) * _PADDING
    set_log_axis(axes, "y", low, high, "scientific")
    dress(axes, "iteration t")
    label_ends(axes, ends, styles)
    title = f"{task}: gamma_t against iterations"
    return drawing(axes, title, " ".join(sentences), mine)
