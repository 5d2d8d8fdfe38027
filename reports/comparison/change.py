"""How a measure changed from A to B over paired runs, and the verdict on it.

Pure functions of arrays. Ratios are B over A, taken as logarithms, so that A against B is the
mirror image of B against A. Less is better of every measure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import binomtest, false_discovery_control, norm, t as student

from ..formatting import plural
from ..frames import RUN, json_object, records
from ..statistics.errors import CONFIDENCE, SolverErrors, difference

#: Outcomes of a pair of runs. Only the first one has numbers.
COMPARED = "compared"
OTHER_PROBLEM = "problem differs"
NEW, GONE = "new", "gone"
FAILED_A, FAILED_B, FAILED_BOTH = "failed in A", "failed in B", "failed in both"
MISSING_A, MISSING_B, MISSING_BOTH = "no record in A", "no record in B", "no record in both"
#: All of them, in the order of tables.
OUTCOMES = (
    *(COMPARED, FAILED_B, FAILED_A, FAILED_BOTH, OTHER_PROBLEM, MISSING_B, MISSING_A, MISSING_BOTH),
    *(GONE, NEW, "skipped in B", "skipped in A", "skipped in both"),
)
_STATES = {"failed": "failed", "missing": "no record", "skipped": "skipped"}

#: What determines the problem of a run, besides its reference optimum, and what it is called.
_PROBLEM = {
    "fingerprint": "data",
    "kernel": "kernel",
    "C": "C",
    "fit_intercept": "bias",
    "problem": "generated problem",
}
#: How far, relatively, two sums of the same optimum may differ.
_ROUNDING = 1e-12
_REFERENCE = ["reference_primal", "reference_gap", "reference_hash"]
_COLUMNS = [
    *(*RUN, "outcome", "why", "status_a", "status_b", "seed_a", "seed_b", "same_reference"),
]


def paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Every run of either side with the outcome of its counterpart.

    In the order of A, what is new last. Columns task, solver, seed, outcome, why (in words; empty
    if there is nothing to say), status_a and status_b (empty where the run is not planned), seed_a
    and seed_b (of the records that are compared) and same_reference (whether costs to targets and
    suboptimality are to the same optimum).
    """
    sides = [{tuple(row[name] for name in RUN): row for row in records(s)} for s in (before, after)]
    rows = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        a, b = (side.get(key) for side in sides)
        outcome, why = _outcome(a, b)
        statuses = (a["status"] if a else "", b["status"] if b else "")
        seeds = [row.get("run", row["seed"]) if row else -1 for row in (a, b)]
        same = bool(a and b and all(_plain(a.get(n)) == _plain(b.get(n)) for n in _REFERENCE))
        rows.append((*key, outcome, why, *statuses, *seeds, same))
    return pd.DataFrame(rows, columns=_COLUMNS)


def spread_single_runs(
    before: pd.DataFrame, after: pd.DataFrame, deterministic: set[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let the only run of a deterministic solver stand beside each seed of the other side.

    ``deterministic`` names the sides, of {"A", "B"}, whose solver draws nothing: its one run is
    that of every seed. The column ``run`` keeps the seed that was run.
    """
    before, after = before.assign(run=before["seed"]), after.assign(run=after["seed"])
    if "A" in deterministic:
        before = _spread(before, after)
    if "B" in deterministic:
        after = _spread(after, before)
    return before, after


def _spread(single: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The rows of each task and solver with one run, for all seeds of the other side."""
    seeds = {key: list(group["seed"]) for key, group in other.groupby(["task", "solver"])}
    rows = []
    for key, group in single.groupby(["task", "solver"], sort=False):
        wanted = seeds.get(key, [])
        if len(group) == 1 and len(wanted) > 1:
            group = pd.concat([group.assign(seed=seed) for seed in wanted])
        rows.append(group)
    return pd.concat(rows, ignore_index=True) if rows else single


def _outcome(before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[str, str]:
    states = _state(before), _state(after)
    for state, words in _STATES.items():
        hits = [each == state for each in states]
        if state != "failed" and "absent" in states:
            break
        if any(hits):
            side = "both" if all(hits) else "AB"[hits.index(True)]
            return f"{words} in {side}", _reason(before, after, hits)
    if before is None or after is None:
        return (NEW, "") if before is None else (GONE, "")
    differing = _differing(before, after)
    return (OTHER_PROBLEM, ", ".join(differing)) if differing else (COMPARED, "")


def _state(row: dict[str, Any] | None) -> str:
    """How a run ended, as far as comparing it goes; a damaged record tells nothing of its run."""
    if row is None:
        return "absent"
    if row["ok"]:
        return "ok"
    status = str(row["status"])
    return {"skipped": "skipped", "missing": "missing", "damaged": "missing"}.get(status, "failed")


def _reason(before: dict[str, Any] | None, after: dict[str, Any] | None, hits: list[bool]) -> str:
    """The status and the reason of the sides that have no result."""
    parts = {
        side: f"{row['status']}: {row['reason']}" if row["reason"] else str(row["status"])
        for side, row, hit in zip("AB", (before, after), hits, strict=True)
        if row is not None and hit
    }
    if len(set(parts.values())) == 1:
        return next(iter(parts.values()))
    return "; ".join(f"{side} {words}" for side, words in parts.items())


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What of the problem differs, in words."""
    parts = [
        words
        for column, words in _PROBLEM.items()
        if column in before and _plain(before[column]) != _plain(after[column])
    ]
    if not parts and "reference_primal" in before and _disjoint(before, after):
        parts.append("reference optimum")
    return parts


def _plain(value: Any) -> Any:
    """A value of a record to compare: JSON by its content, an unknown number as None."""
    if isinstance(value, str) and value.startswith("{"):
        return json_object(value)
    return None if pd.isna(value) else value


def _disjoint(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether the certified intervals of the two optima exclude each other."""
    a, b = ([row[name] for name in _REFERENCE[:2]] for row in (before, after))
    if pd.isna([*a, *b]).any():
        return False
    # The gap of an optimum that is exact is all rounding, and may be negative.
    lower = [primal - max(gap, _ROUNDING * abs(primal)) for primal, gap in (a, b)]
    return bool(a[0] < lower[1] or b[0] < lower[0])


#: Fewer pairs than this have no interval: two seeds tell next to nothing of how others scatter.
FEWEST_FOR_INTERVAL = 3
#: Fewer tasks cannot tell a change of their mean from chance: five of five have p = 0.06.
FEWEST_TASKS = 6
#: Before why a worsening beyond its bound is accepted.
KNOWN = "known: "
_ALPHA = 1 - CONFIDENCE

Floats = npt.NDArray[np.float64]
Scale = Literal["ratio", "difference"]
Verdict = Literal[
    "failed",
    "worsening",
    "mixed",
    "not compared",
    "no record",
    "gone",
    "new",
    "improvement",
    "no difference told",
    "advice",
    "skipped",
    "identical",
]
#: Worst first; the order of tables.
SEVERITY: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Change:
    """How a measure changed over pairs of runs."""

    n: int = 0  # pairs with a value on both sides
    n_unknown: int = 0  # pairs with a value on one side only
    # Different runs on the side with fewer of them: a single run may stand in several pairs.
    n_runs: int = 0
    before: float = math.nan  # medians; infinite: the median run never reached the target
    after: float = math.nan
    # What the following are: B over A, or B less A of errors and where a value is zero.
    scale: Scale = "ratio"
    # Geometric mean and median of the ratios, or mean and median of the differences, over the pairs
    # that are finite on both sides; NaN of none.
    mean: float = math.nan
    median: float = math.nan
    # The interval of the mean; of exact values their range. NaN where there is none.
    low: float = math.nan
    high: float = math.nan
    # How probable a mean as far from no change would be by chance; NaN where nothing is tested.
    p: float = math.nan
    exact: bool = False  # whether each pair tells the change itself, as nothing in it is by chance
    identical: bool = False
    reached_before: int = 0  # pairs in which A, and in which B, has a finite value
    reached_after: int = 0
    # Pairs in which only A, or only B, has a finite value, such as the cost of a target.
    lost: int = 0
    gained: int = 0

    @property
    def unchanged(self) -> float:
        """The value of no change on its scale."""
        return 1.0 if self.scale == "ratio" else 0.0


def change(
    before: Floats,
    after: Floats,
    *,
    exact: bool = False,
    band: float = 1.0,
    absolute: float = 0.0,
    by_difference: bool = False,
    n_runs: int | None = None,
) -> Change:
    """The change of a measure whose values are not negative, over pairs.

    NaN is unknown, infinite never reached. Ratios within ``band`` are what the measurement does not
    tell, differences up to ``absolute`` are none. Of ``exact`` values the interval is their range.
    """
    both = ~(np.isnan(before) | np.isnan(after))
    n_unknown = int((np.isnan(before) != np.isnan(after)).sum())
    a, b = before[both], after[both]
    if not len(a):
        return Change(n_unknown=n_unknown)
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = a[finite], b[finite]
    is_ratio = not by_difference and bool((x > 0).all() and (y > 0).all())
    values = np.log(y) - np.log(x) if is_ratio else y - x
    # Rounding may put a difference just beyond the one that is accepted.
    values[np.abs(y - x) <= absolute * (1 + 1e-9)] = 0.0
    n_different = len(values) if n_runs is None else min(n_runs, len(values))
    margin = math.log(band) if is_ratio else 0.0
    mean, median, low, high, p = _estimate(values, exact, margin, n_different)
    lost = int((np.isfinite(a) & ~np.isfinite(b)).sum())
    gained = int((~np.isfinite(a) & np.isfinite(b)).sum())
    if lost or gained:
        p = math.nan if exact else float(binomtest(lost, lost + gained).pvalue)
    back = _exp if is_ratio else float
    return Change(
        n=len(a),
        n_unknown=n_unknown,
        n_runs=n_different,
        before=float(np.median(a)),
        after=float(np.median(b)),
        scale="ratio" if is_ratio else "difference",
        mean=back(mean),
        median=back(median),
        low=back(low),
        high=back(high),
        p=p,
        exact=exact,
        identical=not n_unknown and bool((a == b).all()),
        reached_before=int(np.isfinite(a).sum()),
        reached_after=int(np.isfinite(b).sum()),
        lost=lost,
        gained=gained,
    )


def _estimate(
    values: Floats, exact: bool, margin: float, n: int
) -> tuple[float, float, float, float, float]:
    """Mean, median, both ends of the interval, and p against a change within the margin."""
    nan = math.nan
    if not len(values):
        return nan, nan, nan, nan, nan
    mean, median = float(values.mean()), float(np.median(values))
    if exact:
        return mean, median, float(values.min()), float(values.max()), nan
    if n < FEWEST_FOR_INTERVAL:
        return mean, median, nan, nan, nan
    error, freedom = float(values.std(ddof=1)) / math.sqrt(len(values)), len(values) - 1
    half = float(student.ppf(0.5 + CONFIDENCE / 2, freedom)) * error
    excess = abs(mean) - margin
    p = 1.0 if excess <= 0 else 0.0
    if excess > 0 and error > 0:
        p = min(1.0, 2 * float(student.sf(excess / error, freedom)))
    return mean, median, mean - half, mean + half, p


def _exp(value: float) -> float:
    """Beyond the range of floating point there is no ratio to tell."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def error_change(before: SolverErrors, after: SolverErrors, *, n: int, by_chance: bool) -> Change:
    """The change of the test error over ``n`` pairs: B less A, on the same test points.

    The interval is that of :func:`marginbench.reports.statistics.errors.difference`. Its p follows
    from the interval as of a normal one: Altman and Bland (2011), BMJ 343, d2304. Of solvers that
    draw at random, fewer than three pairs have no interval.
    """
    estimate = difference(after, before)
    enough = not by_chance or n >= FEWEST_FOR_INTERVAL
    pairs = after.rates - before.rates if len(after.rates) == len(before.rates) else None
    return Change(
        n=n,
        n_runs=n,
        before=float(np.median(before.rates)),
        after=float(np.median(after.rates)),
        scale="difference",
        mean=estimate.value,
        median=estimate.value if pairs is None else float(np.median(pairs)),
        low=estimate.low if enough else math.nan,
        high=estimate.high if enough else math.nan,
        p=_implied_p(estimate.value, estimate.low, estimate.high) if enough else math.nan,
        identical=_same_errors(before, after),
        reached_before=n,
        reached_after=n,
    )


def _implied_p(value: float, low: float, high: float) -> float:
    width = value - low if value > 0 else high - value
    if value == 0 or width <= 0:
        return 1.0 if value == 0 else 0.0
    return 2 * float(norm.sf(float(norm.ppf(0.5 + CONFIDENCE / 2)) * abs(value) / width))


def _same_errors(before: SolverErrors, after: SolverErrors) -> bool:
    """Whether both err on the same points, as far as these are recorded."""
    if not np.array_equal(before.rates, after.rates):
        return False
    if before.mistakes is None or after.mistakes is None:
        return True
    return bool(np.array_equal(before.mistakes, after.mistakes))


def mean_over_tasks(
    means: Floats, scale: Scale, band: float = 1.0
) -> tuple[float, float, float, float]:
    """The mean of the changes of several tasks, its 95 % t interval, and p as of a :class:`Change`.

    Ratios have a geometric mean. With fewer than three tasks there is no interval and no p.
    """
    is_ratio = scale == "ratio"
    values = np.log(means) if is_ratio else np.asarray(means, dtype=np.float64)
    margin = math.log(band) if is_ratio else 0.0
    mean, _, low, high, p = _estimate(values, False, margin, len(values))
    back = _exp if is_ratio else float
    return back(mean), back(low), back(high), p


class Judged(NamedTuple):
    """A verdict on a measure."""

    verdict: Verdict
    why: str = ""  # what a reader must know of it; empty for nothing
    # Whether it is a worsening of which the whole interval is beyond the bound.
    beyond: bool = False


def adjusted(p_values: Sequence[float]) -> list[float]:
    """P-values that allow for how many there are (Benjamini and Hochberg, 1995); NaN stays."""
    values = np.array(p_values, dtype=np.float64)
    present = ~np.isnan(values)
    if present.any():
        values[present] = false_discovery_control(values[present])
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
    """The verdict on the change of a measure, of which ``q`` is p, adjusted.

    ``incomplete`` is the only side of which runs failed or are missing; no verdict is in its
    favour. ``advice`` says why the measure is shown and not judged.
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
    beyond = direction == "worsening" and math.isfinite(bound)
    return Judged(direction, why, beyond and (change.lost > 0 or change.low > bound))


def _direction(change: Change, q: float, band: float) -> tuple[Verdict, str]:
    if change.lost or change.gained:
        return _reached(change, q)
    if change.exact:
        return _exactly(change, band), ""
    if math.isnan(q):
        return "no difference told", f"{plural(change.n_runs, 'run')}: too few to tell"
    if q > _ALPHA:
        return "no difference told", ""
    return ("worsening" if change.mean > change.unchanged else "improvement"), ""


def _reached(change: Change, q: float) -> tuple[Verdict, str]:
    """Where some runs reach a target on one side only."""
    lost, gained, n = change.lost, change.gained, change.n
    if n in (lost, gained):
        why = "reached in A, never in B" if lost else "never reached in A, reached in B"
        if n < FEWEST_FOR_INTERVAL and not change.exact:
            return "no difference told", f"{why}; {plural(n, 'pair')}: too few to tell"
        return ("worsening" if lost else "improvement"), why
    why = f"only A reaches it in {lost}, only B in {gained} of {plural(n, 'pair')}"
    if change.exact:
        return _exactly(change, 1.0), why
    if q <= _ALPHA:
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


def of_cell(verdicts: Iterable[Verdict], outcomes: Mapping[str, int]) -> Verdict:
    """The verdict on a solver on a task, from its measures and how many pairs of runs ended how."""
    if any(name.startswith("failed") for name in outcomes):
        return "failed"
    if "compared" in outcomes:
        return combined(verdicts)
    for name in ("problem differs", "no record", "gone", "new", "skipped"):
        if any(outcome.startswith(name) for outcome in outcomes):
            return _WITHOUT_NUMBERS.get(name, "not compared")
    return "not compared"


_WITHOUT_NUMBERS: Mapping[str, Verdict] = {
    "no record": "no record",
    "gone": "gone",
    "new": "new",
    "skipped": "skipped",
}
_ONE_FOR_ALL: tuple[Verdict, ...] = (
    *("worsening", "improvement", "no difference told", "identical", "advice"),
)


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several: mixed if some are better and others worse."""
    present = set(verdicts)
    if "mixed" in present or {"worsening", "improvement"} <= present:
        return "mixed"
    if present >= {"identical", "advice"}:
        # What is not judged may differ.
        present.add("no difference told")
    return next((verdict for verdict in _ONE_FOR_ALL if verdict in present), "not compared")


def of_tasks(
    verdicts: Sequence[Verdict],
    low: float,
    high: float,
    q: float,
    *,
    unchanged: tuple[float, float],
    n: int,
) -> Verdict:
    """The verdict on a measure of a solver over tasks.

    That of the tasks where these tell a change, mixed if the interval of their mean excludes it;
    else that of their mean, of at least six tasks, of which ``q`` is p, adjusted.
    """
    verdict = combined(verdicts)
    if (verdict == "improvement" and low > unchanged[1]) or (
        verdict == "worsening" and high < unchanged[0]
    ):
        return "mixed"
    if verdict == "no difference told" and "advice" in verdicts:
        return "advice"
    if verdict != "no difference told" or n < FEWEST_TASKS or not q <= _ALPHA:
        return verdict
    return "worsening" if low > unchanged[0] else "improvement"
