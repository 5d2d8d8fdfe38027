"""Tables as page and terminal show them: the same cells in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from rich.table import Table as RichTable
from rich.text import Text

from marginbench.harness.measures import Measure
from marginbench.harness.words import visible
from marginbench.reports import formatting
from marginbench.reports.statistics import summary


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes
    ----------
    value : str
        A value, or why there is none.
    range : str
        Minimum to maximum, or what else belongs below the value; empty for nothing.
    note : str
        What a reader must know of the value, such as how many runs are behind it.
    best, absent, incomplete : bool
        Whether it is the best of its column, stands for no value, or counts too few runs.
    code : bool
        Whether it is a name of the code or a hash.
    hint : str
        What a short value stands for, in full.
    shade : int or None
        How far it is from the best, from 0 on; None: not shaded.
    """

    value: str
    range: str = ""
    note: str = ""
    best: bool = False
    absent: bool = False
    incomplete: bool = False
    code: bool = False
    hint: str = ""
    shade: int | None = None


#: Stands for no value.
NONE = Cell(formatting.DASH, absent=True)


@dataclass(frozen=True)
class Heading:
    """The heading of a column.

    Attributes
    ----------
    title : str
    style : str
        The class of its cells: "number", "wide", "reason" or "statuses".
    group : str
        What stands above it and its neighbours of the same group.
    short : str
        The heading in the terminal; empty: the terminal leaves the column out.
    """

    title: str
    style: str = ""
    group: str = ""
    short: str = ""


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes
    ----------
    label : str
        Read out in its place.
    headings : sequence of Heading
    rows : sequence of sequence of Cell
    style : str
        A class for all of it.
    differing : frozenset of int
        The rows to point out, as their cells should agree and do not.
    name : str
        Unique in its part of the page, where that has several tables: for files.
    caption : str
        What its numbers are, for a table that stands alone.
    numbers : DataFrame or None
        What the cells say, not formatted; None where they are texts.
    """

    label: str
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    style: str = ""
    differing: frozenset[int] = frozenset()
    name: str = ""
    caption: str = ""
    numbers: pd.DataFrame | None = field(default=None, compare=False, repr=False)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of headings with the number of columns in each; empty without any."""
        found: list[tuple[str, int]] = []
        for heading in self.headings:
            if heading.group and found and found[-1][0] == heading.group:
                found[-1] = (heading.group, found[-1][1] + 1)
            else:
                found.append((heading.group, 1))
        return found if any(name for name, _ in found) else []


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
    if row["claimed"]:
        notes.append("claimed")
    bound = f"≤{formatting.THIN}" if row["upper_bound"] and value != formatting.NEVER else ""
    return Cell(
        value=bound + value,
        range=formatting.spread(low, high),
        note=", ".join(notes),
        best=bool(row["best"]),
    )


def terminal_table(table: Table, title: str) -> RichTable:
    """The table for a terminal: its columns with a short heading, values without ranges."""
    shown = [place for place, heading in enumerate(table.headings) if heading.short]
    drawn = RichTable(title=Text(title, style="bold"), title_justify="left", box=None)
    drawn.padding = (0, 2, 0, 0)
    for place in shown:
        heading = table.headings[place]
        # In a narrow terminal "not instrumented" breaks between its words, never inside one.
        words = [word for row in table.rows for word in row[place].value.split(" ")]
        first, _, last = heading.short.rpartition(" ")
        drawn.add_column(
            Text(f"{first}\n{last}" if first else last),
            justify="right" if heading.style == "number" else "left",
            min_width=max(map(len, words), default=0) if heading.style == "number" else None,
        )
    for row in table.rows:
        drawn.add_row(
            *(Text(visible(row[place].value), style=_terminal_style(row[place])) for place in shown)
        )
    return drawn


def _terminal_style(cell: Cell) -> str:
    if cell.incomplete:
        return "yellow"
    return "bold" if cell.best else "dim" if cell.absent else ""
