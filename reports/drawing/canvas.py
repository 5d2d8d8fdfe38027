"""What all panels share: size and colours, and how axes are dressed and written as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .svg import inline

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
#: Eight points in print, where a panel is half as wide as an A4 page.
FONT = 13.0

# In points. A panel on a phone is as wide as this, give or take a tenth.
_WIDTH, _HEIGHT = 388.8, 262.8
_LEFT, _RIGHT, _BOTTOM, _TOP = 57.0, 8.0, 45.0, 8.0
# Between the end of the axes and the labels of the lines that end there.
LEADER = 9.0
#: Height of a label at the end of a line.
LABEL = 1.08 * FONT
_CHARACTER = 0.6


def text_width(text: str) -> float:
    """About how wide a text is, in points; the page's font decides."""
    return _CHARACTER * FONT * len(text)


def panel_axes(ends: Sequence[str] = ()) -> Axes:
    """The axes of a new panel, without a ground of their own: the page's shows through.

    Parameters
    ----------
    ends : sequence of str
        The labels that lines will have beside the panel; it becomes as high as they need.
    """
    right = _RIGHT
    if ends:
        right += LEADER + max(map(text_width, ends))
    height = max(_HEIGHT - _BOTTOM - _TOP, LABEL * len(ends))
    return axes_of_size(_WIDTH, height + _BOTTOM + _TOP, (_LEFT, right, _BOTTOM, _TOP))


def axes_of_size(width: float, height: float, margins: tuple[float, float, float, float]) -> Axes:
    """The only axes of a new figure, with margins on the left, right, below and above: points."""
    left, right, bottom, top = margins
    figure = Figure(figsize=(width / 72, height / 72))
    figure.patch.set_visible(False)
    frame = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - bottom - top) / height,
    )
    axes: Axes = figure.add_axes(frame)
    axes.patch.set_visible(False)
    return axes


def length(axes: Axes, which: str) -> float:
    """The length of the x or y axis in points."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    box = axes.get_position()
    width, height = figure.get_size_inches()
    return float(72 * (box.width * width if which == "x" else box.height * height))


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
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.spines["bottom"].set(color=MUTED, linewidth=0.7)


def rule(axes: Axes, value: float) -> None:
    """A dashed horizontal line from side to side."""
    axes.axhline(value, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)


def annotate_line(axes: Axes, value: float, text: str, place: float, *, above: bool) -> None:
    """A label at a horizontal line, from 0 at the left to 1 at the right end of the axes."""
    axes.annotate(
        text,
        xy=(0.008 + 0.984 * place, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2.5 if above else -2.5),
        textcoords="offset points",
        horizontalalignment="left" if place < 0.4 else "right" if place > 0.6 else "center",
        verticalalignment="bottom" if above else "top",
        fontsize=FONT,
        color=MUTED,
    )
