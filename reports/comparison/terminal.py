"""A comparison for the terminal: a line of summary, then tables, the worst first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ...harness.words import visible
from ..tables import Cell, Table
from . import settings, tables, words

if TYPE_CHECKING:
    from .result import Comparison


# Columns in a file or a pipe, where nothing says how wide a line may be.
_WIDTH = 110


def in_words(comparison: Comparison, width: int, *, all_rows: bool, color: bool = False) -> str:
    """The text, of lines no wider than the terminal.

    Parameters
    ----------
    comparison : Comparison
    width : int
        Columns of the terminal.
    all_rows : bool
        Whether values without a change have rows, too.
    color : bool
        Whether the terminal shows colours.
    """
    return printed(_parts(comparison, all_rows), width, color=color)


def printed(parts: Iterable[RenderableType], width: int, *, color: bool = False) -> str:
    """Texts and tables as lines no wider than a terminal, but for commands to copy."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
    )
    for item in parts:
        # A command that is broken into lines could not be copied.
        console.print(item, soft_wrap=isinstance(item, Text) and item.plain.startswith("  git "))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def terminal() -> tuple[int, bool]:
    """The width of the standard output, and whether it shows colours."""
    found = Console(file=sys.stdout)
    known = found.is_terminal or "COLUMNS" in os.environ
    width = found.width if known else _WIDTH
    return width, found.is_terminal and not found.no_color


def _parts(comparison: Comparison, all_rows: bool) -> Iterator[RenderableType]:
    yield Text(f"{comparison.verdict}: {words.headline(comparison)}", style="bold")
    for side in (comparison.before, comparison.after):
        yield Text(visible(f"{side.name}: {side.words}"))
    frame = comparison.frame
    chosen = words.ordered(frame) if all_rows else words.told(frame)
    means = comparison.solvers if all_rows else words.judged_apart(comparison.solvers)
    # What failed is worse than any number.
    lacking = comparison.n_newly_failed + comparison.n_newly_missing > 0
    shown = [
        tables.outcomes_table(comparison) if lacking else None,
        tables.measures_table(comparison, chosen, "Values") if len(chosen) else None,
        tables.solvers_table(comparison, means) if len(means) else None,
        None if lacking else tables.outcomes_table(comparison),
        tables.differences_table(comparison.environment, "Environments"),
        tables.differences_table(settings.merged(_code(comparison, all_rows)), "Solvers"),
    ]
    for table in filter(None, shown):
        yield Text()
        yield _drawn(table)
    yield Text()
    if not all_rows:
        yield from (Text(line, style="dim") for line in words.untold_lines(comparison))
    for line in words.notes(comparison):
        yield Text(f"note: {line}", style="yellow")


def _code(comparison: Comparison, all_rows: bool) -> list[settings.Difference]:
    """What differs between the solvers; in short with the number of source files."""
    return comparison.code if all_rows else settings.without_sources(comparison.code)


def _drawn(table: Table) -> RichTable:
    """A table whose cells wrap, wherever they must, to fit the terminal."""
    drawn = RichTable(title=Text(table.label, style="bold"), title_justify="left", box=None)
    drawn.padding = (0, 2, 0, 0)
    shown = [place for place, heading in enumerate(table.headings) if heading.short]
    for place in shown:
        heading = table.headings[place]
        right = heading.style == "number"
        drawn.add_column(Text(heading.short), justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(_text(row[place]) for place in shown))
    return drawn


def _text(cell: Cell) -> Text:
    style = "yellow" if cell.incomplete else "dim" if cell.absent else ""
    note = f" ({cell.note})" if cell.note else ""
    return Text(visible(cell.value + note), style=style)
