"""Small figures of one value on each task, on axes that all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from ...harness.results.measures import Measure
from .. import formatting
from .axes import padded, set_log_axis
from .canvas import Drawing, axes_of_size, drawing, dress, rule
from .styles import SolverStyle
from .traces import columns_by_solver

Array = npt.NDArray[np.float64]

# In points: two of them fit beside each other on a phone.
_SIZE, _MARGINS = (204.0, 164.0), (50.0, 12.0, 24.0, 9.0)
_MOST_TICKS = {"x": 4, "y": 6}


@dataclass(frozen=True)
class Scale:
    """What the small figures of a value share.

    Attributes
    ----------
    shown : Measure
        The value.
    spent : str
        The cost in words.
    unit : str
        Stands behind a cost: "n²".
    x, y : tuple of float
        Limits of the axes.
    floor : float
        Where a value of zero is drawn.
    """

    shown: Measure
    spent: str
    unit: str
    x: tuple[float, float]
    y: tuple[float, float]
    floor: float


def shared_scale(
    medians: Sequence[pd.DataFrame],
    levels: Sequence[float],
    shown: Measure,
    spent: str,
    unit: str,
    highest: float = np.inf,
) -> Scale | None:
    """The scale on which the medians of all tasks can be seen.

    Parameters
    ----------
    medians : sequence of DataFrame
        Of each task: columns solver, cost and median; ascending in cost.
    levels : sequence of float
        Further values that must be on the axis; NaN and zero are left out.
    shown, spent, unit
        See :class:`Scale`.
    highest : float
        Values above it need not be on the axis.

    Returns
    -------
    Scale or None
        None if nothing can be drawn.
    """
    parts = [frame["median"].to_numpy(np.float64) for frame in medians]
    values = np.concatenate([*parts, np.asarray(levels, dtype=np.float64)])
    costs = np.concatenate([frame["cost"].to_numpy(np.float64) for frame in medians])
    costs = costs[np.isfinite(costs) & (costs > 0)]
    values = values[np.isfinite(values) & (values >= 0)]
    if not costs.size or not values.size:
        return None
    floor = float(values[values > 0].min(initial=1.0)) / 2
    drawn = np.minimum(np.where(values > 0, values, floor), max(highest, 2 * floor))
    return Scale(
        shown, spent, unit, x=padded(costs, 0.03, 0.05), y=padded(drawn, 0.08, 0.06), floor=floor
    )


def draw_small(
    medians: pd.DataFrame,
    level: float,
    scale: Scale,
    styles: Mapping[str, SolverStyle],
    task: str,
) -> Drawing | None:
    """Draw the medians of a task's solvers as lines, each with a dot at its end.

    Parameters
    ----------
    medians : DataFrame
        Columns solver, cost and median; ascending in cost.
    level : float
        Value of a dashed line; NaN for none.
    scale : Scale
        Of :func:`shared_scale`.
    styles : mapping of str to SolverStyle
        By solver label; grey ones are drawn below the others.
    task : str
        The task's label, for the title.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    found = columns_by_solver(medians)
    if not found:
        return None
    axes = axes_of_size(*_SIZE, _MARGINS)
    set_log_axis(axes, "x", *scale.x, "seconds" if scale.unit == "s" else "", _MOST_TICKS["x"])
    set_log_axis(axes, "y", *scale.y, scale.shown.format, _MOST_TICKS["y"])
    dress(axes, "")
    sentences = ["Both axes are logarithmic."]
    for solver, style in styles.items():
        if solver in found:
            cost = found[solver]["cost"].astype(float)
            median = found[solver]["median"].astype(float)
            _draw(axes, cost, np.where(median <= 0, scale.floor, median), style)
            sentences.append(
                f"{solver} ends at a median of {formatting.say(scale.shown, median[-1])} after "
                f"{cost[-1]:.2g} {scale.unit}."
            )
    if np.isfinite(level):
        rule(axes, level if level > 0 else scale.floor)
    title = f"{task}: {scale.shown.words} against {scale.spent}"
    return drawing(axes, title, " ".join(sentences), medians)


def _draw(axes: Axes, cost: Array, median: Array, style: SolverStyle) -> None:
    line = style.line(1.5, 5) | {"mew": 0.0}
    axes.plot(cost, median, drawstyle="steps-post", markevery=[len(cost) - 1], **line)
