"""The figure of bundle methods: gamma_t and epsilon_t against iterations."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports import formatting
from reports.axes import set_log_axis
from reports.figures import COLOR_VARIABLES, INK, MUTED, RULE, SolverStyle
from reports.frames import by_solver, of_task
from reports.svg import inline

_SIZE = (5.4, 3.55)
_FONT = 10.0
_PADDING = 1.25


def draw_bundle_gaps(
    gaps: pd.DataFrame, styles: Mapping[str, SolverStyle], prefix: str, task: str
) -> str | None:
    """gamma_t of each bundle method as a line, epsilon_t dashed where it is another number.

    Parameters
    ----------
    gaps : DataFrame
        Of :func:`reports.bundle_gaps.bundle_gaps`.
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
    figure = Figure(figsize=_SIZE)
    figure.patch.set_visible(False)
    axes: Axes = figure.add_axes((0.12, 0.16, 0.86, 0.81))
    axes.patch.set_visible(False)
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
    longest = max(float(mine["n_iter"].max()), 3.0)
    set_log_axis(axes, "x", 1 / _PADDING, longest * _PADDING, measure="n_iter")
    low, high = float(values.min()) / _PADDING, float(values.max()) * _PADDING
    set_log_axis(axes, "y", low, high, measure="gamma")
    axes.set_xlabel("iteration t", fontsize=_FONT, color=MUTED, labelpad=3)
    axes.tick_params(length=3, width=0.7, color=MUTED, labelsize=_FONT, labelcolor=INK, pad=3)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=RULE, lw=0.6)
    axes.set_axisbelow(True)
    sns.despine(ax=axes, left=True)
    axes.spines["bottom"].set(color=MUTED, linewidth=0.7)
    title = f"{task}: gamma_t against iterations"
    return inline(
        figure, prefix, title=title, description=" ".join(sentences), colors=COLOR_VARIABLES
    )
