"""What can be exported: the figures and tables of the page, by names that stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from ..analysis import Analysis
from ..naming import slug, unused
from ..panels import Gallery, PanelView
from ..sections import Part, sections_of
from ..tables import Table


@dataclass(frozen=True)
class FoundFigure:
    """A figure of the page.

    Attributes
    ----------
    name : str
        Its anchor on the page.
    part : str
        The heading that it stands below.
    panel : PanelView
        With a drawing.
    gallery : Gallery
        With its legend.
    """

    name: str
    part: str
    panel: PanelView
    gallery: Gallery

    @property
    def title(self) -> str:
        """What it shows."""
        return f"{self.part}: {self.panel.title}"


@dataclass(frozen=True)
class FoundTable:
    """A table of the page.

    Attributes
    ----------
    name : str
        The anchor of its part, with a name of its own where the part has several tables.
    part : str
        The heading that it stands below.
    table : Table
    """

    name: str
    part: str
    table: Table

    @property
    def title(self) -> str:
        """What it shows."""
        return self.table.label


@dataclass(frozen=True)
class Contents:
    """The figures and tables of a page by name, in its order."""

    figures: dict[str, FoundFigure]
    tables: dict[str, FoundTable]


def contents(analysis: Analysis) -> Contents:
    """All figures with something to show and all tables, of whatever sections a study has."""
    figures: dict[str, FoundFigure] = {}
    tables: dict[str, FoundTable] = {}
    for section in sections_of(analysis):
        for part in section.parts(analysis):
            found = list(_exportable(part.data))
            for gallery in (item for item in found if isinstance(item, Gallery)):
                for figure in _figures(part, gallery):
                    figures.setdefault(figure.name, figure)
            for table in _tables(part, (item for item in found if isinstance(item, Table))):
                name = unused(table.name, tables)
                tables[name] = FoundTable(name, table.part, table.table)
    return Contents(figures, tables)


def _figures(part: Part, gallery: Gallery) -> Iterator[FoundFigure]:
    for panel in gallery.panels:
        if panel.drawing is not None:
            yield FoundFigure(f"{gallery.prefix}-{panel.name}", part.title, panel, gallery)


def _tables(part: Part, found: Iterable[Table]) -> Iterator[FoundTable]:
    tables = list(found)
    for table in tables:
        name = table.name or ("" if len(tables) == 1 else slug(table.label))
        yield FoundTable(f"{part.anchor}-{name}" if name else part.anchor, part.title, table)


def _exportable(value: object) -> Iterator[Gallery | Table]:
    """The galleries and tables in what a template is given, however sections nest them."""
    if isinstance(value, Gallery | Table):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _exportable(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _exportable(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _exportable(getattr(value, each.name))
