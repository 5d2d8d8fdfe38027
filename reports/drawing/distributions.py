"""The figure of a value at the end of each run: every run as a stroke, with boxes of quartiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...harness.results.measures import Measure
from .. import formatting
from ..frames import FEWEST_FOR_QUARTILES, spread_of
from .axes import tick_label
from .canvas import (
    FONT,
    INK,
    MUTED,
    RULE,
    Drawing,
    axes_of_size,
    drawing,
    dress,
    text_width,
)
from .labels import shortened
from .styles import SolverStyle

Array = npt.NDArray[np.float64]

# In points; a row for each solver.
_WIDTH, _RIGHT, _BOTTOM, _TOP = 388.8, 14.0, 45.0, 6.0
_ROW, _LOWEST = 1.7 * FONT, 90.0
_BOX = 0.62  # of the height of a row


def draw_distributions(
    finals: pd.DataFrame,
    measure: Measure,
    level: float,
    styles: Mapping[str, SolverStyle],
    task: str,
) -> Drawing | None:
    """Draw the values of all runs, a row for each solver.

    Parameters
    ----------
    finals : DataFrame
        Columns solver and value, a row for each run.
    measure : Measure
        Of the values.
    level : float
        Value of a dashed line; NaN for none.
    styles : mapping of str to SolverStyle
        By solver label; also the order of the rows.
    task : str
        The task's label, for the title.

    Returns
    -------
    Drawing or None
        None if there is no value.
    """
    known = finals[np.isfinite(finals["value"].to_numpy(np.float64))]
    present = set(known["solver"])
    order = [solver for solver in styles if solver in present]
    if not order:
        return None
    names = shortened(order)
    left = 8.0 + max(map(text_width, names.values()))
    height = max(_ROW * len(order), _LOWEST)
    axes = axes_of_size(_WIDTH, height + _BOTTOM + _TOP, (left, _RIGHT, _BOTTOM, _TOP))
    _draw_rows(axes, known, order, {solver: styles[solver].color for solver in order})
    _dress_rows(axes, measure, [names[solver] for solver in order])
    if np.isfinite(level):
        axes.axvline(level, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
    sentences = [_sentence(solver, known, measure) for solver in order]
    title = f"{task}: {measure.words} at the end of each run"
    return drawing(axes, title, " ".join(sentences), known)


def _draw_rows(
    axes: Axes, finals: pd.DataFrame, order: list[str], colors: Mapping[str, str]
) -> None:
    # Slow to load, and most pages have too few runs for this figure.
    import seaborn as sns

    # Runs are not scattered at random: the same records give the same figure.
    sns.stripplot(
        finals, x="value", y="solver", hue="solver", order=order, hue_order=order,
        palette=dict(colors), legend=False, ax=axes,
        jitter=False, marker="|", size=9, linewidth=1.2, alpha=0.75,
    )  # fmt: skip
    for place, solver in enumerate(order):
        values = finals.loc[finals["solver"] == solver, "value"].to_numpy(np.float64)
        if len(values) >= FEWEST_FOR_QUARTILES:
            _draw_box(axes, place, values, colors[solver])


def _draw_box(axes: Axes, place: int, values: Array, color: str) -> None:
    """From quartile to quartile, with the median as a stroke."""
    low, high = spread_of(values)
    axes.barh(
        place, high - low, left=low, height=_BOX, facecolor=to_rgba(color, 0.13),
        edgecolor=color, lw=0.8, zorder=1.8,
    )  # fmt: skip
    middle = float(np.median(values))
    axes.plot([middle, middle], [place - _BOX / 2, place + _BOX / 2], color=INK, lw=1.8)


def _dress_rows(axes: Axes, measure: Measure, names: list[str]) -> None:
    dress(axes, measure.words)
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=RULE, lw=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: tick_label(value, measure.format) if value > 0 else "0")
    )


def _sentence(solver: str, finals: pd.DataFrame, measure: Measure) -> str:
    values = finals.loc[finals["solver"] == solver, "value"]
    low, middle, high = (
        formatting.say(measure, float(value))
        for value in (values.min(), values.median(), values.max())
    )
    return f"{solver}: {low} to {high}, median {middle}, {formatting.plural(len(values), 'run')}."
