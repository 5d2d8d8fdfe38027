"""The figure of bundle methods: gamma_t and epsilon_t against iterations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from marginbench.reports import formatting
from marginbench.reports.axes import padded, set_log_axis
from marginbench.reports.canvas import as_svg, dress, panel_axes
from marginbench.reports.figures import SolverStyle
from marginbench.reports.frames import by_solver, of_task

_PADDING = 1.25


def draw_bundle_gaps(
    gaps: pd.DataFrame, styles: Mapping[str, SolverStyle], prefix: str, task: str
) -> str | None:
    """gamma_t of each bundle method as a line, epsilon_t dashed where it is another number.

    Parameters
    ----------
    gaps : DataFrame
        Of :func:`marginbench.reports.bundle_gaps.bundle_gaps`.
    styles : mapping of str to SolverStyle
    prefix : str
        Unique on the page, for the ids of the SVG.
    task : str

    Returns
    -------
    str or None
        An ``<svg>`` element; None if the task has no run of a bundle method.
    """
    mine = of_task(gaps, task)
    mine = mine[(mine["gamma"] > 0) & (mine["epsilon"] > 0)]
    if mine.empty:
        return None
    axes = panel_axes()
    sentences = []
    for _, solver, curve in by_solver(mine):
        style = styles[solver]
        if (curve["epsilon"] < curve["gamma"]).any():
            axes.plot(curve["n_iter"], curve["epsilon"], color=style.color, lw=1.1, dashes=(4, 1.8))
        axes.plot(
            curve["n_iter"], curve["gamma"], color=style.color, lw=1.3, marker=style.marker, ms=4.5,
            markevery=max(1, len(curve) // 6),
        )  # fmt: skip
        last = curve.iloc[-1]
        sentences.append(
            f"{solver} ends at {formatting.scientific(float(last['gamma']))} after "
            f"{formatting.integer(float(last['n_iter']))} iterations."
        )
    values = mine[["gamma", "epsilon"]].to_numpy()
    iterations = np.append(mine["n_iter"].to_numpy(float), [1.0, 3.0])
    set_log_axis(axes, "x", *padded(iterations, 0.04, 0.07), measure="n_iter")
    low, high = float(values.min()) / _PADDING, float(values.max()) * _PADDING
    set_log_axis(axes, "y", low, high, measure="gamma")
    dress(axes, "iteration t")
    title = f"{task}: gamma_t against iterations"
    return as_svg(axes, prefix, title=title, description=" ".join(sentences))
