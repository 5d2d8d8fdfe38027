"""What a comparison says: in words, as tables, in the terminal, and as JSON (docs/comparing.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from ...harness.results.stores import displayed
from ...harness.words import visible
from .. import formatting
from ..formatting import DASH, FIXED, THIN, TIMES, plural
from ..frames import records
from ..tables import NONE, Cell, Heading, Table, TerminalTable
from . import change as changes
from .change import FEWEST_TASKS, SEVERITY
from .result import Compared, Comparison, Difference, Side
from .studies import SOURCE, merged

ARROW = "\N{RIGHTWARDS ARROW}"
_PLUS = "+"
_LARGEST = 1000.0
_MOST_PLACES = 6
# Seeds that are listed.
_MOST_SEEDS = 8
#: Verdicts whose rows are listed even in short.
_CHANGED = ("worsening", "mixed", "improvement")
#: Verdicts in the words of counts.
IN_WORDS = {
    "worsening": "worse",
    "improvement": "better",
    "mixed": "mixed",
    "no difference told": "with no difference told",
    "identical": "identical",
    "advice": "advice only",
    "not compared": "not compared",
}


def headline(comparison: Comparison) -> str:
    """One line: what is worse, better and the same."""
    counts = comparison.frame["verdict"].value_counts()
    parts = []
    if comparison.n_newly_failed:
        failed = plural(comparison.n_newly_failed, "run")
        parts.append(f"{failed} failed in B that did not in A")
    if comparison.n_newly_missing:
        parts.append(f"{plural(comparison.n_newly_missing, 'record')} missing in B")
    if not comparison.n_compared:
        return "; ".join([*parts, "no pair of runs could be compared"])
    n_beyond = int(comparison.frame["beyond"].sum())
    for verdict, words in IN_WORDS.items():
        if verdict == "worsening" or counts.get(verdict, 0):
            beyond = f" ({n_beyond} beyond bounds)" if n_beyond else ""
            parts.append(
                f"{counts.get(verdict, 0)} {words}{beyond if verdict == 'worsening' else ''}"
            )
    if comparison.verdict == "gone":
        parts.insert(0, "cells are gone")
    total = plural(len(comparison.frame), "value")
    over = comparison.solvers
    alone = over.loc[(over["n_worse"] == 0) & (over["n_better"] == 0), "verdict"].value_counts()
    means = ", ".join(
        f"{alone[verdict]} {IN_WORDS[verdict]}"
        for verdict in ("worsening", "improvement")
        if verdict in alone
    )
    others = comparison.n_beyond - n_beyond
    over_tasks = f"; means over tasks alone: {means}" if means else ""
    over_tasks += f" ({others} beyond bounds)" if others else ""
    pairs = plural(comparison.n_compared, "pair")
    return f"{', '.join(parts)} of {total} from {pairs} of runs{over_tasks}"


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know before believing the numbers."""
    sentences = []
    if comparison.times:
        sentences.append(f"Times and memory are advice only: {comparison.times}.")
    pairs = comparison.pairs
    compared = pairs[pairs["outcome"] == changes.COMPARED]
    other = compared[~compared["same_reference"]]
    if len(other):
        tasks = ", ".join(dict.fromkeys(map(str, other["task"])))
        sentences.append(
            f"A and B have different certified optima of {tasks}: suboptimality and costs to "
            "targets are not compared there."
        )
    return [*sentences, *_ended_otherwise(compared), *comparison.cautions]


def _ended_otherwise(compared: pd.DataFrame) -> Iterator[str]:
    """Runs that are compared, although one met its stopping rule and the other its limit."""
    other = compared[compared["status_a"] != compared["status_b"]]
    for (a, b), group in other.groupby(["status_a", "status_b"], sort=False):
        solvers = ", ".join(dict.fromkeys(map(str, group["solver"])))
        yield f"{plural(len(group), 'pair')} ended with {a!r} in A and {b!r} in B: {solvers}."


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of measures, worst first; among the same verdict the most significant first."""
    logs = np.log(frame["mean"].clip(lower=1e-300))
    size = logs.where(frame["scale"] == "ratio", frame["mean"])
    keys = pd.DataFrame(
        {
            "rank": frame["verdict"].map(SEVERITY.index),
            "within": ~frame["beyond"].astype(bool),
            "q": frame["q"].fillna(0.0),
            "size": -size.abs(),
        }
    )
    return frame.loc[keys.sort_values([*map(str, keys)], kind="stable").index]


def changed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with a change, worst first."""
    return ordered(frame[frame["verdict"].isin(_CHANGED)])


def ratio(value: float) -> str:
    """A ratio to three digits: "1.23×"; more where it would read as 1, none beyond a thousand."""
    return DASH if math.isnan(value) else f"{_number(value)}{TIMES}"


def _number(value: float) -> str:
    if value >= _LARGEST:
        return f">{_LARGEST:.0f}"
    if value <= 1 / _LARGEST:
        return f"<{1 / _LARGEST:g}"
    places = 3 if value < 0.1 else 2 if value < 10 else 1 if value < 100 else 0
    while float(f"{value:.{places}f}") == 1.0 != value and places < _MOST_PLACES:
        places += 1
    return f"{value:.{places}f}"


def difference(item: Compared, value: float) -> str:
    """A difference with its sign: of errors in points."""
    if math.isnan(value):
        return DASH
    sign = _PLUS if value > 0 else ""
    if item.is_error:
        return f"{sign}{formatting.decimals(100 * value, 2)}{THIN}pt"
    minus = "\N{MINUS SIGN}" if value < 0 else sign
    return minus + formatting.say(item.measure, abs(value))


def change(item: Compared, row: Mapping[str, Any]) -> str:
    """The mean change of a row."""
    if row["lost"] and not row["gained"] and row["lost"] == row["n"]:
        return "never in B"
    if row["gained"] and not row["lost"] and row["gained"] == row["n"]:
        return "never in A"
    value = row["mean"]
    return ratio(value) if row["scale"] == "ratio" else difference(item, value)


def change_words(item: Compared, before: float, after: float) -> str:
    """One value against another: their ratio, or the difference where there is none."""
    if item.is_error or not (before > 0 and after > 0):
        return difference(item, after - before)
    return ratio(after / before)


def interval(item: Compared, row: Mapping[str, Any]) -> str:
    """Its interval; empty without one."""
    low, high = row["low"], row["high"]
    if math.isnan(low) or math.isnan(high) or row.get("identical"):
        return ""
    if row["scale"] == "ratio":
        return f"{_number(low)}{DASH}{_number(high)}{TIMES}"
    return f"{difference(item, low)} to {difference(item, high)}"


def medians(item: Compared, row: Mapping[str, Any]) -> str:
    """The medians of A and B: "1.2 s, 2.4 s"."""
    values = (row["before"], row["after"])
    if any(math.isnan(value) for value in values):
        return DASH
    return f" {ARROW} ".join(formatting.say(item.measure, value) for value in values)


def bound(item: Compared) -> str:
    """The bound of a measure."""
    if math.isinf(item.bound):
        return "off"
    return f"{100 * item.bound:g}{THIN}pt" if item.is_error else f"{item.bound:g}{TIMES}"


#: What the means over tasks are.
MEANS = (
    "Geometric means of the tasks' ratios (of test errors means of differences), each task once, "
    "with 95 % t intervals over the tasks. Tasks on which a run never reaches the target, for "
    "which one side lacks runs, or whose ratio has a zero in it, are left out. A mean of fewer "
    f"than {FEWEST_TASKS} tasks decides nothing by itself."
)


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
        Cell(row["verdict"], range=beyond or row["why"], incomplete=row["verdict"] == "worsening"),
        *(Cell(row["task"]), Cell(row["solver"]), Cell(item.measure.title)),
        *(_or_none(change(item, row)), _or_none(interval(item, row))),
        *(_or_none(medians(item, row)), Cell(str(row["n"]))),
    ]


def _or_none(text: str) -> Cell:
    return Cell(text) if text and text != DASH else NONE


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
                Cell(row["verdict"], incomplete=row["verdict"] == "worsening"),
                *(_or_none(change(item, whole)), _or_none(interval(item, whole))),
                Cell(str(row["n_tasks"]), range=out),
                *(Cell(str(row["n_worse"])), Cell(str(row["n_better"]))),
            ]
        )
    return Table("Means over tasks", headings, cells)


def outcomes_table(comparison: Comparison) -> Table | None:
    """The runs that are not compared, grouped by outcome; None without any."""
    pairs = comparison.pairs[comparison.pairs["outcome"] != changes.COMPARED]
    if pairs.empty:
        return None
    rows = []
    keys = ["outcome", "task", "solver", "why"]
    for (outcome, task, solver, why), group in pairs.groupby(keys, sort=False):
        statuses = {status for status in (*group["status_a"], *group["status_b"]) if status}
        reason = str(why) or ", ".join(sorted(map(str, statuses)))
        rows.append(
            [
                Cell(str(outcome), incomplete=str(outcome) == changes.FAILED_B),
                *(Cell(str(task)), Cell(str(solver))),
                Cell(formatting.some(map(str, sorted(group["seed"])), _MOST_SEEDS)),
                Cell(visible(reason)),
            ]
        )
    rows.sort(key=lambda row: changes.OUTCOMES.index(row[0].value))
    headings = [
        Heading("Outcome", short="not compared"),
        *(Heading("Task", short="task"), Heading("Solver", short="solver")),
        Heading("Seeds", short="seeds"),
        Heading("Reason", "reason", short="reason"),
    ]
    return Table("Runs that are not compared", headings, rows)


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


# Commands that are printed unless all are wanted.
_FEW = 15
#: What the rows of :attr:`Comparison.advice` are.
ADVICE = "Times and memory, which only advise"


def in_words(comparison: Comparison, *, all_rows: bool) -> Iterator[RenderableType]:
    """The text, for a terminal."""
    yield Text(f"{comparison.verdict}: {headline(comparison)}", style="bold")
    for side in (comparison.before, comparison.after):
        yield Text(visible(f"{side.name}: {side.words}"))
    frame, means, code = comparison.frame, comparison.solvers, comparison.code
    chosen = ordered(frame) if all_rows else changed(frame)
    if not all_rows:
        means = means[~means["verdict"].isin(("identical", "advice", "not compared"))]
        code = [item for item in code if not item.field.startswith(SOURCE)]
    outcomes = outcomes_table(comparison)
    # What failed is worse than any number.
    lacking = comparison.n_newly_failed + comparison.n_newly_missing > 0
    shown = [
        outcomes if lacking else None,
        measures_table(comparison, chosen, "Values") if len(chosen) else None,
        solvers_table(comparison, means) if len(means) else None,
        None if lacking else outcomes,
        measures_table(comparison, comparison.advice, ADVICE) if len(comparison.advice) else None,
        differences_table(comparison.environment, "Environments"),
        differences_table(merged(code), "Solvers"),
    ]
    for table in filter(None, shown):
        yield Text()
        yield Text(table.label, style="bold")
        yield TerminalTable(table, table.label).drawn()
    yield Text()
    for line in notes(comparison):
        yield Text(visible(f"note: {line}"), style="yellow")
    if comparison.commands:
        yield Text("Reproduce", style="bold")
        most = None if all_rows else _FEW
        for command in comparison.commands[:most]:
            # Whole, so that it can be copied.
            yield Text(f"  {command}", no_wrap=True, overflow="ignore")
        more = len(comparison.commands) - len(comparison.commands[:most])
        if more:
            yield Text(f"and {more} more; --all prints them", style="dim")


#: Raised when a key changes its meaning or goes.
SCHEMA_VERSION = 1


def as_json(comparison: Comparison) -> str:
    """The document as text; the same comparison gives the same text."""
    return json.dumps(document(comparison), indent=2, ensure_ascii=False, allow_nan=False)


def document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values."""
    pairs = comparison.pairs
    left_out = pairs[pairs["outcome"] != changes.COMPARED]
    reproduce = {"reproduce": list(comparison.commands)} if comparison.commands else {}
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "summary": headline(comparison),
        "a": _side(comparison.before),
        "b": _side(comparison.after),
        "notes": notes(comparison),
        "times_judged": not comparison.times,
        "n_compared": comparison.n_compared,
        "n_failed_in_b_only": comparison.n_newly_failed,
        "n_missing_in_b_only": comparison.n_newly_missing,
        "n_beyond": comparison.n_beyond,
        "measures": [
            {"measure": name, "title": item.measure.title, "bound": _plain(item.bound)}
            | {"band": item.band, "scale": "difference" if item.is_error else "ratio"}
            for name, item in comparison.measures.items()
        ],
        "solvers": _rows(comparison.solvers),
        "cells": _rows(comparison.cells),
        "values": _rows(comparison.frame),
        "not_compared": _rows(left_out.drop(columns=["seed_a", "seed_b", "same_reference"])),
        "environment": [asdict(item) for item in comparison.environment],
        "code": [asdict(item) for item in comparison.code],
        **reproduce,
    }


def _side(side: Side) -> dict[str, Any]:
    if side.results is None:
        return {"commit": side.words, "n_runs": len(side.runs)}
    study = side.results.study
    return {
        "folder": displayed(side.results.folder),
        "study": study.name,
        "solver": side.solver or None,
        "marginbench": study.marginbench,
        "n_runs": len(side.runs),
    }


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in row.items()} for row in records(frame)]


def _plain(value: Any) -> Any:
    """A value as JSON knows it; what is not finite is null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
