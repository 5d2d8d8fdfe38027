"""What changed between two commits, for the terminal: the verdict, then the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console, RenderableType
from rich.text import Text

from ...harness.words import visible
from ..fitting import Column, Entry, FittedTable
from ..formatting import DASH, plural
from . import words
from .annotations import Annotation
from .verdicts import CellVerdict, Change, Verdict
from .words import Pair

#: Rows of a table unless all are wanted.
_FEW = 15
_STYLES: dict[Verdict, str] = {
    "failed": "bold red",
    "regression": "red",
    "mixed": "yellow",
    "gone": "red",
    "improvement": "green",
    "mended": "green",
}


def in_words(pair: Pair, width: int, *, all_rows: bool = False, color: bool = False) -> str:
    """The text, of lines no wider than the terminal, but for commands to copy.

    Parameters
    ----------
    pair : Pair
    width : int
        Columns of the terminal.
    all_rows : bool
        Whether tables are printed whole.
    color : bool
    """
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
    )
    for item in _parts(pair, None if all_rows else _FEW):
        # A command that is broken into lines could not be copied.
        console.print(item, soft_wrap=isinstance(item, Text) and item.plain.startswith("  git "))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def _parts(pair: Pair, most: int | None) -> Iterator[RenderableType]:
    comparison = pair.comparison
    yield Text(words.headline(comparison), style="bold")
    for name, commit in (("base", pair.base), ("head", pair.head)):
        yield Text(visible(f"{name} {commit.short}  {commit.date}  {commit.subject}".rstrip()))
    changed = [each for each in comparison.cells if each.verdict != "unchanged"]
    refused = [each for each in changed if each.refused]
    if changed:
        yield Text()
        yield _groups(pair)
        yield from _cells(changed, most)
    yield from _known(changed)
    if comparison.advice:
        yield Text()
        yield _times(comparison.advice[:most])
        yield from _more(len(comparison.advice), most)
    if refused:
        yield Text()
        yield Text("Reproduce", style="bold")
        for each in refused[:most]:
            yield Text(f"  {words.reproduce(each.cell, pair.head)}")
        yield from _more(len(refused), most)
    lines = [*pair.notes, *words.notes(comparison)]
    if lines:
        yield Text()
    yield from (Text(f"note: {visible(line)}", style="yellow") for line in lines)


def _groups(pair: Pair) -> FittedTable:
    found = words.groups(pair.comparison)
    return FittedTable(
        "By solver",
        [
            Column("solver", [Entry(visible(each.name)) for each in found]),
            Column("cells", [Entry(_counted(each)) for each in found], weight=2),
            Column(
                "changes", [Entry("; ".join(each.measures) or DASH) for each in found], weight=1
            ),
        ],
    )


def _counted(group: words.Group) -> str:
    return ", ".join(
        f"{number} of {group.n_cells}: {verdict}" for verdict, number in group.verdicts
    )


def _cells(changed: Sequence[CellVerdict], most: int | None) -> Iterator[RenderableType]:
    """A row for each change, and one for each cell that has none to show."""
    rows = [row for each in changed for row in _rows(each)]
    yield Text()
    shown = rows[:most]
    headings = (("cell", 9), ("verdict", 8), ("measure", 7), ("before", 5), ("after", 6))
    columns = [
        Column(
            name, [row[place] for row in shown], right=name in ("before", "after"), weight=weight
        )
        for place, (name, weight) in enumerate(headings)
    ]
    columns.append(Column("change", [row[5] for row in shown], weight=7))
    columns.append(Column("bound", [row[6] for row in shown], weight=1))
    yield FittedTable("By cell, the worst first", columns)
    yield from _more(len(rows), most)


def _rows(each: CellVerdict) -> Iterator[list[Entry]]:
    style = _STYLES.get(each.verdict, "")
    start = [Entry(visible(each.cell.name or each.cell.suite)), Entry(each.verdict, style=style)]
    if not each.told or each.verdict in ("failed", "gone"):
        yield [*start, *(Entry(DASH) for _ in range(5))]
        return
    for change in each.told:
        yield [
            *start,
            Entry(change.measure.title + (" (known)" if change.accepted else "")),
            Entry(words.value_words(change, change.before)),
            Entry(words.value_words(change, change.after)),
            Entry(words.ratio_words(change), style="red" if change.worse else "green"),
            Entry(change.measure.bound_words),
        ]


def _known(changed: Sequence[CellVerdict]) -> Iterator[RenderableType]:
    """Why changes for the worse are accepted, each reason once."""
    entries = [each.accepted for each in changed] + [
        change.accepted for each in changed for change in each.changes
    ]
    reasons = dict.fromkeys(each.why for each in entries if each)
    if reasons:
        yield Text()
    for why in reasons:
        n = sum(
            any(each and each.why == why for each in (cell.accepted, *_accepted(cell)))
            for cell in changed
        )
        yield Text(visible(f"known change, {plural(n, 'cell')}: {why}"), style="cyan")


def _accepted(cell: CellVerdict) -> list[Annotation | None]:
    return [change.accepted for change in cell.changes]


def _times(advice: Sequence[Change]) -> FittedTable:
    return FittedTable(
        "Times and memory, which only advise: ratios, of times with 99 % intervals",
        [
            Column("cell", [Entry(visible(each.key.cell.name)) for each in advice]),
            Column("measure", [Entry(each.measure.title) for each in advice], weight=1),
            Column(
                "before", [Entry(words.value_words(each, each.before)) for each in advice], True, 2
            ),
            Column(
                "after", [Entry(words.value_words(each, each.after)) for each in advice], True, 3
            ),
            Column("change", [Entry(words.estimate_words(each)) for each in advice], weight=4),
        ],
    )


def _more(total: int, most: int | None) -> Iterator[RenderableType]:
    if most is not None and total > most:
        yield Text(f"and {total - most} more; --all prints them", style="dim")
