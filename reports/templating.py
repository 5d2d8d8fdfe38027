"""Pages from the templates in ``templates/``: one shell and one style for all of them."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

import jinja2

from ..data_loaders.atomic import replacing
from ..harness.interrupts import interrupts_deferred
from ..harness.storage import holds, storing
from ..harness.words import visible_lines
from .drawing.canvas import PALETTE, Sheet
from .formatting import has_long_word

#: Where they are.
TEMPLATES = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """The templates, with escaping; an unknown name is an error."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"palette": PALETTE, "sheet": Sheet(kept={})}
    templates.tests["long"] = has_long_word
    return templates


def page(template: jinja2.Template, **values: object) -> str:
    """A page from its template, in which no text from elsewhere hides or reorders other text."""
    return visible_lines(template.render(**values), sys.maxsize)


def write_page(path: Path, text: str, **remedy: str) -> bool:
    """Write a page, atomically, and whether it had to be; a StorageError if that fails.

    A file that is the same page already stays as it is, with its time of change.
    """
    page = text.encode()
    if holds(path, page):
        return False
    with interrupts_deferred(), storing(path, **remedy), replacing(path) as sink:
        sink.write(page)
    return True


def page_script(*names: str) -> str:
    """Scripts of pages by patterns of their names, in one; a page is whole without them."""
    parts = sorted({part for name in names for part in (TEMPLATES / "scripts").glob(f"{name}.js")})
    return "\n".join(part.read_text(encoding="utf-8") for part in parts)


def script_source(*scripts: str) -> str:
    """What the security policy of a page allows to run: these scripts, and no other."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
