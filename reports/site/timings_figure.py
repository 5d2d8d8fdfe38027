"""The small figure of a group of timings: a row for each benchmark, an interval for each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..drawing.axes import padded, set_log_axis
from ..drawing.canvas import (
    FONT,
    GROUND,
    RULE,
    Drawing,
    axes_of_size,
    drawing,
    dress,
    text_width,
)
from ..drawing.labels import shortened
from ..drawing.styles import SolverStyle, solver_styles
from .timings import Timing

# In points; a row for each benchmark, as high as its files need.
_WIDTH, _RIGHT, _BOTTOM, _TOP = 388.8, 14.0, 45.0, 6.0
_ROW, _FILE, _LOWEST = 1.5 * FONT, 0.75 * FONT, 60.0
# In seconds; no clock tells a shorter time.
_SHORTEST = 1e-15

#: The benchmarks of a group by their names, with their times in each file by its place.
Rows = Sequence[tuple[str, Mapping[int, Timing]]]


def draw_intervals(title: str, rows: Rows, scale: float, unit: str) -> Drawing | None:
    """Draw the least time, the quartiles and the median of each benchmark in each file.

    Parameters
    ----------
    title : str
        The group's.
    rows : sequence of (str, mapping of int to Timing)
    scale : float
        What a second is in the unit.
    unit : str

    Returns
    -------
    Drawing or None
        None if a time is zero or shorter than any clock tells: a logarithmic axis has no room.
    """
    timings = [timing for _, found in rows for timing in found.values()]
    if min(timing.low for timing in timings) < _SHORTEST:
        return None
    n_files = 1 + max(place for _, found in rows for place in found)
    labels = shortened(list(dict.fromkeys(label for label, _ in rows)))
    left = 8.0 + max(map(text_width, labels.values()))
    height = max((_ROW + _FILE * (n_files - 1)) * len(rows), _LOWEST)
    axes = axes_of_size(_WIDTH, height + _BOTTOM + _TOP, (left, _RIGHT, _BOTTOM, _TOP))
    styles = list(solver_styles([str(place) for place in range(n_files)]).values())
    for row, (_, found) in enumerate(rows):
        for place, timing in found.items():
            offset = 0.7 * ((place + 0.5) / n_files - 0.5)
            _draw(axes, row + offset, timing, styles[place], scale)
    ends = [scale * value for timing in timings for value in (timing.low, timing.q3)]
    _dress(axes, [labels[label] for label, _ in rows], np.array(ends), unit)
    words = "; ".join(_sentence(label, found, scale, unit) for label, found in rows)
    return drawing(axes, f"{title}: median and middle half of the rounds", words, pd.DataFrame())


def _draw(axes: Axes, row: float, timing: Timing, style: SolverStyle, scale: float) -> None:
    low, q1, median, q3 = (scale * v for v in (timing.low, timing.q1, timing.median, timing.q3))
    axes.plot([low, q3], [row, row], color=style.color, lw=0.9)
    axes.plot([q1, q3], [row, row], color=style.color, lw=4.0, alpha=0.55, solid_capstyle="butt")
    axes.plot([median], [row], color=style.color, marker=style.marker, ms=6, mec=GROUND, mew=0.7)


def _dress(axes: Axes, names: list[str], ends: np.ndarray, unit: str) -> None:
    dress(axes, f"{unit}, logarithmic")
    # Names come from elsewhere: a dollar sign begins no formula.
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=RULE, lw=0.6)
    set_log_axis(axes, "x", *padded(ends, 0.05, 0.05), "seconds")


def _sentence(label: str, found: Mapping[int, Timing], scale: float, unit: str) -> str:
    medians = " and ".join(f"{scale * timing.median:.3g}" for timing in found.values())
    return f"{label} {medians} {unit}"
