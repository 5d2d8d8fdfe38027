"""The figures of a scaling section: what is spent or reached against the number of points."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from marginbench.reports import formatting
from marginbench.reports.axes import padded, set_log_axis
from marginbench.reports.canvas import as_svg, dress, labelled_line, panel_axes
from marginbench.reports.figures import SolverStyle

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
        Of :func:`marginbench.reports.scaling.scaling_medians`, of one family.
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
    axes = panel_axes()
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
        labelled_line(axes, floor, "none at all")
    return as_svg(
        axes,
        prefix,
        title=f"{family}: {PANELS[measure][0]} against training points",
        description=" ".join(sentences),
    )


def _set_axes(axes: Axes, measure: str, sizes: Array, values: Array) -> None:
    set_log_axis(axes, "x", *padded(sizes, 0.03, 0.03), measure="n")
    set_log_axis(axes, "y", *padded(values, 0.08, 0.05), measure=measure)
    dress(axes, "training points")


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
