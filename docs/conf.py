"""The documentation site: sphinx-build -W docs docs/_build/html (or tox -e docs)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402

SOLVERS = {name for names in pages.solvers().values() for name in names}

project = "marginbench"
author = "The marginbench developers"
copyright = f"2026, {author}"
release = pages.version()

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "Thumbs.db"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
# TOML has no lexer of its own for parts of a file, and a prompt is no part of a command.
copybutton_exclude = ".linenos, .gp, .go"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

html_theme = "furo"
html_title = f"marginbench {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
templates_path: list[str] = []


def _inline_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block_math(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(
        f'<div class="math" tabindex="0">{tex2mathml(node.astext(), as_block=True)}</div>'
    )
    raise nodes.SkipNode


def _skipped(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to each estimator for its routing of metadata."""
    return True if name.endswith("_request") or name == "get_metadata_routing" else None


def _escaped(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [pages.bars_escaped(line) for line in lines]
    if name.removeprefix("marginbench.") in SOLVERS:
        lines[:] = [line.replace(".. rubric:: Notes", ".. rubric:: Cost") for line in lines]


def _signature(app: Any, what: str, name: str, obj: Any, options: Any, *given: str) -> Any:
    """None for solvers: their parameters follow, with defaults."""
    return ("", None) if name.removeprefix("marginbench.") in SOLVERS else None


def _solver_pages(app: Any, docname: str, source: list[str]) -> None:
    """Link pages of solvers where Markdown links their files, which a git host shows."""
    source[0] = re.sub(r"\[(\w+)\]\(\.\./solvers/[\w/]+\.py\)", r"[\1](solvers/\1.rst)", source[0])
    source[0] = source[0].replace("](../solvers)", "](solvers/index.rst)")


#: Expressions for what Sphinx and Furo write that axe finds fault with, and what replaces it.
ACCESSIBLE = {
    r'<p class="caption" role="heading">': r'<p class="caption" role="heading" aria-level="2">',
    # Who has no mouse scrolls what is wider than the page.
    r"<pre>": r'<pre tabindex="0">',
    r'<div class="(table-wrapper[^"]*)">': r'<div class="\1" tabindex="0">',
    r'<aside class="sidebar-drawer">': r'<aside class="sidebar-drawer" aria-label="Site">',
    r'<aside class="toc-drawer">': r'<aside class="toc-drawer" aria-label="This page">',
    # Roles that browsers no longer know.
    r' role="doc-biblioentry"': "",
    r'<div role="list" class="citation-list">': r'<div class="citation-list">',
    r'<th class="head"><p></p></th>': "<td></td>",
    # Lists of modules: what is in a package belongs to its item.
    r"</li>\n<ul>": r"\n<ul>",
    r"</ul><li>": r"</ul></li>\n<li>",
    r'(?<=id="furo-main-content">)(?=\s*<noscript>)': "<h1>Search</h1>",
}


def _make_accessible(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text("utf-8")
            for pattern, replacement in ACCESSIBLE.items():
                text = re.sub(pattern, replacement, text)
            path.write_text(text, "utf-8")


def setup(app: Any) -> None:
    """Typeset formulas as MathML, which browsers show without a script, and write pages."""
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    app.connect("source-read", _solver_pages)
    app.connect("autodoc-skip-member", _skipped)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _escaped, priority=900)
    app.connect("build-finished", _make_accessible)
    app.connect("builder-inited", lambda app: pages.write(HERE))
