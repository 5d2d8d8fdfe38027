"""The documentation of a registered solver as HTML, and its papers as BibTeX."""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from docutils.core import publish_parts
from docutils.utils import SystemMessage
from markupsafe import Markup

from ...solvers.registration import entries

_SETTINGS: Mapping[str, Any] = {
    # Warnings are errors here, so that none gets into a page unseen.
    "report_level": 2,
    "halt_level": 2,
    "_disable_config": True,
    "raw_enabled": False,
    "file_insertion_enabled": False,
    "doctitle_xform": False,
    "initial_header_level": 2,
    "smart_quotes": False,
    "syntax_highlight": "none",
}
_LITERAL = re.compile(r"(``.*?``)", re.DOTALL)
_ROLE = re.compile(r":\w+:`~?([^`]+)`")
# A term of a list without a text of its own: the next line is a term as well, or the end.
_BARE_TERM = re.compile(r"^(\w+ : .*)\n(?! )", re.MULTILINE)
_REFERENCE = re.compile(r"^\.\. \[\w+\] (.*?)(?=^\.\. \[|\Z)", re.DOTALL | re.MULTILINE)
_CITED = re.compile(
    r"(?P<authors>[^:]+): (?P<title>.+?[.!?]) (?P<rest>.*?(?P<year>\d{4})[^.]*)\. "
    r"BibTeX key ``(?P<key>\w+)``\."
)


def documentation(name: str, pages: Mapping[str, str]) -> Markup:
    """The docstring of a registered solver as HTML.

    numpydoc is reStructuredText with formulas in plain text: docutils renders it once the
    characters that formulas have in common with its markup are escaped.

    Parameters
    ----------
    name : str
        Of the registry.
    pages : mapping of str to str
        Addresses of the pages of other solvers by name, for links.

    Raises
    ------
    ValueError
        If the docstring is not valid reStructuredText.
    """
    text = re.sub(r"\n{3,}", "\n\n", _docstring(name))
    try:
        parts = publish_parts(
            _plain_markup(text, pages),
            writer="html5",
            settings_overrides={**_SETTINGS, "warning_stream": io.StringIO()},
        )
    except SystemMessage as error:
        raise ValueError(f"the docstring of {name} cannot be rendered: {error}") from None
    return Markup(parts["body"])


def bibtex(name: str) -> list[str]:
    """A BibTeX entry for each paper that a registered solver's docstring names.

    It has what the docstring says: authors by their last names, title, where, year and key.
    """
    cited = (" ".join(item.split()) for item in _REFERENCE.findall(_docstring(name)))
    return [_entry(found) for item in cited if (found := _CITED.fullmatch(item))]


def _docstring(name: str) -> str:
    cls = getattr(import_module(entries()[name].module), name)
    return inspect.getdoc(cls) or ""


def _plain_markup(text: str, pages: Mapping[str, str]) -> str:
    """The docstring with only that markup which it means."""
    parts = _LITERAL.split(_BARE_TERM.sub(r"\1\n    ..\n", text))
    return "".join(part if place % 2 else _escaped(part, pages) for place, part in enumerate(parts))


def _escaped(text: str, pages: Mapping[str, str]) -> str:
    text = re.sub(r"([|*])", r"\\\1", text)
    # alpha_ is no link; [SBP12]_ is one.
    text = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)
    return _ROLE.sub(lambda role: _named(role[1], pages), text)


def _named(target: str, pages: Mapping[str, str]) -> str:
    """The class that a role names, linked if the site has a page of it."""
    name = target.rpartition(".")[2]
    return f"`{name} <{pages[name]}>`__" if name in pages else f"``{target}``"


def _entry(cited: re.Match[str]) -> str:
    authors = " and ".join(cited["authors"].split(", "))
    rest = [] if cited["rest"] == cited["year"] else [f"  howpublished = {{{cited['rest']}}},"]
    lines = [
        f"@misc{{{cited['key']},",
        f"  author = {{{authors}}},",
        f"  title = {{{{{cited['title'].removesuffix('.')}}}}},",
        *rest,
        f"  year = {{{cited['year']}}},",
        "}",
    ]
    return "\n".join(lines)
