"""A figure of medians with their ranges, joined by lines, one for each solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from ...harness.results.measures import Measure
from .. import formatting
from ..wording import capitalised
from .axes import padded, set_log_axis
from .canvas import Drawing, drawing, dress, panel_axes
from .labels import end_labels, label_ends, reference_lines
from .styles import SolverStyle

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Against:
    """What the horizontal axis of a figure is.

    Attributes
    ----------
    words : str
        Below the axis, and in the caption.
    say : callable
        A place on it in words: "at 100 points".
    format : str
        How its ticks read: of :data:`marginbench.reports.formatting.FORMATS`.
    linear : bool
        Whether it has a linear scale; otherwise it has a logarithmic one.
    """

    words: str
    say: Callable[[float], str]
    format: str = "count"
    linear: bool = False


def draw_medians(
    medians: pd.DataFrame,
    measure: Measure,
    against: Against,
    styles: Mapping[str, SolverStyle],
    subject: str = "",
) -> Drawing | None:
    """Draw the medians of a measure on a logarithmic axis.

    Parameters
    ----------
    medians : DataFrame
        Columns solver, x, median, low, high; ascending in x.
    measure : Measure
    against : Against
        What x is.
    styles : mapping of str to SolverStyle
        By solver label; also the drawing order.
    subject : str
        What is looked at, for the title.

    Returns
    -------
    Drawing or None
        None if no value is positive.
    """
    values = medians[["low", "high"]].to_numpy(np.float64).ravel()
    if not (np.isfinite(values) & (values > 0)).any():
        return None
    shown = set(medians["solver"])
    axes = panel_axes(end_labels(filter(shown.__contains__, styles), styles))
    # A logarithmic axis has no zero: no error at all is drawn below the least one.
    floor = float(values[values > 0].min()) / 2
    drawn = _drawn(values[np.isfinite(values)], floor)
    set_log_axis(axes, "y", *padded(drawn, 0.08, 0.05), measure.format)
    _set_places(axes, medians["x"].to_numpy(np.float64), against)
    sentences = [f"{'The vertical axis is' if against.linear else 'Both axes are'} logarithmic."]
    ends = {}
    for solver, style in styles.items():
        curve = medians[medians["solver"] == solver]
        if not curve.empty:
            ends[solver] = _draw_solver(axes, curve, style, floor)
            sentences.append(_sentence(solver, curve, measure, against))
    label_ends(axes, ends, styles)
    if (values <= 0).any():
        reference_lines(axes, [(floor, "none at all")])
    title = f"{capitalised(measure.words)} against {against.words}"
    return drawing(axes, f"{subject}: {title}" if subject else title, " ".join(sentences), medians)


def _set_places(axes: Axes, places: Array, against: Against) -> None:
    if against.linear:
        axes.set_xlim(places.min() - 0.3, places.max() + 0.3)
    else:
        set_log_axis(axes, "x", *padded(places, 0.03, 0.03), against.format)
    dress(axes, against.words)


def _draw_solver(
    axes: Axes, curve: pd.DataFrame, style: SolverStyle, floor: float
) -> tuple[float, float]:
    """Draw the medians of a solver; where they end."""
    places = curve["x"].to_numpy(np.float64)
    low, median, high = (_drawn(curve[name], floor) for name in ("low", "median", "high"))
    if not style.muted:
        axes.fill_between(places, low, high, color=style.color, alpha=0.13, lw=0)
    axes.plot(places, median, **style.line(1.5, 5))
    return float(places[-1]), float(median[-1])


def _drawn(values: Array | pd.Series, floor: float) -> Array:
    array = np.asarray(values, dtype=np.float64)
    return np.where(array <= 0, floor, array)


def _sentence(solver: str, curve: pd.DataFrame, measure: Measure, against: Against) -> str:
    """Where the medians of a solver begin and end."""
    ends = [
        f"{formatting.say(measure, float(curve['median'].iloc[place]))} "
        f"{against.say(float(curve['x'].iloc[place]))}"
        for place in (0, -1)
    ]
    return f"{solver}: {ends[0]}." if len(curve) == 1 else f"{solver}: {ends[0]}, {ends[1]}."
