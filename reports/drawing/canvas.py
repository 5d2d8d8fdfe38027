"""The theme of all figures: colours, styles of solvers, sizes, and how a figure becomes SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, MUTED, RULE = "#1f2328", "#656a72", "#dcdcd6"
GROUND = "#fdfdfb"
#: Colours of the solvers on light and on dark ground. The first seven are distinct with any
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
} | {light: f"--solver-{index}" for index, (light, _) in enumerate(PALETTE)}
#: Eight points in print, where a panel is half as wide as an A4 page.
FONT = 13.0
#: In points. A panel on a phone is as wide as this, give or take a tenth.
WIDTH, HEIGHT = 388.8, 262.8
#: Margins of a panel on the left, right, below and above the axes.
MARGINS = (57.0, 8.0, 45.0, 8.0)
#: What journals ask for at least.
SMALLEST_FONT = 8.0
#: Text stays text, and the same figure gives the same bytes. Labels are no formulas.
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "marginbench",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "text.usetex": False,
}
_MARKERS = "os^DvPX<>p"
_GLYPHS = dict(zip(_MARKERS, "●■▲◆▼✚✖◀▶⬟", strict=True))
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.6), (1.4, 1.4), (6, 1.6, 1.4, 1.6))


@dataclass(frozen=True)
class SolverStyle:
    """How a solver looks in every figure; no dashes make a line without gaps."""

    color: str
    marker: str
    dashes: tuple[float, ...]

    def line(self, width: float, size: float) -> dict[str, Any]:
        """matplotlib's options for its line, of so many points, and for its markers."""
        return {
            "color": self.color, "dashes": self.dashes or (None, None), "lw": width,
            "marker": self.marker, "ms": size, "mec": GROUND, "mew": 0.7,
        }  # fmt: skip


def solver_styles(labels: Sequence[str]) -> dict[str, SolverStyle]:
    """A style for each solver; those of more than forty repeat."""
    return {
        label: SolverStyle(
            color=PALETTE[index % len(PALETTE)][0],
            marker=_MARKERS[(index + index // len(PALETTE)) % len(_MARKERS)],
            dashes=_DASHES[(index // len(PALETTE)) % len(_DASHES)],
        )
        for index, label in enumerate(labels)
    }


def swatch(style: SolverStyle) -> Markup:
    """A solver's marker on a piece of its line, for the legend of a page."""
    color = f"var({COLOR_VARIABLES[style.color]}, {style.color})"
    line = "dashed" if style.dashes else "solid"
    return Markup(
        f'<span class="swatch" style="--solver: {color}; --line: {line}" aria-hidden="true">'
        f"{_GLYPHS.get(style.marker, '')}</span>"
    )


@dataclass(frozen=True)
class Sheet:
    """What a figure is drawn on."""

    # In points, of a figure that stands alone; None on a page, where figures have their own.
    width: float | None = None
    extra: float = 0.0  # points of height for a title and a legend
    # Axes by their layout, on which the next figure of lines is drawn in place of the last, where
    # each is saved at once: to make them takes as long as to save a figure.
    kept: dict[tuple[Any, ...], Axes] | None = field(default=None, compare=False)

    @property
    def scale(self) -> float:
        """What lines and marks are scaled by."""
        return 1.0 if self.width is None else min(1.0, self.width / WIDTH)

    @property
    def font(self) -> float:
        """The size of text."""
        return max(SMALLEST_FONT, FONT * self.scale)

    def axes(self, *layout: Any) -> Axes:
        """Empty axes with a layout, as :func:`new_axes` takes it, for lines, bands and texts."""
        if self.kept is None or layout not in self.kept:
            axes = new_axes(self, *layout)
            if self.kept is not None:
                self.kept[layout] = axes
            return axes
        axes = self.kept[layout]
        for artist in (*axes.lines, *axes.collections, *axes.texts):
            artist.remove()
        axes.set(xscale="linear", yscale="linear", xlabel="")
        axes.relim()
        axes.autoscale()
        return axes


#: A figure on a page.
PAGE = Sheet()


def new_axes(
    sheet: Sheet = PAGE,
    width: float = WIDTH,
    height: float = HEIGHT,
    margins: tuple[float, float, float, float] = MARGINS,
) -> Axes:
    """The only axes of a new figure, without a ground of their own: the page's shows through."""
    theme: dict[Any, Any] = {
        "font.size": sheet.font, "axes.labelsize": sheet.font, "axes.labelcolor": MUTED,
        "axes.labelpad": 3, "axes.edgecolor": MUTED, "axes.linewidth": 0.7 * sheet.scale,
        "axes.spines.left": False, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True,
        "grid.color": RULE, "grid.linewidth": 0.6 * sheet.scale,
        "xtick.labelsize": sheet.font, "ytick.labelsize": sheet.font, "xtick.color": MUTED,
        "xtick.labelcolor": INK, "ytick.labelcolor": INK, "xtick.major.size": 3,
        "ytick.major.size": 0, "xtick.major.pad": 3, "ytick.major.pad": 3,
        "xtick.major.width": 0.7 * sheet.scale,
    }  # fmt: skip
    left, right, bottom, top = margins
    with mpl.rc_context(theme):
        if sheet.width is None:
            figure = Figure(figsize=(width / 72, height / 72))
            frame = (left / width, bottom / height)
            size = ((width - left - right) / width, (height - bottom - top) / height)
            axes: Axes = figure.add_axes((*frame, *size))
        else:
            size = (sheet.width / 72, (height * sheet.width / width + sheet.extra) / 72)
            figure = Figure(figsize=size, layout="constrained")
            axes = figure.add_subplot()
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    # No words stand beside them, whose place would be sought among the labels of ticks.
    axes.yaxis.set_label_coords(0.0, 0.5)
    return axes


def figure_of(axes: Axes) -> Figure:
    """The figure of axes."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    return figure


def text_width(text: str, font: float = FONT) -> float:
    """About how wide a text is, in points; the page's font decides."""
    return 0.6 * font * len(text)


@dataclass(frozen=True)
class Drawing:
    """A figure, for the page or for a file.

    Title and description are read out in its place; ``data`` are the numbers that are drawn.
    """

    draw: Callable[[Sheet], Figure]
    title: str
    description: str
    data: pd.DataFrame

    def on(self, sheet: Sheet) -> Figure:
        """The figure on a sheet."""
        with mpl.rc_context(SETTINGS):
            return self.draw(sheet)

    def svg(self, prefix: str, sheet: Sheet = PAGE) -> Markup:
        """An ``<svg>`` element in the page's colours, its ids unique by their prefix."""
        return Markup(inline(self.on(sheet), prefix, self.title, self.description))


def drawing(axes: Axes, title: str, description: str, data: pd.DataFrame | None = None) -> Drawing:
    """A figure that is drawn already, for a page."""
    figure = figure_of(axes)
    return Drawing(lambda _: figure, title, description, pd.DataFrame() if data is None else data)


# In a tag nothing is of the user's own; texts between them may hold anything.
_TAGS = re.compile(r"<(?:path|use|text)\b[^>]*>")
_BEYOND_HUNDREDTHS = re.compile(r"(?<=\.\d\d)\d+")
_FONT = "var(--sans, sans-serif)"


def saved(figure: Figure, format_: str, **options: Any) -> bytes:
    """The figure as a file; the same figure gives the same bytes at any time."""
    buffer = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(buffer, format=format_, **options)
    return buffer.getvalue()


def inline(figure: Figure, prefix: str, title: str = "", description: str = "") -> str:
    """The figure as an ``<svg>`` element for a page.

    Text stays text, in the page's own font; colours of the theme are the page's, so that its colour
    scheme decides.
    """
    FigureCanvasSVG(figure)
    text = saved(figure, "svg", metadata={"Date": None}).decode()
    head, _, body = text.rpartition("</svg>")[0].partition("</metadata>")
    box = re.search(r'viewBox="[^"]*"', head)
    body = re.sub(r"\n\s+", "\n", _TAGS.sub(_shortened, body)).replace("xlink:href=", "href=")
    for reference in (' id="', ' href="#', "url(#"):
        body = body.replace(reference, f"{reference}{prefix}-")
    for color, name in COLOR_VARIABLES.items():
        body = body.replace(color, f"var({name}, {color})")
    label, texts = 'aria-hidden="true"', ""
    if title:
        label = f'role="img" aria-labelledby="{prefix}-title {prefix}-desc"'
        texts = (
            f'<title id="{prefix}-title">{escape(title)}</title>'
            f'<desc id="{prefix}-desc">{escape(description)}</desc>'
        )
    return f"<svg {box[0] if box else ''} {label}>{texts}{body.strip()}</svg>"


def _shortened(tag: re.Match[str]) -> str:
    """A tag with numbers to a hundredth of a point, and its words in the page's font."""
    text = _BEYOND_HUNDREDTHS.sub("", tag[0])
    if text.startswith("<path"):
        return text.replace(" \n", "").replace("L ", "L").replace("M ", "M").replace("C ", "C")
    if text.startswith("<use"):
        return text
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    # Sizes, weights and alignment stay. Which of the two forms it is depends on matplotlib.
    text = re.sub(r"font: ((?:\w+ )*?[\d.]+px) [^;\"]*", rf"font: \1 {_FONT}", text)
    return re.sub(r"(?<=px; )font-family: [^;\"]*", f"font-family: {_FONT}", text)
