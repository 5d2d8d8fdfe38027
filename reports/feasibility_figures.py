"""Curves of feasibility methods: medians with their ranges, on a logarithmic vertical axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marginbench.reports.axes import set_log_axis
from marginbench.reports.canvas import as_svg, dress, panel_axes
from marginbench.reports.figures import SolverStyle


@dataclass(frozen=True)
class Curve:
    """A method's medians at some places, and their ranges."""

    label: str
    x: Sequence[float]
    median: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def draw_curves(
    curves: Sequence[Curve],
    styles: Mapping[str, SolverStyle],
    x: tuple[str, str],
    measure: str,
    prefix: str,
    title: str,
) -> str:
    """One panel as an ``<svg>`` element.

    Parameters
    ----------
    curves : sequence of Curve
    styles : mapping
        By label.
    x : tuple of str
        The words below the horizontal axis, and what it measures.
    measure : str
        What the vertical axis measures.
    prefix : str
        Unique on the page.
    title : str
    """
    axes = panel_axes()
    known = [curve for curve in curves if len(curve.x)]
    for curve in known:
        style = styles[curve.label]
        axes.fill_between(curve.x, curve.low, curve.high, color=style.color, alpha=0.13, lw=0)
        axes.plot(
            curve.x, curve.median, color=style.color, lw=1.5, marker=style.marker, ms=4.6,
            dashes=style.dashes or (None, None),
        )  # fmt: skip
    values = np.concatenate([np.concatenate([c.low, c.high]) for c in known])
    low, high = values[values > 0].min(), values.max()
    set_log_axis(axes, "y", low / 1.3, high * 1.3, "wall_s" if measure == "cpu_s" else measure)
    places = np.concatenate([curve.x for curve in known])
    if x[1] == "kappa":
        axes.set_xlim(places.min() - 0.3, places.max() + 0.3)
    else:
        name = "wall_s" if x[1] == "seconds" else x[1]
        set_log_axis(axes, "x", places.min() / 1.3, places.max() * 1.3, name)
    dress(axes, x[0])
    ends = ". ".join(
        f"{curve.label} from {curve.median[0]:.3g} to {curve.median[-1]:.3g}" for curve in known
    )
    return as_svg(axes, prefix, title=title, description=f"{ends}.")
