"""What a comparison of two commits says, in the words that terminal, JSON and pages share."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from .. import formatting
from ..formatting import plural
from .measures import Watched
from .repository import Commit
from .values import Benchmark, Cell
from .verdicts import (
    EXIT_FAILED,
    EXIT_SAME,
    EXIT_WORSE,
    CellVerdict,
    Change,
    Comparison,
    Verdict,
)

# Suites that measure single cells on the command line.
_RUNNABLE = ("work", "shapes")
#: Ratios are cut at what reads as a number.
_MOST = 1000.0
_VERBS: dict[Verdict, tuple[str, str]] = {
    "failed": ("cell fails", "cells fail"),
    "regression": ("cell regresses", "cells regress"),
    "mixed": ("cell is better and worse", "cells are better and worse"),
    "gone": ("cell is gone", "cells are gone"),
    "improvement": ("cell improves", "cells improve"),
    "mended": ("cell works again", "cells work again"),
    "new": ("cell is new", "cells are new"),
    "still failing": ("cell still fails", "cells still fail"),
    "unchanged": ("cell is unchanged", "cells are unchanged"),
}


@dataclass(frozen=True)
class Pair:
    """Two commits and what changed between them.

    Attributes
    ----------
    base, head : Commit
    comparison : Comparison
    notes : tuple of str
        What a reader must know besides.
    """

    base: Commit
    head: Commit
    comparison: Comparison
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """What changed in the cells of one solver.

    Attributes
    ----------
    name : str
    verdicts : tuple of (str, int)
        How many cells have which verdict, without those unchanged.
    n_cells : int
    measures : tuple of str
        The changes of its measures over these cells, in words.
    """

    name: str
    verdicts: tuple[tuple[Verdict, int], ...]
    n_cells: int
    measures: tuple[str, ...]


def headline(comparison: Comparison) -> str:
    """The verdict: what failed and what is worse first, in one sentence."""
    parts = [
        f"{number} {_VERBS[verdict][number != 1]}"
        for verdict in _VERBS
        if (number := comparison.counts[verdict])
    ]
    return f"{gate_words(comparison)}: {'; '.join(parts) or 'nothing was measured'}"


def gate_words(comparison: Comparison) -> str:
    """The verdict of the gate in a word or two."""
    code = comparison.exit_code
    if code == EXIT_FAILED:
        return "failed"
    if code == EXIT_WORSE:
        return "worse"
    known = any(each.accepted for each in comparison.cells)
    return "passed, with known changes" if known else "passed"


def ratio_words(change: Change) -> str:
    """How a value changed; a dash where there is one side only."""
    if change.before is None or change.after is None:
        return formatting.DASH
    return change_words(change.measure, change.before, change.after)


def change_words(measure: Watched, before: float, after: float) -> str:
    """After / before, or the difference where there is no ratio or it says nothing."""
    if measure.unit == "%" or before <= 0 or after <= 0:
        sign = "+" if after > before else "\N{MINUS SIGN}"
        if measure.unit == "%":
            return f"{sign}{formatting.decimals(abs(after - before), 2)} points"
        return f"{sign}{measure.say(abs(after - before))}"
    found = after / before
    if found >= _MOST:
        return f"{formatting.TIMES}{_MOST:.0f} or more"
    if found <= 1 / _MOST:
        return f"{formatting.TIMES}{1 / _MOST:g} or less"
    return f"{formatting.TIMES}{_three(found)}"


def _three(value: float) -> str:
    """To three digits, and to as many as tell it from 1."""
    for digits in (3, 4, 5):
        text = f"{value:.{digits}g}"
        if float(text) != 1:
            return text
    return f"{value:.6g}"


def gate_sentence(comparison: Comparison) -> str:
    """The exit code of ``marginbench regressions`` in words."""
    code = comparison.exit_code
    if code == EXIT_SAME:
        return "The gate lets this pass (exit code 0)."
    what = "cells fail" if code == EXIT_FAILED else "something is worse"
    return f"The gate refuses this: {what} and no known change says why (exit code {code})."


def value_words(change: Change, value: float | None) -> str:
    """A value with its unit."""
    return formatting.DASH if value is None else change.measure.say(value)


def estimate_words(change: Change) -> str:
    """The ratio of two times with its interval."""
    found = change.estimate
    if found is None:
        return ratio_words(change)
    return f"{formatting.TIMES}{found.ratio:.2f} ({found.low:.2f}{formatting.DASH}{found.high:.2f})"


def groups(comparison: Comparison) -> list[Group]:
    """The solvers of which something changed, in the order of their worst cells."""
    cells: dict[str, list[CellVerdict]] = {}
    for each in comparison.cells:
        cells.setdefault(each.cell.group, []).append(each)
    return [
        Group(name, changed, len(members), tuple(_spans(members)))
        for name, members in cells.items()
        if (changed := _changed(members))
    ]


def _changed(members: Sequence[CellVerdict]) -> tuple[tuple[Verdict, int], ...]:
    found: dict[Verdict, int] = {}
    for each in members:
        if each.verdict != "unchanged":
            found[each.verdict] = found.get(each.verdict, 0) + 1
    return tuple(found.items())


def _spans(members: Sequence[CellVerdict]) -> list[str]:
    """For each measure that changed: its smallest and largest ratio, or difference."""
    changes: dict[str, list[Change]] = {}
    for each in members:
        for change in each.told:
            changes.setdefault(change.measure.title, []).append(change)
    found = []
    for title, each_change in changes.items():
        ordered = sorted(each_change, key=_extent)
        ends = dict.fromkeys((ratio_words(ordered[0]), ratio_words(ordered[-1])))
        found.append(f"{title} {' to '.join(ends)}")
    return found


def _extent(change: Change) -> float:
    if change.before is None or change.after is None:
        return math.inf
    found = change.ratio
    is_ratio = found is not None and change.measure.unit != "%"
    return math.log(found) if is_ratio and found else change.after - change.before


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know of how the two were measured."""
    found = []
    if comparison.before.lane != comparison.after.lane:
        found.append(
            f"measured in two places, {' with '.join(comparison.before.lane)} and "
            f"{' with '.join(comparison.after.lane)}: times and memory do not compare"
        )
    if comparison.other_code:
        found.append(
            f"the code of {_named(comparison.other_code)} differs between the two measurements: "
            "values may differ because of that"
        )
    if comparison.one_sided:
        found.append(f"{_named(comparison.one_sided)} ran on one side only: nothing is said of it")
    untimed = sum(
        change.outcome == "advice" and change.estimate is None and change.measure.is_time
        for each in comparison.cells
        for change in each.changes
    )
    if untimed:
        found.append(
            f"{plural(untimed, 'time')} not compared: the two commits were not timed in turns"
        )
    return found


def _named(benchmarks: Sequence[Benchmark]) -> str:
    names = [".".join(each) for each in benchmarks[:3]]
    more = len(benchmarks) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def reproduce(cell: Cell, commit: Commit) -> str:
    """The command that measures a cell at a commit, in a checkout with its dependencies."""
    module, _, name = cell.suite.partition(".")
    if module in _RUNNABLE:
        measured = f"python -m benchmarks.{module} {shlex.quote(cell.name)}"
    else:
        measured = f"asv run --python=same --bench {shlex.quote(f'^{module}.{name}')}"
    return f"git switch --detach {commit.short} && {measured}"
