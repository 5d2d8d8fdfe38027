"""The site's own pages from their templates; they share the report's style."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from marginbench.harness.words import visible_lines
from marginbench.reports.drawing.canvas import PALETTE

_TEMPLATES = Path(__file__).parents[1] / "templates"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(template: str, values: dict[str, Any]) -> bytes:
    """A page of the site.

    Parameters
    ----------
    template : str
        Its file in ``templates/``.
    values : dict
        What the template is given.
    """
    text = _environment().get_template(template).render(palette=PALETTE, **values)
    # No name or description may hide or reorder what stands beside it.
    return visible_lines(text, sys.maxsize).encode()
