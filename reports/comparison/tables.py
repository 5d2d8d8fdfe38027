"""The tables that a comparison is shown in, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...harness.words import visible
from ..formatting import DASH, FIXED, TIMES
from ..frames import records
from ..tables import NONE, Cell, Heading, Table
from . import pairing
from .words import ARROW, bound, change, interval, medians

if TYPE_CHECKING:
    from .result import Comparison
    from .settings import Difference

# More seeds than this are told by their number.
_MANY_SEEDS = 8


def measures_table(comparison: Comparison, rows: pd.DataFrame, label: str) -> Table:
    """A row for each task, solver and measure."""
    headings = [
        Heading("Verdict", short="verdict"),
        *(Heading("Task", short="task"), Heading("Solver", short="solver")),
        Heading("Measure", short="measure"),
        Heading(f"B{FIXED}/{FIXED}A", "number", short="B/A"),
        Heading("95 % interval", "number", short="95 % interval"),
        Heading(f"Median A {ARROW} B", "number"),
        Heading("Pairs", "number", short="n"),
    ]
    cells = [_measure_cells(comparison, row) for row in records(rows)]
    return Table(label, headings, cells, style="changes")


def _measure_cells(comparison: Comparison, row: Mapping[str, Any]) -> list[Cell]:
    item = comparison.measures[row["measure"]]
    beyond = f"beyond {bound(item)}" if row["beyond"] else ""
    return [
        _verdict_cell(row["verdict"], beyond or row["why"]),
        *(Cell(row["task"]), Cell(row["solver"]), Cell(item.measure.title)),
        *(_or_none(change(item, row)), _or_none(interval(item, row))),
        *(_or_none(medians(item, row)), Cell(str(row["n"]))),
    ]


def _or_none(text: str) -> Cell:
    return Cell(text) if text and text != DASH else NONE


def _verdict_cell(verdict: str, note: str = "") -> Cell:
    return Cell(verdict, note=note, incomplete=verdict in ("worsening", "failed"))


def solvers_table(comparison: Comparison, rows: pd.DataFrame) -> Table:
    """A row for each solver and measure: the mean over tasks."""
    headings = [
        *(Heading("Solver", short="solver"), Heading("Measure", short="measure")),
        Heading("Verdict", short="verdict"),
        Heading(f"B{FIXED}/{FIXED}A over tasks", "number", short="B/A"),
        Heading("95 % interval", "number", short="95 % interval"),
        Heading("Tasks", "number", short="tasks"),
        *(Heading("Worse", "number", short="worse"), Heading("Better", "number", short="better")),
    ]
    cells = []
    for row in records(rows):
        item = comparison.measures[row["measure"]]
        whole = row | {"lost": 0, "gained": 0}
        out = f"{row['n_left_out']} left out" if row["n_left_out"] else ""
        cells.append(
            [
                *(Cell(row["solver"]), Cell(item.measure.title)),
                _verdict_cell(row["verdict"]),
                *(_or_none(change(item, whole)), _or_none(interval(item, whole))),
                Cell(str(row["n_tasks"]), note=out),
                *(Cell(str(row["n_worse"])), Cell(str(row["n_better"]))),
            ]
        )
    return Table("Means over tasks", headings, cells)


def outcomes_table(comparison: Comparison) -> Table | None:
    """The runs that are not compared, grouped by what became of them; None without any."""
    pairs = comparison.pairs[comparison.pairs["outcome"] != pairing.COMPARED]
    if pairs.empty:
        return None
    rows = []
    keys = ["outcome", "task", "solver", "why"]
    for (outcome, task, solver, why), group in pairs.groupby(keys, sort=False):
        statuses = {status for status in (*group["status_a"], *group["status_b"]) if status}
        said = str(why) or ", ".join(sorted(map(str, statuses)))
        rows.append(
            [
                Cell(str(outcome), incomplete=str(outcome) == pairing.FAILED_B),
                *(Cell(str(task)), Cell(str(solver))),
                Cell(_seeds(sorted(group["seed"]))),
                Cell(visible(said)),
            ]
        )
    rows.sort(key=lambda row: _OUTCOMES.index(row[0].value))
    headings = [
        Heading("Outcome", short="not compared"),
        *(Heading("Task", short="task"), Heading("Solver", short="solver")),
        Heading("Seeds", short="seeds"),
        Heading("Reason", "reason", short="reason"),
    ]
    return Table("Runs that are not compared", headings, rows)


_OUTCOMES = (
    *(pairing.FAILED_B, pairing.FAILED_A, pairing.FAILED_BOTH, pairing.OTHER_PROBLEM),
    *(pairing.MISSING_B, pairing.MISSING_A, pairing.MISSING_BOTH, pairing.GONE, pairing.NEW),
    *(pairing.SKIPPED_B, pairing.SKIPPED_A, pairing.SKIPPED_BOTH),
)


def _seeds(seeds: Sequence[int]) -> str:
    """The seeds, or how many from which to which."""
    if len(seeds) <= _MANY_SEEDS:
        return ", ".join(map(str, seeds))
    return f"{len(seeds)} from {seeds[0]} to {seeds[-1]}"


def differences_table(differing: Sequence[Difference], label: str) -> Table | None:
    """What differs in the settings or in the code; None if nothing does."""
    if not differing:
        return None
    named = any(item.solver for item in differing)
    rows = [
        [
            *([Cell(item.solver)] if named else []),
            Cell(item.field),
            *(Cell(visible(item.before)), Cell(visible(item.after))),
        ]
        for item in differing
    ]
    headings = [
        *([Heading("Solver", short="solver")] if named else []),
        Heading("Setting", short="differs"),
        *(Heading("A", "reason", short="A"), Heading("B", "reason", short="B")),
    ]
    return Table(label, headings, rows)


def bounds_table(comparison: Comparison) -> Table:
    """The bounds and the bands of the measures."""
    rows = [
        [Cell(item.measure.title), Cell(name, code=True), Cell(bound(item))]
        + [NONE if item.band == 1.0 else Cell(f"{item.band:.3g}{TIMES}")]
        for name, item in comparison.measures.items()
    ]
    headings = [Heading("Measure"), Heading("Name"), Heading("Bound", "number")]
    return Table("Bounds", [*headings, Heading("Band", "number")], rows)
