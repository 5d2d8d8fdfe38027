"""Turn a matplotlib figure into SVG text that can stand inside a page among others."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "marginbench"}


def inline(
    figure: Figure,
    prefix: str,
    *,
    title: str = "",
    description: str = "",
    colors: Mapping[str, str] | None = None,
) -> str:
    """Render a figure as an ``<svg>`` element for a page.

    The same figure gives the same text at any time. Text stays text, in the page's own font.

    Parameters
    ----------
    figure : Figure
    prefix : str
        Put before every id, so that several figures on one page do not clash.
    title, description : str
        Read out in place of the figure; without a title the figure is decoration.
    colors : mapping of str to str, optional
        CSS custom properties by lower-case hexadecimal colour, so that the page's colour scheme
        decides: ``{"#1f2328": "--ink"}``. The colour itself stays as the fallback.

    Returns
    -------
    str
    """
    buffer = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        FigureCanvasSVG(figure).print_figure(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    width, height = _view_box(text)
    body = re.sub(r"^.*?<svg\b[^>]*>|</svg>\s*$", "", text, flags=re.DOTALL)
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", body)
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r'(?<= d=")[^"]*', lambda path: compact_path(path[0]), body)
    # The page's font; sizes, weights and alignment stay.
    body = re.sub(r"font: ((?:\w+ )*?[\d.]+px) [^;\"]*", r"font: \1 var(--sans, sans-serif)", body)
    for color, name in (colors or {}).items():
        body = body.replace(color, f"var({name}, {color})")
    label, texts = 'aria-hidden="true"', ""
    if title:
        label = f'role="img" aria-labelledby="{prefix}-title {prefix}-desc"'
        texts = (
            f'<title id="{prefix}-title">{escape(title)}</title>'
            f'<desc id="{prefix}-desc">{escape(description)}</desc>'
        )
    return f'<svg viewBox="0 0 {width} {height}" {label}>{texts}{body.strip()}</svg>'


def compact_path(path: str) -> str:
    """The same path in less text, to a hundredth of a unit, far below what can be seen.

    Step curves are made of horizontal and vertical pieces; pieces in one direction become one.
    """
    commands: list[str] = []
    x = y = heading = 0.0
    for command in filter(str.strip, path.split("\n")):
        name, *numbers = command.split()
        values = [round(float(number), 2) for number in numbers]
        if name != "L":
            heading = 0.0
            commands.append(name + " ".join(f"{value:g}" for value in values))
        elif values[1] == y and values[0] != x:
            turn = math.copysign(1.0, values[0] - x)
            if heading == turn:
                commands.pop()
            heading = turn
            commands.append(f"H{values[0]:g}")
        elif values[0] == x:
            heading = 0.0
            commands.append(f"V{values[1]:g}")
        else:
            heading = 0.0
            commands.append(f"L{values[0]:g} {values[1]:g}")
        if len(values) >= 2:
            x, y = values[-2:]
    return "".join(commands)


def _view_box(text: str) -> tuple[str, str]:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    if found is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    return found[1], found[2]
