"""What the gate says of two commits, as text and as a page, and the page of a history."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup
from rich.console import RenderableType
from rich.text import Text

from ...harness.environment import version
from ...harness.words import visible
from ..comparison.report import printed, write_html
from ..formatting import DASH, TIMES, plural
from ..frames import records
from ..naming import slugs
from ..tables import NONE, Cell, Heading, Table, terminal_table
from ..templating import environment, page, page_script, script_source
from ..wording import capitalised
from .asv_files import Snapshot
from .gate import EXIT_FAILED, EXIT_SAME, Gate, Pair, change_words, reproduce
from .history import History
from .measures import Watched

#: The scripts of these pages: tables sort and filter.
SCRIPTS = ("00_page", "10_hash", "20_tables")
# Rows of a table in the terminal unless all are wanted.
_FEW = 15


def write_pair_page(path: Path, pair: Pair) -> Path:
    """Write the page of two commits, atomically.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    return write_html(path, render_pair(pair), "regressions.html")


def render_pair(pair: Pair) -> str:
    """The page of two commits, as HTML text."""
    gate = pair.gate
    return page_of(
        "regressions_pair.html",
        pair=pair,
        headline=capitalised(gate.headline),
        bad=gate.exit_code != EXIT_SAME,
        verdict=gate_sentence(gate),
        notes=[f"{capitalised(each)}." for each in pair.all_notes],
        known=known_lines(gate),
        groups=groups_table(gate),
        changes=values_table(gate),
        advice=advice_table(gate),
        commands=_commands(pair, ~gate.cells["verdict"].isin(("unchanged", "mended", "new"))),
        unchanged=_unchanged(gate),
        n_unchanged=gate.counts.get("unchanged", 0),
        bounds=_bounds(gate),
        machine=_machine(gate.before, gate.after),
    )


@dataclass(frozen=True)
class Surroundings:
    """What the page of a history belongs to; addresses are relative to its folder.

    Attributes
    ----------
    site : str
        The overview of the site; empty for none.
    solvers : mapping of str to str
        Pages of the site by names of solvers.
    commit_url : str
        What a hash is put behind to show the commit on the web; empty for none.
    """

    site: str = ""
    solvers: Mapping[str, str] = field(default_factory=dict)
    commit_url: str = ""


def anchors(history: History) -> dict[str, str]:
    """The place of each solver of which a value moved, on the page of the history."""
    return slugs(dict.fromkeys(each.key.cell.group for each in history.moved))


def render_history(lanes: Sequence[History], around: Surroundings | None = None) -> str:
    """The page of a history: what moved, when, and every commit.

    Parameters
    ----------
    lanes : sequence of History
        The one that is shown first comes first.
    around : Surroundings, optional
    """
    return page_of(
        "regressions_index.html",
        lanes=[(each, anchors(each) if each is lanes[0] else {}, _marks(each)) for each in lanes],
        around=around or Surroundings(),
        change_words=change_words,
    )


def _marks(history: History) -> list[Counter[str]]:
    """What came with each commit: how many values are better, worse or known, and cells fail."""
    found: list[Counter[str]] = [Counter() for _ in history.commits]
    for each in history.moved:
        for i, step in enumerate(each.steps):
            found[step.place][each.kind(i)] += 1
    for places in history.failures.values():
        for place in places:
            found[place]["failed"] += 1
    return found


def page_of(template: str, **values: Any) -> str:
    """A page of regressions from its template, with the script of tables."""
    script = page_script(*SCRIPTS)
    return page(
        _templates().get_template(template),
        script=Markup(script),
        script_source=script_source(script),
        version=version(),
        **values,
    )


@cache
def _templates() -> jinja2.Environment:
    """The templates, compiled once: a history has a page for each commit."""
    return environment()


def groups_table(gate: Gate) -> Table | None:
    """What changed of each solver, in the order of their worst cells; None if nothing did."""
    rows = []
    for solver, cells in gate.cells.groupby("solver", sort=False):
        changed = Counter(cells["verdict"])
        total = changed.total()
        counts = ", ".join(f"{n} of {total}: {v}" for v, n in changed.items() if v != "unchanged")
        if counts:
            spans = _spans(gate, gate.told[gate.told["solver"] == solver])
            rows.append([Cell(str(solver)), Cell(counts), Cell("; ".join(spans) or DASH)])
    headings = [
        Heading("Solver", short="solver"),
        Heading("Cells", short="cells", weight=2),
        Heading("What changed", "wide", short="changes", weight=1),
    ]
    return Table("By solver", headings, rows, cards=True) if rows else None


def _spans(gate: Gate, told: pd.DataFrame) -> list[str]:
    """For each measure that changed: its smallest and largest ratio, or difference."""
    found = []
    for name, values in told.groupby("measure", sort=False):
        measure = gate.measures[str(name)]
        extent = values["after"] - values["before"]
        if measure.unit != "%":
            extent = np.log(values["ratio"]).fillna(extent)
        ends = values.loc[extent.fillna(np.inf).sort_values(kind="stable").index].iloc[[0, -1]]
        words = dict.fromkeys(change_words(measure, *each) for each in _both(ends))
        found.append(f"{measure.title} {' to '.join(words)}")
    return found


def _both(values: pd.DataFrame) -> list[tuple[float, float]]:
    return [(row["before"], row["after"]) for row in records(values)]


def values_table(gate: Gate) -> Table | None:
    """A row for each change, and one for each cell that has none to show; the worst first."""
    told = {key: records(values) for key, values in gate.told.groupby(["suite", "cell"])}
    rows = []
    for cell in records(gate.cells[gate.cells["verdict"] != "unchanged"]):
        start = [
            Cell(cell["cell"] or cell["suite"]),
            Cell(cell["verdict"], incomplete=bool(cell["refused"])),
        ]
        mine = told.get((cell["suite"], cell["cell"]), [])
        failing = cell["verdict"] in ("failed", "gone")
        shown = [row for row in mine if not (failing and row["verdict"] == "gone")]
        if failing or not shown:
            rows.append([*start, *[NONE] * 5, Cell(cell["known"]) if cell["known"] else NONE])
        rows += [[*start, *_value_cells(gate, row)] for row in shown]
    headings = [
        *(Heading("Cell", short="cell", weight=9), Heading("Verdict", short="verdict", weight=8)),
        Heading("Measure", short="measure", weight=7),
        *(Heading("Before", "number", short="before", weight=5),),
        *(Heading("After", "number", short="after", weight=6),),
        *(Heading("Change", "number", short="change", weight=7),),
        *(Heading("Bound", short="bound", weight=1), Heading("Known change", "wide")),
    ]
    return Table("By cell, the worst first", headings, rows, cards=True) if rows else None


def _value_cells(gate: Gate, row: Mapping[str, Any]) -> list[Cell]:
    measure, before, after = gate.measures[row["measure"]], row["before"], row["after"]
    return [
        Cell(measure.title + (" (known)" if row["known"] else "")),
        *(_value(measure, before), _value(measure, after)),
        Cell(change_words(measure, before, after), number=row["ratio"], incomplete=row["refused"]),
        Cell(measure.bound_words),
        Cell(row["known"]) if row["known"] else NONE,
    ]


def _value(measure: Watched, number: float) -> Cell:
    return NONE if math.isnan(number) else Cell(measure.say(number), number=number)


def advice_table(gate: Gate) -> Table | None:
    """Times and memory that changed; None if none did."""
    rows = []
    for row in records(gate.advice):
        measure, before, after = gate.measures[row["measure"]], row["before"], row["after"]
        words = change_words(measure, before, after)
        if row["n_before"]:
            ends = f"{row['low']:.2f}{DASH}{row['high']:.2f}"
            words = f"{row['estimate']:.2f}{TIMES} ({ends})"
        rows.append(
            [
                *(Cell(row["cell"] or row["suite"]), Cell(measure.title)),
                *(_value(measure, before), _value(measure, after)),
                Cell(words, number=row["ratio"]),
            ]
        )
    headings = [
        *(Heading("Cell", short="cell"), Heading("Measure", short="measure", weight=1)),
        Heading("Before", "number", short="before", weight=2),
        Heading("After", "number", short="after", weight=3),
        Heading("Change", "number", short="change", weight=4),
    ]
    label = "Times and memory, which only advise: ratios, of times with 99 % intervals"
    return Table(label, headings, rows, cards=True) if rows else None


def known_lines(gate: Gate) -> list[str]:
    """Why changes for the worse are accepted, each reason once with its number of cells."""
    frames = [frame[["suite", "cell", "known"]] for frame in (gate.cells, gate.values)]
    known = pd.concat(frames).drop_duplicates()
    counts = known[known["known"] != ""].groupby("known", sort=False).size()
    return [f"{plural(int(n), 'cell')}: {why}" for why, n in counts.items()]


def in_words(pair: Pair, width: int, *, all_rows: bool = False, color: bool = False) -> str:
    """What changed between two commits for the terminal: the verdict, then the worst first.

    Parameters
    ----------
    pair : Pair
    width : int
        Columns of the terminal.
    all_rows : bool
        Whether tables are printed whole.
    color : bool
    """
    return printed(_parts(pair, None if all_rows else _FEW), width, color=color)


def _parts(pair: Pair, most: int | None) -> Iterator[RenderableType]:
    gate = pair.gate
    yield Text(gate.headline, style="bold")
    for name, commit in (("base", pair.base), ("head", pair.head)):
        yield Text(visible(f"{name} {commit.short}  {commit.date}  {commit.subject}".rstrip()))
    for table in (groups_table(gate), values_table(gate), advice_table(gate)):
        if table is not None:
            yield Text()
            kept = table if table.label == "By solver" else replace(table, rows=table.rows[:most])
            yield terminal_table(kept, table.label)
            if len(kept.rows) < len(table.rows):
                yield _more(len(table.rows) - len(kept.rows))
    yield from (Text(visible(f"known change, {line}"), style="cyan") for line in known_lines(gate))
    commands = _commands(pair, gate.cells["refused"])
    if commands:
        yield Text()
        yield Text("Reproduce", style="bold")
        yield from (Text(f"  {command}") for command in commands[:most])
        if most is not None and len(commands) > most:
            yield _more(len(commands) - most)
    if pair.all_notes:
        yield Text()
    yield from (Text(f"note: {visible(line)}", style="yellow") for line in pair.all_notes)


def _more(n: int) -> Text:
    return Text(f"and {n} more; --all prints them", style="dim")


def _commands(pair: Pair, chosen: pd.Series) -> list[str]:
    """The commands that measure cells again."""
    cells = records(pair.gate.cells[chosen.astype(bool)])
    return [reproduce(row["suite"], row["cell"], pair.head) for row in cells]


def gate_sentence(gate: Gate) -> str:
    """The exit code of ``marginbench regressions`` in words."""
    code = gate.exit_code
    if code == EXIT_SAME:
        return "The gate lets this pass (exit code 0)."
    what = "cells fail" if code == EXIT_FAILED else "something is worse"
    return f"The gate refuses this: {what} and no known change says why (exit code {code})."


def _unchanged(gate: Gate) -> list[tuple[str, list[str]]]:
    """The tasks on which nothing changed, by solver."""
    cells = gate.cells[gate.cells["verdict"] == "unchanged"]
    found = [
        (str(solver), [row["cell"].partition(" ")[2] or row["suite"] for row in records(mine)])
        for solver, mine in cells.groupby("solver")
    ]
    return sorted(found, key=lambda item: item[0].casefold())


def _bounds(gate: Gate) -> Table | None:
    measures = sorted({gate.measures[name] for name in gate.values["measure"]}, key=_title)
    rows = [[Cell(each.title), Cell(each.bound_words)] for each in measures]
    headings = [Heading("Measure"), Heading("Accepted change")]
    return Table("Bounds", headings, rows) if rows else None


def _title(measure: Watched) -> str:
    return measure.title


def _machine(before: Snapshot, after: Snapshot) -> Table:
    """The lane, and what asv recorded of the machine on both sides."""
    names = sorted(before.machine.keys() | after.machine.keys())
    rows = [[Cell("environment"), Cell(before.lane.environment), Cell(after.lane.environment)]]
    rows += [
        [Cell(name), *(Cell(side.machine.get(name, "")) for side in (before, after))]
        for name in names
    ]
    differing = frozenset(i for i, row in enumerate(rows) if row[1].value != row[2].value)
    headings = [Heading("Setting"), Heading("Before", "wide"), Heading("After", "wide")]
    return Table("Machine and environment", headings, rows, differing=differing)
