"""How solvers look in every panel, and the keys of legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from marginbench.reports.drawing.canvas import COLOR_VARIABLES, PALETTE
from marginbench.reports.drawing.svg import inline

_MARKERS = "os^DvPX<>p"
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.6), (1.4, 1.4), (6, 1.6, 1.4, 1.6))


@dataclass(frozen=True)
class SolverStyle:
    """How a solver looks in every panel: colour, marker and dashes."""

    color: str
    marker: str
    dashes: tuple[float, ...]


def solver_styles(labels: Sequence[str]) -> dict[str, SolverStyle]:
    """A style for each solver: the first ten differ in colour and marker, later ones in dashes."""
    return {
        label: SolverStyle(
            color=PALETTE[place % len(PALETTE)][0],
            marker=_MARKERS[(place + place // len(PALETTE)) % len(_MARKERS)],
            dashes=_DASHES[(place // len(PALETTE)) % len(_DASHES)],
        )
        for place, label in enumerate(labels)
    }


def swatch(style: SolverStyle, prefix: str) -> str:
    """A short piece of a solver's line, for the legend."""
    figure = Figure(figsize=(0.5, 0.17))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    figure.patch.set_visible(False)
    axes.plot(
        [0.04, 0.96], [0.5, 0.5], color=style.color, lw=1.8, dashes=style.dashes or (None, None)
    )
    axes.plot([0.5], [0.5], ls="", color=style.color, marker=style.marker, ms=6)
    return inline(figure, prefix, colors=COLOR_VARIABLES)
