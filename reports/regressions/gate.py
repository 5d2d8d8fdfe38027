"""Whether a commit is worse than another: two snapshots, value by value and cell by cell.

One frame holds a row for each cell and measure. Every value that changes beyond its bound counts,
one by one: no mean hides a cell, and a cell that fails hides nothing of the others.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from .. import formatting
from ..comparison.ratios import ratio_of_samples
from ..comparison.report import plain, ratio
from ..formatting import DASH, plural
from ..frames import records
from .annotations import Annotation, chosen
from .asv_files import FAILED, Benchmark, Cell, Key, Snapshot, Value
from .measures import Watched, watched
from .repository import Commit

#: The verdicts on cells, the worst first, with what a headline says of one and of several.
VERDICTS: Mapping[str, tuple[str, str]] = {
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
GONE = "gone"
#: Exit codes of the gate.
EXIT_SAME, EXIT_WORSE, EXIT_FAILED = 0, 1, 2
#: Raised when a key of the JSON document changes its meaning or goes.
SCHEMA_VERSION = 1
# Suites that measure single cells on the command line.
_RUNNABLE = ("work", "shapes")
_CELL = ["suite", "cell"]
#: Verdicts on values that are more than their bounds, or no more.
_TOLD = ("worse", "better", GONE)


@dataclass(frozen=True)
class Gate:
    """What changed from one commit to another.

    Attributes
    ----------
    before, after : Snapshot
    measures : mapping of str to Watched
    values : DataFrame
        A row for each cell and measure: ``before`` and ``after``, their ``ratio``; of times also
        an ``estimate`` of it with its interval, ``low`` to ``high``, from ``n_before`` and
        ``n_after`` samples; ``size``, the change in units of its bound, positive for a worsening;
        ``verdict``: worse, better, within bound, same, new, gone or advice; ``known``, why a
        worsening is accepted, and ``refused``. In the order of the cells, of each the most
        significant first.
    cells : DataFrame
        A row for each cell, the worst first: its ``verdict``, ``known`` and ``refused``.
    """

    before: Snapshot
    after: Snapshot
    measures: Mapping[str, Watched]
    values: pd.DataFrame
    cells: pd.DataFrame

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict, the worst first."""
        found = Counter(self.cells["verdict"])
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    @cached_property
    def told(self) -> pd.DataFrame:
        """The values beyond their bounds, and those that are no more."""
        return self.values[self.values["verdict"].isin(_TOLD)]

    @cached_property
    def advice(self) -> pd.DataFrame:
        """Changes of measures that only advise, the largest first.

        Those that the turns tell; of what has no turns, such as memory, those beyond their bounds.
        """
        found = self.values[self.values["verdict"] == "advice"]
        timed = found["measure"].map(lambda name: self.measures[name].is_time).astype(bool)
        told = ((found["low"] > 1) | (found["high"] < 1)).where(timed, found["size"].abs() > 1)
        found = found[told.astype(bool)]
        keys = found.assign(size=-found["size"].abs()).sort_values(["size", *_CELL, "measure"])
        return found.loc[keys.index]

    @property
    def exit_code(self) -> int:
        """2: cells fail that did not; 1: something else is worse and not a known change; else 0."""
        refused = self.cells[self.cells["refused"].astype(bool)]
        if ((refused["verdict"] == "failed") & (refused["known"] == "")).any():
            return EXIT_FAILED
        return EXIT_SAME if refused.empty else EXIT_WORSE

    @property
    def verdict(self) -> str:
        """That of the gate in a word or two."""
        if code := self.exit_code:
            return "failed" if code == EXIT_FAILED else "worse"
        return "passed, with known changes" if self.cells["known"].any() else "passed"

    @property
    def headline(self) -> str:
        """The verdict: what failed and what is worse first, in one sentence."""
        parts = [f"{n} {VERDICTS[verdict][n != 1]}" for verdict, n in self.counts.items()]
        return f"{self.verdict}: {'; '.join(parts) or 'nothing was measured'}"

    @property
    def other_code(self) -> tuple[Benchmark, ...]:
        """Benchmarks whose own code differs between the two, so that values may not compare."""
        return tuple(
            each
            for each, version in sorted(self.before.versions.items())
            if self.after.versions.get(each, version) != version
        )

    @property
    def one_sided(self) -> tuple[Benchmark, ...]:
        """Benchmarks that were run on one side only; nothing is said of them."""
        return tuple(sorted(self.before.versions.keys() ^ self.after.versions.keys()))

    @property
    def notes(self) -> list[str]:
        """What a reader must know of how the two were measured."""
        found = []
        if self.before.lane != self.after.lane:
            found.append(
                f"measured in two places, {' with '.join(self.before.lane)} and "
                f"{' with '.join(self.after.lane)}: times and memory do not compare"
            )
        if self.other_code:
            found.append(
                f"the code of {_named(self.other_code)} differs between the two measurements: "
                "values may differ because of that"
            )
        if self.one_sided:
            found.append(f"{_named(self.one_sided)} ran on one side only: nothing is said of it")
        advice = self.values[self.values["verdict"] == "advice"]
        untimed = sum(
            self.measures[row["measure"]].is_time and not row["n_before"] for row in records(advice)
        )
        if untimed:
            found.append(
                f"{plural(untimed, 'time')} not compared: the two commits were not timed in turns"
            )
        return found


@dataclass(frozen=True)
class Pair:
    """Two commits and what changed between them.

    Attributes
    ----------
    base, head : Commit
    gate : Gate
    notes : tuple of str
        What a reader must know besides.
    """

    base: Commit
    head: Commit
    gate: Gate
    notes: tuple[str, ...] = ()

    @property
    def all_notes(self) -> list[str]:
        """What a reader must know."""
        return [*self.notes, *self.gate.notes]


def judged(
    before: Snapshot,
    after: Snapshot,
    *,
    annotations: Sequence[Annotation] = (),
    bounds: Mapping[str, float] | None = None,
) -> Gate:
    """Compare two snapshots, value by value.

    Parameters
    ----------
    before, after : Snapshot
    annotations : sequence of Annotation
        The known changes between them.
    bounds : mapping of str to float, optional
        Bounds of the user by names of measures.
    """
    both = before.versions.keys() & after.versions.keys()
    units = {**before.units, **after.units}
    measures = {
        each.measure: watched(each.measure, units.get(each.measure, ""), bounds) for each in both
    }
    keys = [
        key
        for key in sorted({*before.values, *after.values})
        if Benchmark(key.cell.suite, key.measure) in both
    ]
    rows = [
        _value(
            key, measures[key.measure], before.values.get(key), after.values.get(key), annotations
        )
        for key in keys
        if key.measure != FAILED
    ]
    by_cell: dict[Cell, list[dict[str, Any]]] = {key.cell: [] for key in keys}
    for row in sorted(rows, key=lambda row: -abs(row["size"])):
        by_cell[Cell(row["suite"], row["cell"])].append(row)
    sides = [(side.cells(), side.failed_cells()) for side in (before, after)]
    cells = [
        _cell(cell, tuple(_state(cell, *side) for side in sides), mine, annotations)
        for cell, mine in by_cell.items()
    ]
    severity = list(VERDICTS)
    cells.sort(
        key=lambda row: (severity.index(row["verdict"]), -row["size"], row["suite"], row["cell"])
    )
    ordered = [row for cell in cells for row in by_cell[Cell(cell["suite"], cell["cell"])]]
    return Gate(
        before,
        after,
        measures,
        pd.DataFrame(ordered, columns=_VALUES),
        pd.DataFrame(cells, columns=[*_CELL, "solver", "verdict", "known", "refused", "size"]),
    )


_VALUES = [
    *(*_CELL, "solver", "measure", "before", "after", "ratio", "estimate", "low", "high"),
    *("n_before", "n_after", "size", "verdict", "known", "refused"),
]


def _value(
    key: Key,
    measure: Watched,
    left: Value | None,
    right: Value | None,
    annotations: Sequence[Annotation],
) -> dict[str, Any]:
    """The row of a value."""
    old, new = (
        math.nan if side is None or side.number is None else side.number for side in (left, right)
    )
    known: Annotation | None = None
    size, estimate = 0.0, None
    if math.isnan(old) or math.isnan(new):
        verdict = (
            "same" if math.isnan(old) and math.isnan(new) else "new" if math.isnan(old) else GONE
        )
        if verdict == GONE and not measure.gates:
            verdict = "advice"
        known = chosen(annotations, key.cell, GONE) if verdict == GONE else None
    else:
        size = measure.beyond(old, new)
        if not measure.gates:
            verdict = "advice"
            estimate = ratio_of_samples(left.samples, right.samples) if left and right else None
        elif abs(size) <= 1:
            verdict = "within bound" if old != new else "same"
        else:
            verdict = "worse" if size > 0 else "better"
            # More than nothing is infinitely more.
            factor = new / old if old > 0 else math.inf
            known = chosen(annotations, key.cell, key.measure, factor) if size > 0 else None
    low, high = (estimate.low, estimate.high) if estimate else (math.nan, math.nan)
    n = estimate.n if estimate else (0, 0)
    return {
        "suite": key.cell.suite,
        "cell": key.cell.name,
        "solver": key.cell.group,
        "measure": key.measure,
        "before": old,
        "after": new,
        "ratio": new / old if old > 0 and new > 0 else math.nan,
        "estimate": estimate.ratio if estimate else math.nan,
        "low": low,
        "high": high,
        "n_before": n[0],
        "n_after": n[1],
        "size": size,
        "verdict": verdict,
        "known": known.why if known else "",
        "refused": verdict in ("worse", GONE) and known is None,
    }


def _state(cell: Cell, present: frozenset[Cell], failing: frozenset[Cell]) -> str:
    if cell not in present:
        return "absent"
    return "failing" if cell in failing else "well"


_BY_STATES: Mapping[tuple[str, ...], str] = {
    ("well", "failing"): "failed",
    ("absent", "failing"): "failed",
    ("failing", "failing"): "still failing",
    ("failing", "well"): "mended",
    ("absent", "well"): "new",
    ("well", "absent"): "gone",
    ("failing", "absent"): "gone",
}


def _cell(
    cell: Cell,
    states: tuple[str, ...],
    values: Sequence[Mapping[str, Any]],
    annotations: Sequence[Annotation],
) -> dict[str, Any]:
    """The row of a cell, from those of its values."""
    worse = [row for row in values if row["verdict"] in ("worse", GONE)]
    better = any(row["verdict"] == "better" for row in values)
    verdict = _BY_STATES.get(states, "")
    refused = any(row["refused"] for row in values)
    known = ""
    if verdict in ("failed", GONE):
        accepted = chosen(annotations, cell, FAILED if verdict == "failed" else GONE)
        known = accepted.why if accepted else ""
        # Values go with what fails; one that is worse is another matter.
        refused = not known or any(row["refused"] and row["verdict"] == "worse" for row in values)
    elif not verdict:
        verdict = "mixed" if worse and better else "regression" if worse else ""
        verdict = verdict or ("improvement" if better else "unchanged")
        known = worse[0]["known"] if worse and not refused else ""
    return {
        "suite": cell.suite,
        "cell": cell.name,
        "solver": cell.group,
        "verdict": verdict,
        "known": known,
        "refused": refused,
        "size": max((abs(row["size"]) for row in values if row["verdict"] in _TOLD), default=0.0),
    }


def change_words(measure: Watched, before: float, after: float) -> str:
    """After / before, or the difference where there is no ratio or it says nothing."""
    if math.isnan(before) or math.isnan(after):
        return DASH
    if measure.unit != "%" and before > 0 and after > 0:
        return ratio(after / before)
    sign = "+" if after > before else "\N{MINUS SIGN}"
    size = abs(after - before)
    if measure.unit == "%":
        return f"{sign}{formatting.decimals(size, 2)} points"
    return f"{sign}{measure.say(size)}"


def _named(benchmarks: Sequence[Benchmark]) -> str:
    names = [".".join(each) for each in benchmarks[:3]]
    more = len(benchmarks) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def reproduce(suite: str, cell: str, commit: Commit) -> str:
    """The command that measures a cell at a commit, in a checkout with its dependencies."""
    module, _, name = suite.partition(".")
    if module in _RUNNABLE:
        measured = f"python -m benchmarks.{module} {shlex.quote(cell)}"
    else:
        measured = f"asv run --python=same --bench {shlex.quote(f'^{module}.{name}')}"
    return f"git switch --detach {commit.short} && {measured}"


def as_json(pair: Pair) -> str:
    """All of it as JSON: stable order, finite numbers or null."""
    gate = pair.gate
    values = dict(iter(gate.values.groupby(_CELL)))
    changed = gate.cells[gate.cells["verdict"] != "unchanged"]
    content = {
        "schema_version": SCHEMA_VERSION,
        "verdict": gate.verdict,
        "exit_code": gate.exit_code,
        "summary": gate.headline,
        "base": _side(pair.base, gate.before),
        "head": _side(pair.head, gate.after),
        "counts": gate.counts,
        "cells": [_cell_json(row, values, pair.head) for row in records(changed)],
        "times": _values_json(gate.values[gate.values["verdict"] == "advice"]),
        "notes": pair.all_notes,
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _side(commit: Commit, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "commit": commit.hash,
        "subject": commit.subject,
        "date": commit.date,
        "environment": snapshot.lane.environment,
        "machine": dict(snapshot.machine),
    }


def _cell_json(
    row: Mapping[str, Any], values: Mapping[Any, pd.DataFrame], head: Commit
) -> dict[str, Any]:
    mine = values.get((row["suite"], row["cell"]), pd.DataFrame(columns=_VALUES))
    return {
        **{name: row[name] for name in (*_CELL, "solver", "verdict", "refused")},
        "known": row["known"] or None,
        "changes": _values_json(mine[mine["verdict"] != "advice"]),
        "reproduce": reproduce(row["suite"], row["cell"], head),
    }


def _values_json(values: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            **{name: plain(row[name]) for name in (*_CELL, "measure", "before", "after", "ratio")},
            "outcome": row["verdict"],
            "times_its_bound": plain(row["size"]),
            "known": row["known"] or None,
            "estimate": None
            if not row["n_before"]
            else {
                "ratio": plain(row["estimate"]),
                "low": plain(row["low"]),
                "high": plain(row["high"]),
                "samples": [row["n_before"], row["n_after"]],
            },
        }
        for row in records(values)
    ]
