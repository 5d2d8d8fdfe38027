"""What all panels share: size and colours, and how axes are dressed and written as SVG."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import seaborn as sns
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from marginbench.reports.drawing.svg import inline

INK, MUTED, RULE = "#1f2328", "#656a72", "#dcdcd6"
GROUND = "#fdfdfb"
#: Colours of the solvers on light and on dark ground. The first seven are told apart with any
#: colour vision (after Okabe and Ito, 2008); markers tell all ten apart.
PALETTE: tuple[tuple[str, str], ...] = (
    ("#0b6fb3", "#58a9e6"),
    ("#d55e00", "#f0883e"),
    ("#0a8f6a", "#3fc79a"),
    ("#b3558f", "#e08fc0"),
    ("#c98a00", "#e9b949"),
    ("#3aa6dc", "#8fd0f5"),
    ("#3d2f94", "#9d92f0"),
    ("#8a2353", "#d8698f"),
    ("#7f7f1f", "#c6c65a"),
    ("#6e7177", "#a9adb5"),
)
#: CSS custom properties of the page by the colour that stands for them in a figure.
COLOR_VARIABLES: dict[str, str] = {
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    GROUND: "--card",
} | {light: f"--solver-{place}" for place, (light, _) in enumerate(PALETTE)}
FONT = 10.0

_SIZE = (5.4, 3.55)  # inches: 389 x 256 units, 1 unit about 1 px on a phone
_FRAME = (0.138, 0.158, 0.842, 0.815)


def panel_axes() -> Axes:
    """The axes of a new panel, without a ground of their own: the page's shows through."""
    figure = Figure(figsize=_SIZE)
    figure.patch.set_visible(False)
    axes: Axes = figure.add_axes(_FRAME)
    axes.patch.set_visible(False)
    return axes


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn, for the page or for a file.

    Attributes
    ----------
    figure : Figure
    title, description : str
        Read out in place of the figure.
    data : DataFrame
        The numbers that are drawn.
    """

    figure: Figure
    title: str
    description: str
    data: pd.DataFrame

    def svg(self, prefix: str) -> Markup:
        """An ``<svg>`` element in the page's colours, its ids unique by their prefix."""
        words = {"title": self.title, "description": self.description}
        return Markup(inline(self.figure, prefix, **words, colors=COLOR_VARIABLES))


def drawing(axes: Axes, title: str, description: str, data: pd.DataFrame) -> Drawing:
    """The figure of the axes with its words and numbers."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    return Drawing(figure, title, description, data)


def dress(axes: Axes, xlabel: str) -> None:
    """Horizontal rules, a line below, quiet ticks, and the words below the horizontal axis."""
    axes.set_xlabel(xlabel, fontsize=FONT, color=MUTED, labelpad=3)
    axes.set_ylabel("")
    axes.tick_params(length=3, width=0.7, color=MUTED, labelsize=FONT, labelcolor=INK, pad=3)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=RULE, lw=0.6)
    axes.set_axisbelow(True)
    sns.despine(ax=axes, left=True)
    axes.spines["bottom"].set(color=MUTED, linewidth=0.7)


def labelled_line(
    axes: Axes, value: float, text: str, *, above: bool = False, right: bool = False
) -> None:
    """A dashed horizontal line; its label stands below it at the left, or as asked."""
    axes.axhline(value, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
    axes.annotate(
        text,
        xy=(0.992 if right else 0.008, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2.5 if above else -2.5),
        textcoords="offset points",
        horizontalalignment="right" if right else "left",
        verticalalignment="bottom" if above else "top",
        fontsize=FONT - 1,
        color=MUTED,
    )
