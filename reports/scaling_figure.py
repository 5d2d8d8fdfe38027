"""The figures of a scaling section: what is spent or reached against the number of points."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports import formatting
from reports.axes import padded, set_log_axis
from reports.figures import COLOR_VARIABLES, INK, MUTED, RULE, SolverStyle
from reports.svg import inline

_SIZE = (5.4, 3.55)
_FONT = 10.0

#: The measures that are drawn: caption, and how a value reads.
PANELS: dict[str, tuple[str, Callable[[float], str]]] = {
    "cpu_s": ("CPU seconds", formatting.seconds),
    "kernel_evals": ("Kernel evaluations", formatting.count),
    "test_error": ("Test error", formatting.percent),
    "train_error": ("Train error", formatting.percent),
}

Array = npt.NDArray[np.float64]


def draw_scaling(
    measure: str,
    medians: pd.DataFrame,
    styles: Mapping[str, SolverStyle],
    prefix: str,
    family: str,
) -> str | None:
    """Draw one measure against the number of training points, both on logarithmic axes.

    Parameters
    ----------
    measure : str
        A key of :data:`PANELS`.
    medians : DataFrame
        Of :func:`reports.scaling.scaling_medians`, of one family.
    styles : mapping of str to SolverStyle
        By solver label; also the drawing order.
    prefix : str
        Unique on the page, for the ids of the SVG.
    family : str
        What the tasks have in common, for the title.

    Returns
    -------
    str or None
        An ``<svg>`` element; None if no value is positive.
    """
    mine = medians[medians["measure"] == measure]
    values = mine[["low", "high"]].to_numpy(np.float64).ravel()
    if not (values > 0).any():
        return None
    figure = Figure(figsize=_SIZE)
    figure.patch.set_visible(False)
    axes: Axes = figure.add_axes((0.138, 0.158, 0.842, 0.815))
    axes.patch.set_visible(False)
    # A logarithmic axis has no zero: no error at all is drawn below the least one.
    floor = float(values[values > 0].min()) / 2
    _set_axes(axes, measure, mine["n"].to_numpy(np.float64), _drawn(values, floor))
    sentences = ["Both axes are logarithmic."]
    for solver, style in styles.items():
        curve = mine[mine["solver"] == solver]
        if not curve.empty:
            _draw_solver(axes, curve, style, floor)
            sentences.append(_sentence(solver, curve, PANELS[measure][1]))
    if (values <= 0).any():
        _label_zero(axes, floor)
    return inline(
        figure,
        prefix,
        title=f"{family}: {PANELS[measure][0]} against training points",
        description=" ".join(sentences),
        colors=COLOR_VARIABLES,
    )


def _set_axes(axes: Axes, measure: str, sizes: Array, values: Array) -> None:
    set_log_axis(axes, "x", *padded(sizes, 0.03, 0.03), measure="n")
    set_log_axis(axes, "y", *padded(values, 0.08, 0.05), measure=measure)
    axes.set_xlabel("training points", fontsize=_FONT, color=MUTED, labelpad=3)
    axes.tick_params(length=3, width=0.7, color=MUTED, labelsize=_FONT, labelcolor=INK, pad=3)
    axes.grid(axis="y", color=RULE, lw=0.6)
    axes.set_axisbelow(True)
    sns.despine(ax=axes, left=True)
    axes.spines["bottom"].set(color=MUTED, linewidth=0.7)
    axes.tick_params(axis="y", length=0)


def _draw_solver(axes: Axes, curve: pd.DataFrame, style: SolverStyle, floor: float) -> None:
    n = curve["n"].to_numpy(np.float64)
    low, median, high = (_drawn(curve[name], floor) for name in ("low", "median", "high"))
    axes.fill_between(n, low, high, color=style.color, alpha=0.13, lw=0)
    axes.plot(
        n, median, color=style.color, lw=1.5, marker=style.marker, ms=5,
        dashes=style.dashes or (None, None),
    )  # fmt: skip


def _drawn(values: Array | pd.Series, floor: float) -> Array:
    array = np.asarray(values, dtype=np.float64)
    return np.where(array > 0, array, floor)


def _sentence(solver: str, curve: pd.DataFrame, say: Callable[[float], str]) -> str:
    """Where the medians of a solver begin and end."""
    ends = [
        f"{say(float(curve['median'].iloc[place]))} at "
        f"{formatting.integer(float(curve['n'].iloc[place]))} points"
        for place in (0, -1)
    ]
    return f"{solver}: {ends[0]}." if len(curve) == 1 else f"{solver}: {ends[0]}, {ends[1]}."


def _label_zero(axes: Axes, floor: float) -> None:
    axes.axhline(floor, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
    axes.annotate(
        "none at all",
        xy=(0.008, floor),
        xycoords=("axes fraction", "data"),
        xytext=(0, -2.5),
        textcoords="offset points",
        verticalalignment="top",
        fontsize=_FONT - 1,
        color=MUTED,
    )
