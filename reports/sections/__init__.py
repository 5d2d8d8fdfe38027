"""The sections of a page, one module for each.

A section defined in a module of this package is on the page and in the terminal, of the studies
that it is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from ..analysis import Analysis
from ..discovery import members

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Part:
    """What a section puts under one heading of the page.

    Attributes
    ----------
    anchor : str
        Unique on the page: where links to it lead.
    title : str
        The heading.
    data : mapping
        What the section's template is given.
    """

    anchor: str
    title: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Section:
    """A section of the page: what it shows, when, and where.

    Attributes
    ----------
    anchor, title : str
        Of its heading, see :class:`Part`.
    place : int
        Sections are in ascending order.
    template : str
        The file in ``templates/`` that makes HTML of its data.
    kinds : tuple of str
        Names of the kinds of studies that it is for; empty for every kind.
    """

    anchor: ClassVar[str]
    title: ClassVar[str]
    place: ClassVar[int]
    template: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ()

    def applies(self, analysis: Analysis) -> bool:
        """Whether a study of its kinds has it."""
        return True

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """What its template is given: numbers in words, tables and figures."""
        return {}

    def parts(self, analysis: Analysis) -> Iterable[Part]:
        """Its headings on the page; one, with its data, unless it has one for each task, say."""
        return [Part(self.anchor, self.title, self.data(analysis))]

    def key_figures(self, analysis: Analysis) -> list[tuple[str, str]]:
        """What it has for the head of the page: words and a number."""
        return []

    def terminal(self, analysis: Analysis) -> Iterable[RenderableType]:
        """What it prints to the terminal."""
        return []


@cache
def _sections() -> tuple[Section, ...]:
    return tuple(sorted(members(__name__, Section), key=lambda section: section.place))


def sections_of(analysis: Analysis) -> list[Section]:
    """The sections of a study, in their order."""
    return [
        section
        for section in _sections()
        if (not section.kinds or analysis.kind in section.kinds) and section.applies(analysis)
    ]
