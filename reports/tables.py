"""Tables as page and terminal show them: the same cells in both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import pandas as pd
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ..harness.results.measures import Measure
from ..harness.words import visible
from . import formatting
from .formatting import unused
from .frames import records
from .statistics import summary

# Tables with more columns than this have a row for each task instead.
_MOST_COLUMNS = 9


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    value: str  # a value, or why there is none
    range: str = ""  # minimum to maximum, or what else belongs below the value; empty for nothing
    note: str = ""  # what a reader must know of the value, such as how many runs are behind it
    best: bool = False  # of its column
    absent: bool = False  # it stands for no value
    incomplete: bool = False  # it counts too few runs, or differs where all should agree
    code: bool = False  # whether it is a name of the code or a hash
    hint: str = ""  # what a short value stands for, in full
    shade: int | None = None  # how far it is from the best, from 0 on; None: not shaded
    number: float | None = None  # what the page sorts it by; None: by its text, after all numbers

    @property
    def sort_key(self) -> str:
        """What the page sorts it by, as text; empty where there is no number."""
        return "" if self.number is None or not math.isfinite(self.number) else f"{self.number:.9g}"


# More columns than this are printed on a page turned sideways, or each row as a card.
_UPRIGHT, _MOST_ON_PAPER = 7, 17

#: Stands for no value.
NONE = Cell(formatting.DASH, absent=True)


@dataclass(frozen=True)
class Heading:
    """The heading of a column."""

    title: str
    style: str = ""  # the class of its cells: "number", "wide", "reason" or "statuses"
    group: str = ""  # the heading above it and its neighbours of the same group
    short: str = ""  # the heading in the terminal; empty: the terminal leaves the column out
    term: str = ""  # the measure that it shows, for its definition; empty: its title is the term


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading."""

    label: str  # read out in its place
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    style: str = ""  # a class for all of it
    name: str = ""  # the name of its files, unique on the page; empty: no export writes it
    caption: str = ""  # what its numbers are, for a table that stands alone
    # What the cells say, not formatted; None where they are texts.
    numbers: pd.DataFrame | None = field(default=None, compare=False, repr=False)
    # Whether each row is a card on a narrow screen: for rows that are read one by one, where a
    # reader of numbers compares down the columns.
    cards: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """What it says, not formatted; of a table of texts a column of texts for each heading."""
        if self.numbers is not None:
            return self.numbers
        columns: dict[str, list[str]] = {}
        for index, heading in enumerate(self.headings):
            # The value of a cell in full, where the page abbreviates it.
            texts = [row[index].hint or row[index].value for row in self.rows]
            columns[unused(heading.title, columns, " ")] = texts
        return pd.DataFrame(columns)

    @property
    def layout(self) -> str:
        """Classes that tell how it is laid out on a narrow screen and on paper."""
        columns = len(self.headings)
        paper = "stacked" if columns > _MOST_ON_PAPER else "landscape" if columns > _UPRIGHT else ""
        return " ".join(filter(None, ("cards" if self.cards else "", paper)))

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of headings with the number of columns in each; empty without any."""
        spans = [
            (name, len(list(each))) for name, each in groupby(self.headings, lambda h: h.group)
        ]
        return spans if any(name for name, _ in spans) else []


@dataclass(frozen=True)
class Column(Heading):
    """A column of a table whose rows are those of a frame."""

    # Its cell in a row of the frame, or the name of a column of texts.
    of: Callable[[Mapping[str, Any]], Cell] | str = ""

    def cell(self, row: Mapping[str, Any]) -> Cell:
        """The cell of a row."""
        return Cell(str(row[self.of])) if isinstance(self.of, str) else self.of(row)


def hash_cell(digits: str) -> Cell:
    """The cell of a hash, of which a column has no room for more than the beginning."""
    return Cell(digits[:12], code=True, hint=digits)


def number_cell(value: float, say: Callable[[float], str]) -> Cell:
    """The cell of a number, a dash where there is none."""
    return NONE if pd.isna(value) else Cell(say(value), number=value)


def number_column(title: str, name: str, say: Callable[[float], str], **more: Any) -> Column:
    """A column of the numbers of a column of the frame."""
    return Column(title, "number", of=lambda row: number_cell(row[name], say), **more)


def framed(label: str, frame: pd.DataFrame, columns: Sequence[Column], **more: Any) -> Table:
    """A table with a row for each row of a frame, which are its numbers."""
    rows = [[column.cell(row) for column in columns] for row in records(frame)]
    return Table(label, columns, rows, **{"numbers": frame} | more)


def matrix(
    label: str,
    frame: pd.DataFrame,
    rows: tuple[str, Iterable[str]],
    columns: tuple[str, Mapping[str, str]],
    cell: Callable[[Mapping[str, Any]], Cell],
    first: str = "Solver",
    column_style: str = "number",
    **more: Any,
) -> Table:
    """A table with a cell for each pair of two keys of a frame, such as solver and task.

    ``rows`` and ``columns`` are the name of a key and its values in order, columns with their
    titles; ``cell`` makes that of the row of a pair; a dash stands where there is none. Rows
    without any are left out. The frame is its numbers.
    """
    (index, labels), (key, headings) = rows, columns
    by_pair = {(row[index], row[key]): row for row in records(frame)}
    names = {name for name, _ in by_pair}
    cells = [
        [
            Cell(name),
            *(cell(by_pair[name, each]) if (name, each) in by_pair else NONE for each in headings),
        ]
        for name in labels
        if name in names
    ]
    more = {"style": "matrix", "numbers": frame} | more
    return Table(
        label,
        [Heading(first), *(Heading(title, column_style) for title in headings.values())],
        cells,
        **more,
    )


def narrow(table: Table) -> Table:
    """A table with a column for each task; with a row for each where there are many."""
    if len(table.headings) <= max(_MOST_COLUMNS, len(table.rows)):
        return table
    style = table.headings[-1].style
    headings = [
        Heading("Task"),
        *(Heading(row[0].value, style) for row in table.rows),
    ]
    rows = [
        [Cell(heading.title), *(row[index] for row in table.rows)]
        for index, heading in enumerate(table.headings)
        if index
    ]
    return replace(table, headings=headings, rows=rows)


def measure_cell(row: Mapping[str, Any], measure: Measure) -> Cell:
    """The cell of one row of :func:`marginbench.reports.statistics.summary.results_table`."""
    if row["absent"]:
        return NONE if row["absent"] == summary.NO_RUN else Cell(row["absent"], absent=True)
    value, low, high = (formatting.say(measure, row[name]) for name in ("median", "low", "high"))
    notes = []
    if 0 < row["n_reached"] < row["n"]:
        notes.append(f"{row['n_reached']} of {row['n']} runs")
    first = formatting.say(measure, row["first"])
    if row["first"] < row["median"] and first != value:
        notes.append(f"first at {first}")
    bound = formatting.AT_MOST if row["upper_bound"] and value != formatting.NEVER else ""
    return Cell(
        value=bound + value,
        range=formatting.spread(low, high),
        note=", ".join(notes),
        best=bool(row["best"]),
        number=row["median"],
    )


@dataclass(frozen=True)
class TerminalTable:
    """A table for rich below a title, of the columns with a short heading.

    In a terminal that is too narrow for it the ranges below values go; in one that is too narrow
    all the same each row is a line of its own.
    """

    table: Table
    title: str

    @property
    def _columns(self) -> list[tuple[int, Heading]]:
        return [(place, each) for place, each in enumerate(self.table.headings) if each.short]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterable[RenderableType]:
        """The title, and the first form that fits."""
        yield Text(self.title, style="bold", overflow="fold")
        unbounded = options.update(max_width=_UNBOUNDED)
        for ranged in (True, False):
            drawn = self.drawn(ranged)
            if console.measure(drawn, options=unbounded).maximum <= options.max_width:
                yield drawn
                return
        for row in self.table.rows:
            line = Text(overflow="fold")
            for place, heading in self._columns:
                if place:
                    line.append(f"{': ' if place == 1 else '; '}{heading.short} ", "dim")
                line.append_text(_terminal_text(row[place], ranged=False))
            yield line

    def drawn(self, ranged: bool = True) -> RichTable:
        """The table, whose cells wrap wherever they must."""
        drawn = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for _, heading in self._columns:
            start, _, last = heading.short.rpartition(" ")
            justify: JustifyMethod = "right" if heading.style == "number" else "left"
            drawn.add_column(f"{start}\n{last}".strip(), justify=justify, overflow="fold")
        for row in self.table.rows:
            drawn.add_row(*(_terminal_text(row[place], ranged) for place, _ in self._columns))
        return drawn


_UNBOUNDED = 10_000  # characters, more than any line has


def _terminal_text(cell: Cell, ranged: bool) -> Text:
    style = "yellow" if cell.incomplete else "bold" if cell.best else "dim" if cell.absent else ""
    text = Text(visible(cell.value), style=style)
    if ranged and cell.range:
        text.append(f"\n{visible(cell.range)}", style="dim not bold")
    return text
