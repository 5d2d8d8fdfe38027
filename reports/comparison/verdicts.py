"""Verdicts: what the changes of measures say of a solver on a task, of a solver, and of all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import binomtest, false_discovery_control

from ..formatting import plural
from ..statistics.errors import CONFIDENCE
from .ratios import Change

Verdict = Literal[
    "failed",
    "worsening",
    "mixed",
    "improvement",
    "no difference told",
    "advice",
    "identical",
    "not compared",
    "skipped",
    "no record",
    "new",
    "gone",
]
#: Worst first; the order of tables.
SEVERITY: tuple[Verdict, ...] = (
    *("failed", "worsening", "mixed", "not compared", "no record", "gone", "new"),
    *("improvement", "no difference told", "advice", "skipped", "identical"),
)
#: Fewer tasks cannot tell a change of their mean from chance: five of five have p = 0.06.
FEWEST_TASKS = 6
_ALPHA = 1 - CONFIDENCE


@dataclass(frozen=True)
class Judged:
    """A verdict on a measure.

    Attributes
    ----------
    verdict : str
    why : str
        What a reader must know of it; empty for nothing.
    beyond : bool
        Whether it is a worsening of which the whole interval is beyond the bound.
    """

    verdict: Verdict
    why: str = ""
    beyond: bool = False


def adjusted(p_values: Sequence[float]) -> list[float]:
    """P-values that allow for how many there are (Benjamini and Hochberg, 1995); NaN stays."""
    values = np.array(p_values, dtype=np.float64)
    known = ~np.isnan(values)
    if known.any():
        values[known] = false_discovery_control(values[known])
    return [float(value) for value in values]


def judged(
    change: Change,
    q: float,
    *,
    bound: float,
    band: float = 1.0,
    advice: str = "",
    incomplete: str = "",
) -> Judged:
    """The verdict on the change of a measure of which less is better.

    Parameters
    ----------
    change : Change
    q : float
        Its p, adjusted.
    bound : float
        The change that is accepted, on the scale of the change.
    band : float
        The ratio that the measurement itself does not tell.
    advice : str
        Why the measure is shown and not judged; empty if it is judged.
    incomplete : {"", "A", "B"}
        The only side of which runs failed or are missing; nothing is said in its favour.

    Returns
    -------
    Judged
    """
    if not change.n:
        return Judged("not compared", "recorded on one side only" if change.n_unknown else "")
    if change.identical:
        return Judged("identical")
    if advice:
        return Judged("advice", advice)
    direction, why = _direction(change, q, band)
    if {"worsening": "A", "improvement": "B"}.get(direction) == incomplete:
        return Judged("advice", f"runs of {incomplete} failed or are missing")
    return Judged(direction, why, direction == "worsening" and _is_beyond(change, bound))


def _direction(change: Change, q: float, band: float) -> tuple[Verdict, str]:
    if change.lost or change.gained:
        return _reached(change)
    if change.exact:
        return _exactly(change, band), ""
    if math.isnan(q):
        return "no difference told", f"{plural(change.n_runs, 'run')}: too few to tell"
    if q > _ALPHA:
        return "no difference told", ""
    return ("worsening" if change.mean > change.unchanged else "improvement"), ""


def _reached(change: Change) -> tuple[Verdict, str]:
    """Where some runs reach a target on one side only."""
    lost, gained, n = change.lost, change.gained, change.n
    one_sided = "reached in A, never in B" if lost else "never reached in A, reached in B"
    if n in (lost, gained):
        return ("worsening" if lost else "improvement"), one_sided
    why = f"only A reaches it in {lost}, only B in {gained} of {plural(n, 'pair')}"
    if change.exact:
        return _exactly(change, 1.0), why
    if binomtest(lost, lost + gained).pvalue <= _ALPHA:
        return ("worsening" if lost > gained else "improvement"), why
    return "no difference told", why


def _exactly(change: Change, band: float) -> Verdict:
    """Of values in which nothing is by chance."""
    above, below = (band, 1 / band) if change.scale == "ratio" else (0.0, 0.0)
    worse = change.lost > 0 or change.high > above
    better = change.gained > 0 or change.low < below
    if worse and better:
        return "mixed"
    return "worsening" if worse else "improvement" if better else "no difference told"


def _is_beyond(change: Change, bound: float) -> bool:
    return math.isfinite(bound) and (change.lost > 0 or change.low > bound)


def of_cell(verdicts: Iterable[Verdict], outcomes: Mapping[str, int]) -> Verdict:
    """The verdict on a solver on a task.

    Parameters
    ----------
    verdicts : iterable of str
        On its measures.
    outcomes : mapping of str to int
        How many pairs of runs ended how: :mod:`marginbench.reports.comparison.pairing`.
    """
    if any(name.startswith("failed") for name in outcomes):
        return "failed"
    found = combined(verdicts)
    if "compared" in outcomes:
        return found
    for name, verdict in _WITHOUT_NUMBERS:
        if any(outcome.startswith(name) for outcome in outcomes):
            return verdict
    return "not compared"


_WITHOUT_NUMBERS: tuple[tuple[str, Verdict], ...] = (
    ("problem differs", "not compared"),
    ("no record", "no record"),
    ("gone", "gone"),
    ("new", "new"),
    ("skipped", "skipped"),
)


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several: mixed if some are better and others worse."""
    found = set(verdicts)
    if "mixed" in found or {"worsening", "improvement"} <= found:
        return "mixed"
    for verdict in _ONE_FOR_ALL:
        if verdict in found:
            # What is not judged may differ.
            same = verdict == "identical" and "advice" in found
            return "no difference told" if same else verdict
    return "not compared"


_ONE_FOR_ALL: tuple[Verdict, ...] = (
    *("worsening", "improvement", "no difference told", "identical", "advice"),
)


def of_tasks(
    verdicts: Sequence[Verdict], low: float, high: float, *, unchanged: tuple[float, float], n: int
) -> Verdict:
    """The verdict on a measure of a solver over tasks.

    That of the tasks where these tell a change; else that of their mean, of at least six tasks.

    Parameters
    ----------
    verdicts : sequence of str
        On the tasks.
    low, high : float
        The interval of the mean over ``n`` tasks.
    unchanged : tuple of float
        What the measurement does not tell from no change, from and to.
    n : int
    """
    found = combined(verdicts)
    if found == "no difference told" and "advice" in verdicts:
        return "advice"
    if found != "no difference told" or n < FEWEST_TASKS:
        return found
    if low > unchanged[1]:
        return "worsening"
    return "improvement" if high < unchanged[0] else found
