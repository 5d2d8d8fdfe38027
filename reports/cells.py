"""The results table in words: the same cells for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from marginbench.reports import formatting, statistics

#: How a value of each measure reads.
_FORMATS: dict[str, Callable[[float], str]] = {
    "test_error": formatting.percent,
    "train_error": formatting.percent,
    "late_spread": formatting.percent,
    "suboptimality": formatting.scientific,
    "kernel_evals": formatting.count,
    "kernel_evals_computed": formatting.count,
    "wall_s": formatting.seconds,
    "n_support": formatting.integer,
    "evals_to_target": formatting.count,
    "seconds_to_target": formatting.seconds,
}
NEVER = "never"


@dataclass(frozen=True)
class Cell:
    """One entry of the results table.

    Attributes
    ----------
    value : str
        The median, or why there is none.
    range : str
        Minimum to maximum; empty when all values read the same.
    note : str
        The number of runs behind the value where it is not all of those expected, and how many
        of them ended above the target again.
    best : bool
    absent : bool
    """

    value: str
    range: str = ""
    note: str = ""
    best: bool = False
    absent: bool = False


def make_cell(row: Mapping[str, Any]) -> Cell:
    """The cell of one row of :func:`marginbench.reports.statistics.results_table`."""
    if row["absent"]:
        no_run = row["absent"] == statistics.NO_RUN
        return Cell(formatting.DASH if no_run else row["absent"], absent=True)
    bound = f"≤{formatting.THIN}" if row["at_resolution"] or row["upper_bound"] else ""
    value, low, high = (_say(row["measure"], row[name]) for name in ("median", "low", "high"))
    notes = []
    if not math.isnan(row["n_reached"]) and 0 < row["n_reached"] < row["n"]:
        notes.append(f"{row['n_reached']:.0f} of {row['n']} runs")
    if row["n_kept"] < row["n_reached"]:
        notes.append(f"{row['n_reached'] - row['n_kept']:.0f} ended above")
    return Cell(
        value=value if value == NEVER else bound + value,
        range=formatting.spread(low, high),
        note=", ".join(notes),
        best=bool(row["best"]),
    )


def _say(measure: str, value: float) -> str:
    return NEVER if math.isinf(value) else _FORMATS[measure](value)
