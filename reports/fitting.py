"""Tables that fit a terminal of any width: what there is no room for is left out, and named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

_GAP = 2
# The first column gets no more than this share of the line where its names are longer.
_FIRST = 0.34
_LEAST = 10


@dataclass(frozen=True)
class Entry:
    """One entry: its text, what stands below it where there is room, and its style."""

    text: str
    below: str = ""
    style: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table in a terminal.

    Attributes
    ----------
    heading : str
    entries : sequence of Entry
    right : bool
        Whether it is aligned at the right, as numbers are.
    weight : int
        The columns with the least are left out first, of equal ones the last.
    """

    heading: str
    entries: Sequence[Entry]
    right: bool = False
    weight: int = 0

    @property
    def lines(self) -> list[str]:
        """The heading, its last word on a line of its own."""
        first, _, last = self.heading.rpartition(" ")
        return [first, last] if first else [last]

    @property
    def width(self) -> int:
        """What it needs at least: "not instrumented" breaks between its words, never inside."""
        words = (word for entry in self.entries for word in entry.text.split(" "))
        return _longest([*self.lines, *words])

    @property
    def full_width(self) -> int:
        """What it needs with what stands below its entries."""
        return max(self.width, _longest(entry.below for entry in self.entries))

    @property
    def text_width(self) -> int:
        """What it needs where no entry breaks."""
        return max(self.width, _longest(entry.text for entry in self.entries))

    @property
    def natural_width(self) -> int:
        """What it needs for all of that."""
        return max(self.full_width, self.text_width)


def _longest(texts: Iterable[str]) -> int:
    return max((Text(text).cell_len for text in texts), default=0)


@dataclass(frozen=True)
class Fit:
    """What a terminal shows of a table.

    Attributes
    ----------
    widths : dict of int to int
        The widths of the columns shown, by their places, in their order.
    ranged : frozenset of int
        The columns that show what stands below their entries.
    """

    widths: dict[int, int]
    ranged: frozenset[int]


def fit(columns: Sequence[Column], width: int) -> Fit:
    """Choose what fits: columns by their weight, then all of the names, then what stands below.

    Parameters
    ----------
    columns : sequence of Column
        The first one names the rows and always stays.
    width : int
        Of the terminal, in characters.
    """
    widths = {0: min(columns[0].width, max(_LEAST, int(_FIRST * width)))}
    room = width - widths[0]
    by_weight = sorted(range(1, len(columns)), key=lambda place: (-columns[place].weight, place))
    for place in by_weight:
        needed = columns[place].width + _GAP
        if needed > room:
            break
        widths[place] = columns[place].width
        room -= needed
    ranged = []
    for place in list(widths):
        column = columns[place]
        more = (column.full_width if place else column.natural_width) - widths[place]
        if more <= room:
            ranged.append(place)
            widths[place] += more
            room -= more
    for place in widths:
        column = columns[place]
        wanted = column.natural_width if place in ranged else column.text_width
        more = min(room, max(0, wanted - widths[place]))
        widths[place] += more
        room -= more
    return Fit(dict(sorted(widths.items())), frozenset(ranged))


@dataclass(frozen=True)
class FittedTable:
    """A table for rich that chooses its columns when it knows the width of the terminal.

    Attributes
    ----------
    title : str
    columns : sequence of Column
    """

    title: str
    columns: Sequence[Column]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterable[RenderableType]:
        """The table, and which columns it leaves out."""
        chosen = fit(self.columns, options.max_width)
        yield Text(self.title, style="bold", overflow="fold")
        yield self._drawn(chosen)
        absent = [
            column.heading
            for place, column in enumerate(self.columns)
            if place not in chosen.widths
        ]
        if absent:
            yield Text(f"not shown for lack of width: {', '.join(absent)}", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """From the narrowest terminal that it can be read in to the width of all of it."""
        widest = sum(column.natural_width + _GAP for column in self.columns)
        return Measurement(min(widest, 2 * _LEAST), widest)

    def _drawn(self, chosen: Fit) -> RichTable:
        drawn = RichTable(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
        for place, width in chosen.widths.items():
            column = self.columns[place]
            drawn.add_column(
                Text("\n".join(column.lines)),
                justify="right" if column.right else "left",
                width=width,
                overflow="fold",
            )
        for row in range(len(self.columns[0].entries)):
            drawn.add_row(
                *(
                    _cell(self.columns[place].entries[row], place in chosen.ranged)
                    for place in chosen.widths
                )
            )
        return drawn


def _cell(entry: Entry, ranged: bool) -> Text:
    text = Text(entry.text, style=entry.style)
    if ranged and entry.below:
        text.append(f"\n{entry.below}", style="dim not bold")
    return text
