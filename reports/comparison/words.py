"""A comparison in words: its headline, findings and notes, and how its numbers read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from .. import formatting
from ..formatting import DASH, THIN, TIMES, plural
from ..frames import records
from . import pairing
from .measured import Compared
from .verdicts import FEWEST_TASKS, SEVERITY

if TYPE_CHECKING:
    from .result import Comparison

ARROW = "\N{RIGHTWARDS ARROW}"
_PLUS = "+"
_LARGEST = 1000.0
_MOST_PLACES = 6
#: Verdicts whose rows are listed even in short.
_TOLD = ("worsening", "mixed", "improvement")
_IN_WORDS = {
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
    for verdict, words in _IN_WORDS.items():
        if verdict == "worsening" or counts.get(verdict, 0):
            beyond = f" ({comparison.n_beyond} beyond bounds)" if comparison.n_beyond else ""
            parts.append(
                f"{counts.get(verdict, 0)} {words}{beyond if verdict == 'worsening' else ''}"
            )
    total = plural(len(comparison.frame), "value")
    return f"{', '.join(parts)} of {total} from {plural(comparison.n_compared, 'pair')} of runs"


def findings(comparison: Comparison) -> list[str]:
    """What is worse and better, solver by solver, in sentences."""
    found = []
    for solver, group in comparison.solvers.groupby("solver", sort=False):
        parts = [
            f"{direction} in {', '.join(names)}"
            for direction, names in (
                ("worse", _where(comparison, group, "worsening", "n_worse")),
                ("better", _where(comparison, group, "improvement", "n_better")),
            )
            if names
        ]
        if parts:
            found.append(f"{solver} is {' and '.join(parts)}.")
    if not found:
        found.append(_nothing_told(comparison))
    return [*_lacking(comparison.pairs), *found]


def _lacking(pairs: pd.DataFrame) -> Iterator[str]:
    """Runs that have a result in A alone."""
    for outcome, words in (
        (pairing.FAILED_B, "failed in B and not in A"),
        (pairing.MISSING_B, "left no readable record in B"),
    ):
        mine = pairs[pairs["outcome"] == outcome]
        if len(mine):
            solvers = ", ".join(dict.fromkeys(map(str, mine["solver"])))
            yield f"{plural(len(mine), 'run')} {words}: {solvers}."


def _where(comparison: Comparison, rows: pd.DataFrame, verdict: str, count: str) -> list[str]:
    """The measures of a solver with a verdict, and on how many tasks it is that."""
    found = []
    for row in records(rows):
        words = comparison.measures[row["measure"]].measure.words
        if row[count]:
            n_tasks = row["n_tasks"] + row["n_left_out"]
            found.append(f"{words} on {row[count]} of {plural(n_tasks, 'task')}")
        elif row["verdict"] == verdict:
            found.append(f"{words} on the mean of {plural(row['n_tasks'], 'task')}")
    return found


def _nothing_told(comparison: Comparison) -> str:
    return {
        "identical": "All values of all runs that are compared are identical.",
        "not compared": "No run of A has a counterpart in B with a result on the same problem.",
    }.get(comparison.verdict, "Nothing that is judged tells A and B apart.")


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know before believing the numbers."""
    found = []
    if comparison.times:
        found.append(f"Times and memory are advice only: {comparison.times}.")
    pairs = comparison.pairs
    compared = pairs[pairs["outcome"] == pairing.COMPARED]
    other = compared[~compared["same_reference"]]
    if len(other):
        tasks = ", ".join(dict.fromkeys(map(str, other["task"])))
        found.append(
            f"A and B have different certified optima of {tasks}: suboptimality and costs to "
            "targets are not compared there."
        )
    return [*found, *_ended_otherwise(compared), *comparison.cautions]


def _ended_otherwise(compared: pd.DataFrame) -> Iterator[str]:
    """Runs that are compared, although one met its stopping rule and the other its limit."""
    other = compared[compared["status_a"] != compared["status_b"]]
    for (a, b), group in other.groupby(["status_a", "status_b"], sort=False):
        solvers = ", ".join(dict.fromkeys(map(str, group["solver"])))
        yield f"{plural(len(group), 'pair')} ended with {a!r} in A and {b!r} in B: {solvers}."


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of measures or cells, worst first; among the same verdict the most significant first."""
    rank = frame["verdict"].map({verdict: place for place, verdict in enumerate(SEVERITY)})
    keys = pd.DataFrame({"rank": rank}, index=frame.index)
    if "q" in frame:
        keys["beyond"], keys["q"] = ~frame["beyond"].astype(bool), frame["q"].fillna(0.0)
        keys["size"] = [-_size(row) for row in records(frame)]
    return frame.loc[keys.sort_values([*map(str, keys)], kind="stable").index]


def _size(row: Mapping[str, Any]) -> float:
    """How large a change is: of a ratio its logarithm; nothing is larger than never."""
    if row["lost"] or row["gained"]:
        return math.inf
    mean = row["mean"]
    if math.isnan(mean):
        return 0.0
    return abs(mean) if row["scale"] == "difference" else abs(math.log(max(mean, 1e-300)))


def told(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with a change, worst first."""
    return ordered(frame[frame["verdict"].isin(_TOLD)])


def untold_lines(comparison: Comparison) -> Iterator[str]:
    """A line for each verdict without a change: how many values of each measure have it."""
    frame = comparison.frame
    for verdict in (each for each in SEVERITY if each not in _TOLD):
        mine = frame[frame["verdict"] == verdict]
        if mine.empty:
            continue
        parts = []
        for name, group in mine.groupby("measure", sort=False):
            words = comparison.measures[str(name)].measure.words
            ratios = group.loc[(group["scale"] == "ratio") & group["mean"].notna(), "mean"]
            shown = (
                ""
                if verdict == "identical" or ratios.empty
                else f" ({_spread(ratios.min(), ratios.max())})"
            )
            parts.append(f"{words} {len(group)}{shown}")
        yield f"{verdict}: {', '.join(parts)}"


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


def _spread(low: float, high: float) -> str:
    """Two ratios: "1.05–1.31×"; one where both read the same."""
    first, last = _number(low), _number(high)
    return f"{first}{TIMES}" if first == last else f"{first}{DASH}{last}{TIMES}"


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


def interval(item: Compared, row: Mapping[str, Any]) -> str:
    """Its interval; empty without one."""
    low, high = row["low"], row["high"]
    if math.isnan(low) or math.isnan(high) or row.get("identical"):
        return ""
    if row["scale"] == "ratio":
        return _spread(low, high)
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


def means_words() -> str:
    """What the means over tasks are."""
    return (
        "Geometric means of the tasks' ratios (of test errors means of differences), each task "
        "once, with bootstrap intervals over the tasks. Tasks on which a side never reaches the "
        "target, or whose ratio has a zero in it, are left out. A mean of fewer than "
        f"{FEWEST_TASKS} tasks decides nothing by itself."
    )


def judged_apart(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with a verdict, of values that are not all identical."""
    return frame[~frame["verdict"].isin(("identical", "advice", "not compared"))]


def differing(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are not all identical."""
    return frame[frame["verdict"] != "identical"]


#: Verdicts that are counted at the head of the page, and what the counts are called.
KEY_FIGURES = (
    *(("worsening", "worse"), ("improvement", "better"), ("mixed", "mixed")),
    *(("no difference told", "not told apart"), ("identical", "identical")),
)
