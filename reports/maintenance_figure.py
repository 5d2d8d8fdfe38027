"""The figure of budget maintenance: how often models on a budget are brought back to it."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports import formatting
from reports.figures import COLOR_VARIABLES, INK, MUTED, RULE, SolverStyle
from reports.frames import by_solver, of_task, records
from reports.svg import inline

_SIZE = (5.4, 3.55)
_FONT = 10.0


def draw_maintenance(
    curves: pd.DataFrame,
    predictions: pd.DataFrame,
    styles: Mapping[str, SolverStyle],
    prefix: str,
    task: str,
) -> str | None:
    """Maintenance events per iteration in each epoch, and what Lemma 2 predicts for the optimum.

    Parameters
    ----------
    curves : DataFrame
        Of :func:`maintenance_curves`.
    predictions : DataFrame
        Of :func:`predicted_fractions`.
    styles : mapping of str to SolverStyle
    prefix : str
        Unique on the page, for the ids of the SVG.
    task : str

    Returns
    -------
    str or None
        An ``<svg>`` element; None if no solver of the task keeps a budget.
    """
    mine = of_task(curves, task)
    if mine.empty:
        return None
    figure = Figure(figsize=_SIZE)
    figure.patch.set_visible(False)
    axes: Axes = figure.add_axes((0.12, 0.16, 0.86, 0.81))
    axes.patch.set_visible(False)
    sentences = []
    for _, solver, curve in by_solver(mine):
        style = styles[solver]
        axes.fill_between(
            curve["epoch"], curve["low"], curve["high"], color=style.color, alpha=0.13
        )
        axes.plot(
            curve["epoch"], curve["median"], color=style.color, lw=1.4, marker=style.marker, ms=4,
            dashes=style.dashes or (None, None),
        )  # fmt: skip
        end = float(curve["median"].iloc[-1])
        sentences.append(f"{solver} ends at {formatting.percent(end)}.")
    for line in records(of_task(predictions, task)):
        for name, words in (("primal_steps", "subgradient"), ("dual_steps", "coordinate")):
            value = float(line[name])
            _labelled_line(
                axes,
                value,
                f"predicted for {words} steps, {value:.3g}",
                above=words == "subgradient",
            )
            sentences.append(f"Predicted for {words} steps: {formatting.percent(value)}.")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch", fontsize=_FONT, color=MUTED, labelpad=3)
    axes.tick_params(length=3, width=0.7, color=MUTED, labelsize=_FONT, labelcolor=INK, pad=3)
    axes.grid(axis="y", color=RULE, lw=0.6)
    axes.set_axisbelow(True)
    sns.despine(ax=axes, left=True)
    title = f"{task}: maintenance events per iteration, by epoch"
    return inline(
        figure, prefix, title=title, description=" ".join(sentences), colors=COLOR_VARIABLES
    )


def _labelled_line(axes: Axes, value: float, text: str, *, above: bool) -> None:
    """Labels on opposite sides and ends, so that two lines close together keep theirs apart."""
    axes.axhline(value, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
    axes.annotate(
        text,
        xy=(0.99 if above else 0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2.5 if above else -2.5),
        textcoords="offset points",
        horizontalalignment="right" if above else "left",
        verticalalignment="bottom" if above else "top",
        fontsize=_FONT - 1,
        color=MUTED,
    )
