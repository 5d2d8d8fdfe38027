"""Figures as files that stand alone: with a legend, at the width of a column, in light colours."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...harness.words import visible, visible_lines
from ..drawing.canvas import (
    INK,
    SETTINGS,
    SMALLEST_FONT,
    Drawing,
    Sheet,
    SolverStyle,
    saved,
    text_width,
)
from ..view import Figure as View

#: Formats of figures that are drawn.
DRAWN = ("svg", "pdf", "png")
_DPI = 300
_PROGRAM = "marginbench"
_LINE = 1.3 * SMALLEST_FONT  # points
_KEY = 4.0 * SMALLEST_FONT  # points that the key of a legend needs, with the gap behind its words
_FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def rendered(
    found: View,
    styles: Mapping[str, SolverStyle],
    formats: tuple[str, ...],
    width: float,
    *,
    transparent: bool = False,
) -> dict[str, bytes]:
    """A figure in each of several formats.

    Parameters
    ----------
    found : View
    styles : mapping of str to SolverStyle
        By solver label, for the legend.
    formats : tuple of str
        Of :data:`DRAWN`.
    width : float
        Inches.
    transparent : bool
        Without the white ground.

    Returns
    -------
    dict of str to bytes
        By format; the same figure gives the same bytes.
    """
    drawing = found.drawing
    assert drawing is not None
    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # A letter that the font lacks is a box in PDF and PNG, and itself in SVG.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _standalone(drawing, found.title, _legend_entries(found, styles), 72 * width)
        figure.patch.set(visible=not transparent, facecolor="white", edgecolor="none")
        return {name: _WRITERS[name](figure, drawing) for name in formats}


def _standalone(
    drawing: Drawing, title: str, entries: list[tuple[Line2D, str]], width: float
) -> Figure:
    """The figure drawn at a width in points, with its title and its legend."""
    longest = max((text_width(label, SMALLEST_FONT) for _, label in entries), default=0.0)
    columns = max(min(int(width / (longest + _KEY)), len(entries)), 1)
    letters = int((width - _KEY) / text_width("x", SMALLEST_FONT))
    words = ["\n".join(textwrap.wrap(visible(label), letters)) for _, label in entries]
    heading = textwrap.wrap(visible(title), letters)
    n_lines = len(heading) + sum(word.count("\n") + 1 for word in words) / columns + 1
    figure = drawing.on(Sheet(width, extra=_LINE * n_lines))
    # Vertical axes have no words of their own: the title says them.
    figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=SMALLEST_FONT, color=INK)
    if entries:
        figure.legend(
            [key for key, _ in entries], words, loc="outside lower left", ncols=columns,
            fontsize=SMALLEST_FONT, labelcolor=INK, frameon=False, labelspacing=0.25,
            handlelength=1.9, handletextpad=0.5, columnspacing=1.1,
            borderaxespad=0.0, borderpad=0.2,
        )  # fmt: skip
    # The layout is the same in all formats, whichever are asked for.
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _legend_entries(found: View, styles: Mapping[str, SolverStyle]) -> list[tuple[Line2D, str]]:
    """The solvers of the page's legend that the figure shows, with what is said of their runs."""
    drawing = found.drawing
    assert drawing is not None
    shown = set(drawing.data["solver"]) if "solver" in drawing.data else None
    return [
        (_key(styles[entry.label]), entry.label + (f" ({entry.note})" if entry.note else ""))
        for entry in found.legend
        if entry.label in styles and (shown is None or entry.label in shown)
    ]


def _key(style: SolverStyle) -> Line2D:
    return Line2D(
        [], [], color=style.color, marker=style.marker, lw=1.2, ms=4.5,
        linestyle=(0, style.dashes) if style.dashes else "-",
    )  # fmt: skip


def _svg(figure: Figure, drawing: Drawing) -> bytes:
    FigureCanvasSVG(figure)
    words = {"Title": visible(drawing.title), "Description": visible(drawing.description, 10_000)}
    metadata = {**words, "Creator": _PROGRAM, "Date": None}
    # Releases of matplotlib write the font in one property or in several.
    text = saved(figure, "svg", metadata=metadata).decode()
    text = re.sub(r"(font: (?:\w+ )*?[\d.]+px) [^;\"]*", rf"\1 {_FONTS}", text)
    text = re.sub(r"font-family: [^;\"]*", f"font-family: {_FONTS}", text)
    return visible_lines(text, len(text) * 2).encode()


def _pdf(figure: Figure, drawing: Drawing) -> bytes:
    FigureCanvasPdf(figure)
    words = {"Title": visible(drawing.title), "Subject": visible(drawing.description, 10_000)}
    metadata: dict[str, Any] = {**words, "Creator": _PROGRAM, "CreationDate": None}
    return saved(figure, "pdf", metadata=metadata)


def _png(figure: Figure, drawing: Drawing) -> bytes:
    FigureCanvasAgg(figure)
    metadata = {"Title": visible(drawing.title), "Software": _PROGRAM}
    return saved(figure, "png", dpi=_DPI, metadata=metadata)


_WRITERS = {"svg": _svg, "pdf": _pdf, "png": _png}


def inches(text: str) -> float:
    """A width as LaTeX writes lengths: "3.4in", "8.6cm", "86mm" or "245pt"; inches without a unit.

    Raises
    ------
    ValueError
        If it is none, or not between 1 and 30 inches.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(in|cm|mm|pt|)\s*", text)
    if found is None:
        raise ValueError("give a number with in, cm, mm or pt, such as 3.4in")
    value = float(found[1]) / _UNITS[found[2] or "in"]
    if not 1.0 <= value <= 30.0:
        raise ValueError("it must be from 1in to 30in")
    return value


# To an inch.
_UNITS = {"in": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.27}
