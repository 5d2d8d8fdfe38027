"""Figures as files that stand alone: with a legend, at the width of a column, in light colours."""

from __future__ import annotations

import copy
import io
import itertools
import re
import textwrap
import warnings
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FixedLocator
from matplotlib.transforms import Bbox, ScaledTranslation

from ...harness.words import visible, visible_lines
from ..drawing.canvas import INK, Drawing
from ..drawing.styles import SolverStyle
from .contents import FoundFigure

#: Formats of figures that are drawn.
DRAWN = ("svg", "pdf", "png")
# Points; what journals ask for at least.
_SMALLEST = 8.0
_PAD = 0.03  # inches around everything
_ROOM = 0.06  # inches between the axes and the legend
_DPI = 300
_PROGRAM = "marginbench"
# Text stays text, and the same figure gives the same bytes. Labels are no formulas.
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": _PROGRAM,
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "text.usetex": False,
}
_FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def rendered(
    found: FoundFigure,
    styles: Mapping[str, SolverStyle],
    formats: tuple[str, ...],
    width: float,
    *,
    transparent: bool = False,
) -> dict[str, bytes]:
    """A figure in each of several formats.

    Parameters
    ----------
    found : FoundFigure
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
    drawing = found.panel.drawing
    assert drawing is not None
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # A letter that the font lacks is a box in PDF and PNG, and itself in SVG.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _fitted(drawing, found.panel.title, _legend_entries(found, styles), width)
        figure.patch.set(visible=not transparent, facecolor="white", edgecolor="none")
        return {name: _WRITERS[name](figure, drawing) for name in formats}


def _fitted(
    drawing: Drawing, title: str, entries: list[tuple[Line2D, str]], width: float
) -> Figure:
    """A copy of the figure at a width, with readable text, its title and its legend."""
    figure = copy.deepcopy(drawing.figure)
    FigureCanvasAgg(figure)  # what measures text
    old_width, old_height = figure.get_size_inches()
    scale = width / old_width
    figure.set_size_inches(width, old_height * scale)
    figure.draw_without_rendering()  # ticks have their labels only now
    _shrink(figure, min(1.0, scale))
    above = _add_title(figure, title, width)
    below = 0.0
    if entries and not _has_legend(figure):
        legend = _add_legend(figure, entries, width)
        below = _inches(legend.get_window_extent(), figure).height + _ROOM
    figure.set_size_inches(width, old_height * scale + above + below)
    # Labels depend on the ticks that there is room for, and the room on the labels.
    for _ in range(2):
        _fill(figure, above, below)
        for axes in figure.axes:
            _thin_ticks(axes)
    return figure


def _shrink(figure: Figure, factor: float) -> None:
    """Thinner lines and smaller marks and text, the text never below what can be read."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = axis.get_ticklabels()
            if labels:
                size = max(_SMALLEST, float(labels[0].get_fontsize()) * factor)
                axis.set_tick_params(labelsize=size)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontsize(max(_SMALLEST, float(text.get_fontsize()) * factor))
    for line in figure.findobj(Line2D):
        assert isinstance(line, Line2D)
        line.set(
            linewidth=line.get_linewidth() * factor,
            markersize=line.get_markersize() * factor,
            markeredgewidth=line.get_markeredgewidth() * factor,
        )
    for marks in figure.findobj(Collection):
        assert isinstance(marks, Collection)
        marks.set_linewidth([width * factor for width in np.atleast_1d(marks.get_linewidth())])


def _has_legend(figure: Figure) -> bool:
    return bool(figure.legends) or any(axes.get_legend() is not None for axes in figure.axes)


def _legend_entries(
    found: FoundFigure, styles: Mapping[str, SolverStyle]
) -> list[tuple[Line2D, str]]:
    """The solvers of the page's legend that the figure shows, with what is said of their runs."""
    drawing = found.panel.drawing
    assert drawing is not None
    shown = set(drawing.data["solver"]) if "solver" in drawing.data else None
    return [
        (_key(styles[entry.label]), entry.label + (f" ({entry.note})" if entry.note else ""))
        for entry in found.gallery.legend
        if entry.label in styles and (shown is None or entry.label in shown)
    ]


def _key(style: SolverStyle) -> Line2D:
    return Line2D(
        [], [], color=style.color, marker=style.marker, lw=1.2, ms=4.5,
        linestyle=(0, style.dashes) if style.dashes else "-",
    )  # fmt: skip


def _add_title(figure: Figure, title: str, width: float) -> float:
    """The title at the upper edge: vertical axes have no words of their own; its height."""
    words = textwrap.wrap(visible(title), int(width * 72 / (0.55 * _SMALLEST)))
    below_edge = ScaledTranslation(_PAD, -_PAD, figure.dpi_scale_trans)
    text = figure.text(
        0.0, 1.0, "\n".join(words), fontsize=_SMALLEST, color=INK, va="top", ha="left",
        transform=figure.transFigure + below_edge,
    )  # fmt: skip
    return _inches(text.get_window_extent(), figure).height + _PAD + _ROOM


def _add_legend(figure: Figure, entries: list[tuple[Line2D, str]], width: float) -> Legend:
    """The legend at the lower edge, in as many columns as fit."""
    letters = int(width * 72 / (0.6 * _SMALLEST)) - 6
    words = ["\n".join(textwrap.wrap(visible(label), letters)) for _, label in entries]
    legend: Legend | None = None
    for columns in range(len(entries), 0, -1):
        if legend is not None:
            legend.remove()
        legend = figure.legend(
            [key for key, _ in entries], words, loc="lower left", ncols=columns,
            bbox_to_anchor=(_PAD / width, 0.0), fontsize=_SMALLEST, frameon=False, borderpad=0.2,
            borderaxespad=0.0, labelspacing=0.25, handlelength=1.9, handletextpad=0.5,
            columnspacing=1.1,
        )  # fmt: skip
        extent = _inches(legend.get_window_extent(), figure)
        if extent.x1 <= width - _PAD:
            break
    assert legend is not None
    return legend


def _fill(figure: Figure, above: float, below: float) -> None:
    """Move all axes together, so that they and their labels fill what title and legend leave."""
    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    if not drawn:
        return
    outer = _inches(Bbox.union([box for axes in drawn if (box := axes.get_tightbbox())]), figure)
    frame = Bbox.union([axes.get_position() for axes in drawn])
    inner = Bbox.from_extents(
        frame.x0 * width, frame.y0 * height, frame.x1 * width, frame.y1 * height
    )
    target = Bbox.from_extents(
        _PAD + inner.x0 - outer.x0,
        below + _PAD + inner.y0 - outer.y0,
        width - _PAD - (outer.x1 - inner.x1),
        height - above - _PAD - (outer.y1 - inner.y1),
    )
    if target.width <= 0 or target.height <= 0:
        return  # labels wider than the figure: it stays as it was drawn
    for axes in drawn:
        place = axes.get_position()
        axes.set_position(
            (
                (target.x0 + (place.x0 - frame.x0) / frame.width * target.width) / width,
                (target.y0 + (place.y0 - frame.y0) / frame.height * target.height) / height,
                place.width / frame.width * target.width / width,
                place.height / frame.height * target.height / height,
            )
        )


def _thin_ticks(axes: Axes) -> None:
    """Leave out every second tick of a logarithmic axis while their labels run into each other."""
    for axis, side in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        while axis.get_scale() == "log" and _overlap(axis, side):
            locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
            if not isinstance(locator, FixedLocator) or not isinstance(formatter, FixedFormatter):
                break
            axis.set_major_locator(FixedLocator(list(axis.get_majorticklocs())[::2]))
            axis.set_major_formatter(FixedFormatter(list(formatter.seq)[::2]))


def _overlap(axis: Axis, side: str) -> bool:
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    gap = 3.0 if side == "x" else 0.0
    ends = sorted((getattr(box, f"{side}0"), getattr(box, f"{side}1")) for box in boxes)
    return any(after[0] < before[1] + gap for before, after in itertools.pairwise(ends))


def _inches(box: Bbox, figure: Figure) -> Bbox:
    return Bbox(box.get_points() / figure.dpi)


def _svg(figure: Figure, drawing: Drawing) -> bytes:
    buffer = io.StringIO()
    words = {"Title": visible(drawing.title), "Description": visible(drawing.description, 10_000)}
    FigureCanvasSVG(figure).print_figure(
        buffer, format="svg", metadata={**words, "Creator": _PROGRAM, "Date": None}
    )
    # Releases of matplotlib write the font in one property or in several.
    text = re.sub(r"(font: (?:\w+ )*?[\d.]+px) [^;\"]*", rf"\1 {_FONTS}", buffer.getvalue())
    text = re.sub(r"font-family: [^;\"]*", f"font-family: {_FONTS}", text)
    return visible_lines(text, len(text) * 2).encode()


def _pdf(figure: Figure, drawing: Drawing) -> bytes:
    words = {"Title": visible(drawing.title), "Subject": visible(drawing.description, 10_000)}
    return _printed(
        FigureCanvasPdf(figure), "pdf", {**words, "Creator": _PROGRAM, "CreationDate": None}
    )


def _png(figure: Figure, drawing: Drawing) -> bytes:
    canvas, words = FigureCanvasAgg(figure), {"Title": visible(drawing.title)}
    return _printed(canvas, "png", {**words, "Software": _PROGRAM})


def _printed(
    canvas: FigureCanvasPdf | FigureCanvasAgg, format_: str, metadata: Mapping[str, str | None]
) -> bytes:
    buffer = io.BytesIO()
    canvas.print_figure(buffer, format=format_, dpi=_DPI, metadata=dict(metadata))
    return buffer.getvalue()


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
