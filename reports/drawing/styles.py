"""How solvers look in every panel, and the keys of legends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Affine2D

from .canvas import COLOR_VARIABLES, GROUND, MUTED, PALETTE

_MARKERS = "os^DvPX<>p"
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.6), (1.4, 1.4), (6, 1.6, 1.4, 1.6))
_KEY_LINE = 1.8
# Markers are a unit wide; an SVG has its vertical axis downwards.
_KEY_MIDDLE = Affine2D().scale(6, -6).translate(18, 6)


@dataclass(frozen=True)
class SolverStyle:
    """How a solver looks in every panel.

    Attributes
    ----------
    color, marker : str
    dashes : tuple of float
        Empty for a line without gaps.
    muted : bool
        Whether it is one of the many that are grey; it is named where its line ends.
    """

    color: str
    marker: str
    dashes: tuple[float, ...]
    muted: bool = False

    def line(self, width: float, size: float) -> dict[str, Any]:
        """What matplotlib is told of its line, of so many points, and of its markers."""
        shared = {"color": self.color, "dashes": self.dashes or (None, None)}
        if self.muted:
            return shared | {"lw": 0.6 * width, "alpha": 0.6, "zorder": 1.9}
        marks = {"marker": self.marker, "ms": size, "mec": GROUND, "mew": 0.7}
        return shared | marks | {"lw": width}


#: How each of the solvers that are grey looks.
GREY = SolverStyle(MUTED, "", (), muted=True)


def solver_styles(
    labels: Sequence[str], colored: Collection[str] | None = None
) -> dict[str, SolverStyle]:
    """A style for each solver.

    Parameters
    ----------
    labels : sequence of str
    colored : collection of str, optional
        The solvers in colour; the others are grey. By default all are in colour: the first ten
        differ in colour and marker, later ones in dashes.
    """
    chosen = [label for label in labels if colored is None or label in colored]
    styles = {
        label: SolverStyle(
            color=PALETTE[place % len(PALETTE)][0],
            marker=_MARKERS[(place + place // len(PALETTE)) % len(_MARKERS)],
            dashes=_DASHES[(place // len(PALETTE)) % len(_DASHES)],
        )
        for place, label in enumerate(chosen)
    }
    return {label: styles.get(label, GREY) for label in labels}


def swatch(style: SolverStyle) -> str:
    """A short piece of a solver's line, for the legend: an ``<svg>`` element."""
    color = f"var({COLOR_VARIABLES[style.color]}, {style.color})"
    dashes = ",".join(f"{_KEY_LINE * length:g}" for length in style.dashes)
    line = f"fill:none;stroke:{color};stroke-width:{_KEY_LINE}"
    line += f";stroke-dasharray:{dashes}" if dashes else ""
    parts = [f'<path d="M1.5 6H34.5" style="{line}"/>']
    if style.marker:
        outline = _marker_path(style.marker)
        parts.append(f'<path d="{outline}" style="fill:{color};stroke:{color}"/>')
    return f'<svg viewBox="0 0 36 12" aria-hidden="true">{"".join(parts)}</svg>'


@cache
def _marker_path(marker: str) -> str:
    """The outline of a marker in the middle of a key, as an SVG path."""
    shape = MarkerStyle(marker)
    outline = shape.get_path().transformed(shape.get_transform() + _KEY_MIDDLE)
    (polygon,) = outline.to_polygons(closed_only=True)
    corners = np.asarray(polygon, dtype=np.float64)[:-1]
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in corners) + "z"
