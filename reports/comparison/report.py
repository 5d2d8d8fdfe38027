"""What a comparison says: in words, as tables, in the terminal, as a page and as JSON.

docs/comparing.md describes all of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from rich.console import RenderableType
from rich.text import Text

from ...harness.environment import version
from ...harness.errors import StorageError
from ...harness.results.stores import displayed
from ...harness.words import visible
from .. import formatting
from ..formatting import DASH, FIXED, THIN, TIMES, plural
from ..frames import records
from ..tables import NONE, Cell, Column, Table, TerminalTable, framed
from . import change as changes
from .change import FEWEST_TASKS, SEVERITY
from .result import Compared, Comparison, Difference, Side

if TYPE_CHECKING:
    from ..drawing.canvas import Drawing

#: Ratios beyond this stand at the edge of a figure: one of them would press all others together.
_FARTHEST = 1000.0
#: Titles that fit beside an axis.
_SHORTER = {
    "Evaluations to stay within": "Evals to",
    "CPU time to stay within": "CPU to",
    "point of the optimum's": "pt of",
    "of the optimum": "of optimum",
}

ARROW = "\N{RIGHTWARDS ARROW}"
_LARGEST = 1000.0
_MOST_PLACES = 6
# Seeds that are listed.
_MOST_SEEDS = 8
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
    counts = Counter(comparison.frame["verdict"])
    parts = []
    if comparison.n_newly_failed:
        failed = plural(comparison.n_newly_failed, "run")
        parts.append(f"{failed} failed in B that did not in A")
    if comparison.n_newly_missing:
        parts.append(f"{plural(comparison.n_newly_missing, 'record')} missing in B")
    if not comparison.n_compared:
        return "; ".join([*parts, "no pair of runs could be compared"])
    if comparison.verdict == "gone":
        parts.append("cells are gone")
    beyond = f" ({comparison.n_beyond} beyond bounds)" if comparison.n_beyond else ""
    parts.append(f"{counts.pop('worsening', 0)} worse{beyond}")
    parts += [
        f"{counts[verdict]} {words}" for verdict, words in IN_WORDS.items() if counts[verdict]
    ]
    over = comparison.solvers
    alone = Counter(over.loc[(over["n_worse"] == 0) & (over["n_better"] == 0), "verdict"])
    told = [f"{alone[each]} {IN_WORDS[each]}" for each in _CHANGED if alone[each]]
    means = f"; means over tasks alone: {', '.join(told)}" if told else ""
    total = plural(len(comparison.frame), "value")
    pairs = plural(comparison.n_compared, "pair")
    return f"{', '.join(parts)} of {total} from {pairs} of runs{means}"


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
    other = compared[compared["status_a"] != compared["status_b"]]
    for (a, b), group in other.groupby(["status_a", "status_b"], sort=False):
        solvers = ", ".join(dict.fromkeys(map(str, group["solver"])))
        ended = f"{plural(len(group), 'pair')} ended with {a!r} in A and {b!r} in B"
        sentences.append(f"{ended}: {solvers}.")
    return [*sentences, *comparison.cautions]


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of measures, worst first; among the same verdict the most significant first."""
    logs = np.log(frame["mean"].clip(lower=1e-300))
    keys = pd.DataFrame(
        {
            "rank": frame["verdict"].map(SEVERITY.index),
            "within": ~frame["beyond"].astype(bool),
            "q": frame["q"].fillna(0.0),
            "size": -logs.where(frame["scale"] == "ratio", frame["mean"]).abs(),
        }
    )
    return frame.loc[keys.sort_values([*map(str, keys)], kind="stable").index]


_CHANGED = ("worsening", "mixed", "improvement")


def changed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with a change, worst first."""
    return ordered(frame[frame["verdict"].isin(_CHANGED)])


def ratio(value: float) -> str:
    """A ratio to three digits: "1.23×"; more where it would read as 1, none beyond a thousand."""
    return DASH if math.isnan(value) else f"{_number(value)}{TIMES}"


def _number(value: float) -> str:
    if not 1 / _LARGEST < value < _LARGEST:
        return f">{_LARGEST:.0f}" if value > 1 else f"<{1 / _LARGEST:g}"
    places = 3 if value < 0.1 else 2 if value < 10 else 1 if value < 100 else 0
    while float(f"{value:.{places}f}") == 1.0 != value and places < _MOST_PLACES:
        places += 1
    return f"{value:.{places}f}"


def difference(item: Compared, value: float) -> str:
    """A difference with its sign: of errors in points."""
    if math.isnan(value):
        return DASH
    sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
    if item.is_error:
        return f"{sign}{formatting.decimals(100 * abs(value), 2)}{THIN}pt"
    return sign + formatting.say(item.measure, abs(value))


def change_words(item: Compared, before: float, after: float) -> str:
    """One value against another: their ratio, or the difference where there is none."""
    if item.is_error or not (before > 0 and after > 0):
        return difference(item, after - before)
    return ratio(after / before)


def bound(item: Compared) -> str:
    """The bound of a measure."""
    if math.isinf(item.bound):
        return "off"
    return f"{100 * item.bound:g}{THIN}pt" if item.is_error else f"{item.bound:g}{TIMES}"


def _column(title: str, name: str, short: str | None = None, style: str = "") -> Column:
    """A column of texts, a dash where there is none; the terminal has its title in lower case."""

    def cell(row: Mapping[str, Any]) -> Cell:
        text = str(row[name])
        return NONE if text in ("", DASH) else Cell(text)

    return Column(title, style, short=title.lower() if short is None else short, of=cell)


_TASK, _SOLVER = _column("Task", "task"), _column("Solver", "solver")
_MEASURE = _column("Measure", "title")
_VERDICT = Column(
    "Verdict",
    short="verdict",
    of=lambda row: Cell(
        row["verdict"], range=row.get("below", ""), incomplete=row["verdict"] == "worsening"
    ),
)
_INTERVAL = _column("95 % interval", "interval", "95 % interval", "number")


def _in_words(item: Compared, row: Mapping[str, Any]) -> dict[str, str]:
    """The title, change and interval of a row of measures."""
    is_ratio = row["scale"] == "ratio"
    change = ratio(row["mean"]) if is_ratio else difference(item, row["mean"])
    if row.get("n") and row["n"] in (row["lost"], row["gained"]):
        change = "never in B" if row["lost"] else "never in A"
    low, high = row["low"], row["high"]
    interval = f"{_number(low)}{DASH}{_number(high)}{TIMES}" if is_ratio else ""
    interval = interval or f"{difference(item, low)} to {difference(item, high)}"
    no_interval = math.isnan(low) or math.isnan(high)
    title = item.measure.title
    return {"title": title, "change": change, "interval": "" if no_interval else interval}


def measures_table(comparison: Comparison, rows: pd.DataFrame, label: str) -> Table | None:
    """A row for each task, solver and measure; None without any."""
    if rows.empty:
        return None
    words = []
    for row in records(rows):
        item = comparison.measures[row["measure"]]
        medians = [
            formatting.say(item.measure, each)
            for each in (row["before"], row["after"])
            if not math.isnan(each)
        ]
        below = f"beyond {bound(item)}" if row["beyond"] else row["why"]
        words.append(
            row
            | _in_words(item, row)
            | {"below": below, "medians": f" {ARROW} ".join(medians) if medians[1:] else DASH}
        )
    columns = [
        *(_VERDICT, _TASK, _SOLVER, _MEASURE),
        *(_column(f"B{FIXED}/{FIXED}A", "change", "B/A", "number"), _INTERVAL),
        _column(f"Median A {ARROW} B", "medians", "", "number"),
        _column("Pairs", "n", "n", "number"),
    ]
    return framed(label, pd.DataFrame(words), columns, style="changes")


def solvers_table(comparison: Comparison, rows: pd.DataFrame) -> Table | None:
    """A row for each solver and measure: the mean over tasks; None without any."""
    if rows.empty:
        return None
    words = [
        row
        | _in_words(comparison.measures[row["measure"]], row)
        | {"left_out": row["n_left_out"] or ""}
        for row in records(rows)
    ]
    columns = [
        *(_SOLVER, _MEASURE, _VERDICT),
        *(_column(f"B{FIXED}/{FIXED}A over tasks", "change", "B/A", "number"), _INTERVAL),
        _column("Tasks", "n_tasks", style="number"),
        _column("Left out", "left_out", style="number"),
        _column("Worse", "n_worse", style="number"),
        _column("Better", "n_better", style="number"),
    ]
    return framed("Means over tasks", pd.DataFrame(words), columns)


def outcomes_table(comparison: Comparison) -> Table | None:
    """The runs that are not compared, grouped by outcome; None without any."""
    pairs = comparison.pairs[comparison.pairs["outcome"] != changes.COMPARED]
    if pairs.empty:
        return None
    rows = []
    keys = ["outcome", "task", "solver", "why"]
    for (*key, why), group in pairs.groupby(keys, sort=False):
        statuses = {status for status in (*group["status_a"], *group["status_b"]) if status}
        seeds = formatting.some(map(str, sorted(group["seed"])), _MOST_SEEDS)
        rows.append([*map(str, key), seeds, visible(str(why) or ", ".join(sorted(statuses)))])
    # What only A lacks is no fault of B's.
    kinds = [*changes.KINDS]
    rows.sort(key=lambda row: (kinds.index(row[0].partition(" in ")[0]), row[0].endswith("A")))
    failed = Column(
        "Outcome",
        short="not compared",
        of=lambda row: Cell(row["outcome"], incomplete=row["outcome"] == changes.FAILED_B),
    )
    columns = [
        *(failed, _TASK, _SOLVER),
        _column("Seeds", "seeds"),
        _column("Reason", "reason", style="reason"),
    ]
    frame = pd.DataFrame(rows, columns=[*keys[:3], "seeds", "reason"])
    return framed("Runs that are not compared", frame, columns)


def differences_table(differing: Sequence[Difference], label: str) -> Table | None:
    """What differs, once for all solvers that differ in the same way; None if nothing does."""
    if not differing:
        return None
    frame = pd.DataFrame(differing)
    sides = ["before", "after"]
    frame[sides] = frame[sides].map(visible)
    alike = frame.groupby(["field", *sides], sort=False)["solver"]
    frame = alike.agg(", ".join).reset_index()
    columns = [
        *([_SOLVER] if frame["solver"].any() else []),
        _column("Setting", "field", "differs"),
        *(_column("A", "before", "A", "reason"), _column("B", "after", "B", "reason")),
    ]
    return framed(label, frame, columns)


def tables(comparison: Comparison, values: pd.DataFrame, *, whole: bool) -> Iterator[Table]:
    """The tables in their order, with these rows of values; means as a whole or not."""
    means = comparison.solvers
    means = means[means["verdict"] != "identical"]
    if not whole:
        means = means[~means["verdict"].isin(("advice", "not compared"))]
    outcomes = outcomes_table(comparison)
    shown = [
        measures_table(comparison, values, "Values"),
        solvers_table(comparison, means),
        measures_table(comparison, comparison.advice, "Times and memory, which only advise"),
        differences_table(comparison.environment, "Environments"),
        differences_table(comparison.code, "Solvers"),
    ]
    # What failed is worse than any number.
    lacking = comparison.n_newly_failed + comparison.n_newly_missing > 0
    shown.insert(0 if lacking else 2, outcomes)
    return filter(None, shown)


def in_words(comparison: Comparison, *, all_rows: bool) -> Iterator[RenderableType]:
    """The text, for a terminal."""
    yield Text(f"{comparison.verdict}: {headline(comparison)}", style="bold")
    for side in (comparison.before, comparison.after):
        yield Text(visible(f"{side.name}: {side.words}"))
    values = ordered(comparison.frame) if all_rows else changed(comparison.frame)
    for table in tables(comparison, values, whole=all_rows):
        yield Text()
        yield Text(table.label, style="bold")
        yield TerminalTable(table, table.label).drawn()
    yield Text()
    for line in notes(comparison):
        yield Text(visible(f"note: {line}"), style="yellow")
    if comparison.commands:
        yield Text("Reproduce", style="bold")
        for command in comparison.commands:
            # Whole, so that it can be copied.
            yield Text(f"  {command}", no_wrap=True, overflow="ignore")


#: What the page says below tables.
_BELOW = {
    "Values": (
        "Ratios are B / A: geometric means over pairs of runs of the same seed on the same "
        "problem, with 95 % intervals. A worsening is beyond its bound if its whole interval is. "
        "Less is better of every measure. Verdicts allow for how many solvers and tasks a measure "
        "has."
    ),
    "Means over tasks": (
        "Geometric means of the tasks' ratios (of test errors means of differences), each task "
        "once, with 95 % t intervals over the tasks. Tasks on which a run never reaches the "
        "target, for which one side lacks runs, or whose ratio has a zero in it, are left out. A "
        f"mean of fewer than {FEWEST_TASKS} tasks decides nothing by itself."
    ),
}


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page, atomically; a StorageError if that fails."""
    from ..templating import write_page

    sides = comparison.before, comparison.after
    check_target(path, [side.results.folder for side in sides if side.results])
    write_page(path, render(comparison))
    return path


def check_target(path: Path, folders: Iterable[Path]) -> None:
    """Refuse a page that is no file, or that would stand in place of what a study recorded."""
    if not path.name or path.is_dir():
        raise StorageError(f"{path}: is a folder; give the page a file, such as comparison.html")
    target = path.resolve()
    for folder in map(Path.resolve, folders):
        recorded = [folder / name for name in ("study.json", "journal", "runs.parquet", "sources")]
        if any(target.is_relative_to(each) for each in recorded):
            raise StorageError(f"{path}: is part of the results in {folder}; give another file")


def solver_figure(comparison: Comparison, solver: str) -> Drawing | None:
    """The ratios of a solver's measures: a dot for each task, a diamond for their mean.

    Only of measures that changed on some task; None where there is none.
    """
    # Imported here: the text needs no figures.
    from ..drawing.canvas import FONT, INK, MUTED, drawing, new_axes
    from ..drawing.figures import padded, set_log_axis

    rows = comparison.frame[comparison.frame["solver"] == solver]
    rows = rows[(rows["scale"] == "ratio") & np.isfinite(rows["mean"]) & (rows["mean"] > 0)]
    rows = rows[rows["mean"].ne(1.0).groupby(rows["measure"]).transform("any")]
    if rows.empty:
        return None
    names = list(dict.fromkeys(rows["measure"]))
    means = comparison.solvers[comparison.solvers["solver"] == solver].set_index("measure")
    edges, places = (1 / _FARTHEST, _FARTHEST), np.arange(len(names))
    dots = rows["mean"].clip(*edges)
    low, mean, high = means.loc[names, ["low", "mean", "high"]].clip(*edges).to_numpy(float).T
    # In points: the left margin has the titles, each row is 19 high.
    axes = new_axes(height=19.0 * len(names) + 45.0, margins=(163.0, 12.0, 36.0, 9.0))
    axes.plot(dots, rows["measure"].map(names.index), "o", ms=3.4, color=MUTED, alpha=0.7)
    axes.hlines(places, low, high, lw=2.0, color=INK)
    axes.plot(mean, places, "D", ms=5.5, color=INK)
    titles = [comparison.measures[name].measure.title for name in names]
    for long, short in _SHORTER.items():
        titles = [title.replace(long, short) for title in titles]
    axes.set_yticks(places, titles, fontsize=FONT - 1)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(1.0, color=MUTED, lw=0.9, dashes=(4, 3), zorder=1.5)
    axes.set_xlabel("B / A, less is better")
    values = np.hstack([dots, low, mean, high, 1 / 1.2, 1.2])
    set_log_axis(axes, "x", *padded(values[np.isfinite(values)], 0.06, 0.06), "seconds")
    words = [f"{title} {ratio(value)}" for title, value in zip(titles, mean, strict=True)]
    return drawing(axes, f"What changed for {solver}", f"B / A: {'; '.join(words)}.", rows)


def render(comparison: Comparison) -> str:
    """The page, one HTML file without scripts, as text."""
    # Imported here: the text needs no templates.
    from ..templating import environment, page

    results = comparison.before.results
    kicker = Markup("regressions")
    if results is not None:
        kicker = Markup("comparison of study <code>{}</code>").format(results.study.name)
    frame = comparison.frame
    counts, values = Counter(frame["verdict"]), changed(frame)
    return page(
        environment().get_template("comparison.html"),
        version=version(),
        kicker=kicker,
        comparison=comparison,
        key_figures=[
            ("verdict", comparison.verdict),
            *((label, str(counts[verdict])) for verdict, label in IN_WORDS.items()),
            ("beyond bounds", str(comparison.n_beyond)),
            ("failed in B only", str(comparison.n_newly_failed)),
            ("pairs of runs", str(comparison.n_compared)),
        ],
        headline=headline(comparison),
        notes=notes(comparison),
        figures=[
            (f"changes-{place}", solver, solver_figure(comparison, solver))
            for place, solver in enumerate(dict.fromkeys(map(str, frame["solver"])))
        ],
        tables=list(tables(comparison, values, whole=True)),
        below=_BELOW,
        rest=measures_table(comparison, ordered(frame.drop(values.index)), "All other values"),
    )


#: Raised when a key changes its meaning or goes.
SCHEMA_VERSION = 1


def as_json(comparison: Comparison) -> str:
    """All of it as text; the same comparison gives the same text."""
    pairs = comparison.pairs
    left_out = pairs[pairs["outcome"] != changes.COMPARED]
    content = {
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
        "environment": [item._asdict() for item in comparison.environment],
        "code": [item._asdict() for item in comparison.code],
    }
    if comparison.commands:
        content["reproduce"] = list(comparison.commands)
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


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
    return None if isinstance(value, float) and not math.isfinite(value) else value
