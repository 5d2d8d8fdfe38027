"""Figures over all tasks: profiles as steps, and what error costs as points."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from .. import formatting
from .axes import padded, set_log_axis
from .canvas import Drawing, drawing, dress, panel_axes
from .styles import SolverStyle

_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_MARKERS_PER_CURVE = 6
# Ratios read as plain decimals, as seconds do: "0.3", not a multiple of a power of ten.
_TICKS = "seconds"


def draw_profile(
    steps: pd.DataFrame,
    solvers: Mapping[str, SolverStyle],
    title: str,
    xlabel: str,
) -> Drawing | None:
    """Draw the share of problems that each solver solved within a cost.

    Parameters
    ----------
    steps : DataFrame
        Of :func:`marginbench.reports.statistics.profiles.data_profile`.
    solvers : mapping of str to SolverStyle
        The solvers that have problems, in drawing order; one without a step has solved none.
    title, xlabel : str

    Returns
    -------
    Drawing or None
        None if no problem was solved.
    """
    positive = steps.loc[steps["cost"] > 0, "cost"].to_numpy(np.float64)
    if not len(positive):
        return None
    axes = panel_axes()
    low, high = padded(positive, 0.04, 0.06)
    set_log_axis(axes, "x", low, high, _TICKS)
    _set_shares(axes)
    sentences = ["The horizontal axis is logarithmic."]
    for solver, style in solvers.items():
        curve = steps[steps["solver"] == solver]
        _draw_steps(axes, curve, style, low, high)
        sentences.append(_sentence(solver, curve))
    dress(axes, xlabel)
    return drawing(axes, title, " ".join(sentences), steps)


def draw_trade(
    points: pd.DataFrame,
    styles: Mapping[str, SolverStyle],
    title: str,
    labels: tuple[str, str],
) -> Drawing | None:
    """Draw by how much each solver misses the lowest error of a task, against its cost.

    Parameters
    ----------
    points : DataFrame
        Columns task, solver, ratio (of its cost to the lowest of the task), excess (of its error,
        as a fraction of the test points) and front (drawn filled).
    styles : mapping of str to SolverStyle
    title : str
    labels : (str, str)
        Below the horizontal axis, and what the vertical one is, for the description.

    Returns
    -------
    Drawing or None
        None without a point.
    """
    if points.empty:
        return None
    axes = panel_axes()
    set_log_axis(axes, "x", *padded(points["ratio"].to_numpy(np.float64), 0.04, 0.06), _TICKS)
    for solver, style in styles.items():
        mine = points[points["solver"] == solver]
        for front, face in ((False, "none"), (True, style.color)):
            chosen = mine[mine["front"] == front]
            axes.plot(
                chosen["ratio"], 100 * chosen["excess"], ls="", marker=style.marker, ms=6,
                markerfacecolor=face, markeredgecolor=style.color, markeredgewidth=1.2,
            )  # fmt: skip
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    dress(axes, labels[0])
    on_front = points.loc[points["front"], "solver"].to_list()
    compared = points["solver"].to_list()
    sentences = [
        f"{solver}: on the front of {on_front.count(solver)} of {compared.count(solver)}."
        for solver in styles
        if solver in compared
    ]
    words = f"Vertically {labels[1]}. The horizontal axis is logarithmic."
    return drawing(axes, title, " ".join([words, *sentences]), points)


def _set_shares(axes: Axes) -> None:
    axes.set_ylim(-0.02, 1.03)
    axes.yaxis.set_major_locator(FixedLocator(_QUARTERS))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda share, _: f"{100 * share:g}{formatting.THIN}%")
    )


def _draw_steps(
    axes: Axes, curve: pd.DataFrame, style: SolverStyle, low: float, high: float
) -> None:
    """A step curve from nothing at the left edge to its last share at the right edge."""
    costs = np.clip(curve["cost"].to_numpy(np.float64), low, None)
    shares = curve["share"].to_numpy(np.float64)
    last = shares[-1] if len(shares) else 0.0
    axes.plot(
        [low, *costs, high], [0.0, *shares, last], drawstyle="steps-post", color=style.color,
        lw=1.5, dashes=style.dashes or (None, None), marker=style.marker, ms=5,
        markevery=_marked(len(costs)),
    )  # fmt: skip


def _marked(n_steps: int) -> list[int]:
    """The places of a few steps, the last one among them."""
    if not n_steps:
        return [1]
    return sorted({round(place) for place in np.linspace(1, n_steps, _MARKERS_PER_CURVE)})


def _sentence(solver: str, curve: pd.DataFrame) -> str:
    if curve.empty:
        return f"{solver}: none."
    last = float(curve["share"].iloc[-1])
    half = curve.loc[curve["share"] >= last / 2, "cost"].iloc[0]
    return f"{solver}: {100 * last:.0f} %, half of it within {float(half):.3g}."
