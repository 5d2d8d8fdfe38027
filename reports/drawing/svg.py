"""Turn a matplotlib figure into SVG text that can stand inside a page among others."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# In a tag nothing is of the user's own; texts between them may hold anything.
_TAGS = re.compile(r"<(?:path|use|text)\b[^>]*>")
_FONT = "var(--sans, sans-serif)"
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
    body = _TAGS.sub(_shortened, body)
    body = re.sub(r"\n\s+", "\n", body)
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


def _shortened(tag: re.Match[str]) -> str:
    """A tag with its numbers in less text, and its words in the page's font."""
    text = re.sub(r'(?<= d=")[^"]*', lambda path: compact_path(path[0]), tag[0])
    text = re.sub(r'(?<= [xy]=")[^"]*', lambda number: f"{_hundredth(number[0]):g}", text)
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    # Sizes, weights and alignment stay. Which of the two forms it is depends on matplotlib.
    text = re.sub(r"font: ((?:\w+ )*?[\d.]+px) [^;\"]*", rf"font: \1 {_FONT}", text)
    return re.sub(r"(?<=px; )font-family: [^;\"]*", f"font-family: {_FONT}", text)


def compact_path(path: str) -> str:
    """The same path in less text, to a hundredth of a unit, far below what can be seen.

    Step curves are made of horizontal and vertical pieces; pieces in one direction become one.
    """
    commands: list[str] = []
    x = y = 0.0
    heading: tuple[str, bool] | None = None
    for command in path.split("\n"):
        if not (words := command.split()):
            continue
        name, values = words[0], [_hundredth(word) for word in words[1:]]
        if name != "L":
            heading = None
            commands.append(name + " ".join(f"{value:g}" for value in values))
        else:
            to_x, to_y = values
            if to_x == x and to_y == y and commands[-1][0] in "HVL":
                continue  # alone a point may be a dot; after a line it adds nothing
            if to_y == y and to_x != x:
                turned, heading = heading, ("H", to_x > x)
                line = f"H{to_x:g}"
            elif to_x == x:
                turned, heading = heading, ("V", to_y > y)
                line = f"V{to_y:g}"
            else:
                turned = heading = None
                line = f"L{to_x:g} {to_y:g}"
            if heading and turned == heading:
                commands[-1] = line
            else:
                commands.append(line)
        if len(values) >= 2:
            x, y = values[-2:]
    return "".join(commands)


# Steps have each coordinate twice, and panels of one kind share those of their axes.
@lru_cache(maxsize=2**14)
def _hundredth(number: str) -> float:
    return round(float(number), 2)


def _view_box(text: str) -> tuple[str, str]:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    if found is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    return found[1], found[2]
