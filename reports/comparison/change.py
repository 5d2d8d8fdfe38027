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
COMPARED, OTHER_PROBLEM, NEW, GONE = "compared", "problem differs", "new", "gone"
FAILED_B, MISSING_B = "failed in B", "no record in B"
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
        statuses = (a["status"] if a else "", b["status"] if b else "")
        seeds = [row.get("run", row["seed"]) if row else -1 for row in (a, b)]
        same = bool(a and b and all(_plain(a.get(n)) == _plain(b.get(n)) for n in _REFERENCE))
        rows.append((*key, *_outcome(a, b), *statuses, *seeds, same))
    return pd.DataFrame(rows, columns=_COLUMNS)


def spread_single_runs(single: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The runs of a solver that draws nothing: a task's only one stands beside each seed of the
    other side. The column ``run`` keeps the seed that was run.
    """
    keys = ["task", "solver"]
    alone = single.groupby(keys)["seed"].transform("size") == 1
    single = single.assign(run=single["seed"])
    spread = single[alone].drop(columns="seed").merge(other[RUN], on=keys, how="left")
    spread["seed"] = spread["seed"].fillna(spread["run"]).astype(int)
    return pd.concat([spread, single[~alone]], ignore_index=True)


def _outcome(before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[str, str]:
    sides = {"A": before, "B": after}
    for state in ("failed", "absent", "no record", "skipped"):
        hits = {side: row for side, row in sides.items() if _state(row) == state}
        if hits and state == "absent":
            return (NEW if "A" in hits else GONE), ""
        if hits:
            rows = (row for row in hits.values() if row)
            parts = (": ".join(filter(None, (row["status"], row["reason"]))) for row in rows)
            why = "; ".join(dict.fromkeys(parts))
            return f"{state} in {'both' if len(hits) == 2 else min(hits)}", why
    assert before is not None
    assert after is not None
    differing = _differing(before, after)
    return (OTHER_PROBLEM, ", ".join(differing)) if differing else (COMPARED, "")


def _state(row: dict[str, Any] | None) -> str:
    """How a run ended, as far as comparing it goes; a damaged record tells nothing of its run."""
    if row is None:
        return "absent"
    words = {"skipped": "skipped", "missing": "no record", "damaged": "no record"}
    return "ok" if row["ok"] else words.get(str(row["status"]), "failed")


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
    # The gap of an optimum that is exact is all rounding, and may be negative. An unknown optimum
    # excludes none.
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
    before: float = math.nan  # medians; infinite: the median run never reached the target
    after: float = math.nan
    # What the following are: B over A, or B less A of errors and where a value is zero.
    scale: Literal["ratio", "difference"] = "ratio"
    # Geometric mean and median of the ratios, or mean and median of the differences, over the pairs
    # that are finite on both sides; NaN of none.
    mean: float = math.nan
    median: float = math.nan
    # The interval of the mean; of exact values their range. NaN where there is none.
    low: float = math.nan
    high: float = math.nan
    # How probable a mean as far from no change would be by chance; NaN where nothing is tested.
    p: float = math.nan
    q: float = math.nan  # p, adjusted for how many are tested
    exact: bool = False  # whether each pair tells the change itself, as nothing in it is by chance
    reached_before: int = 0  # pairs in which A, and in which B, has a finite value
    reached_after: int = 0
    # Pairs in which only A, or only B, has a finite value, such as the cost of a target.
    lost: int = 0
    gained: int = 0
    n_unknown: int = 0  # pairs with a value on one side only
    # Different runs on the side with fewer of them: a single run may stand in several pairs.
    n_runs: int = 0
    identical: bool = False


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
    estimated = estimate(values, is_ratio, band, exact=exact, n=n_different)
    lost = int((np.isfinite(a) & ~np.isfinite(b)).sum())
    gained = int((~np.isfinite(a) & np.isfinite(b)).sum())
    if lost or gained:
        estimated["p"] = math.nan if exact else float(binomtest(lost, lost + gained).pvalue)
    return Change(
        n=len(a),
        before=float(np.median(a)),
        after=float(np.median(b)),
        scale="ratio" if is_ratio else "difference",
        **estimated,
        exact=exact,
        reached_before=int(np.isfinite(a).sum()),
        reached_after=int(np.isfinite(b).sum()),
        lost=lost,
        gained=gained,
        n_unknown=n_unknown,
        n_runs=n_different,
        identical=not n_unknown and bool((a == b).all()),
    )


def estimate(
    values: Floats, is_ratio: bool, band: float, *, exact: bool = False, n: int | None = None
) -> dict[str, float]:
    """Mean, median, both ends of the interval, and p against a change within the band.

    Of ratios ``values`` are the logarithms. With fewer than three different runs or tasks, ``n``,
    there is no interval and no p.
    """
    if not len(values):
        return dict.fromkeys(("mean", "median", "low", "high", "p"), math.nan)
    mean, low, high, p = float(values.mean()), math.nan, math.nan, math.nan
    if exact:
        low, high = float(values.min()), float(values.max())
    elif (len(values) if n is None else n) >= FEWEST_FOR_INTERVAL:
        error, freedom = float(values.std(ddof=1)) / math.sqrt(len(values)), len(values) - 1
        half = float(student.ppf(0.5 + CONFIDENCE / 2, freedom)) * error
        low, high = mean - half, mean + half
        excess = abs(mean) - (math.log(band) if is_ratio else 0.0)
        p = 1.0 if excess <= 0 else 0.0
        if excess > 0 and error > 0:
            p = min(1.0, 2 * float(student.sf(excess / error, freedom)))
    found = {"mean": mean, "median": float(np.median(values)), "low": low, "high": high}
    if is_ratio:
        # Beyond the range of floating point there is no ratio to tell.
        found = {name: math.inf if x > 709 else math.exp(x) for name, x in found.items()}
    return found | {"p": p}


def error_change(before: SolverErrors, after: SolverErrors, *, n: int, by_chance: bool) -> Change:
    """The change of the test error over ``n`` pairs: B less A, on the same test points.

    The interval is that of :func:`marginbench.reports.statistics.errors.difference`. Its p follows
    from the interval as of a normal one: Altman and Bland (2011), BMJ 343, d2304. Of solvers that
    draw at random, fewer than three pairs have no interval.
    """
    found = difference(after, before)
    value, low, high, p = found.value, found.low, found.high, math.nan
    if by_chance and n < FEWEST_FOR_INTERVAL:
        low = high = math.nan
    elif value == 0:
        p = 1.0
    else:
        width = value - low if value > 0 else high - value
        p = 2 * float(norm.sf(float(norm.ppf(0.5 + CONFIDENCE / 2)) * abs(value) / width))
    pairs = after.rates - before.rates if len(after.rates) == len(before.rates) else None
    # As far as the points on which both err are recorded.
    masks = [each.mistakes for each in (before, after) if each.mistakes is not None]
    return Change(
        n=n,
        before=float(np.median(before.rates)),
        after=float(np.median(after.rates)),
        scale="difference",
        mean=value,
        median=value if pairs is None else float(np.median(pairs)),
        low=low,
        high=high,
        p=p,
        reached_before=n,
        reached_after=n,
        n_runs=n,
        identical=np.array_equal(before.rates, after.rates)
        and (len(masks) < 2 or np.array_equal(masks[0], masks[1])),
    )


def adjusted(names: Sequence[str], p_values: Sequence[float]) -> pd.Series:
    """P-values that allow for how many each name has (Benjamini and Hochberg, 1995); NaN stays."""
    values = pd.Series(p_values, dtype=float)
    known = values.dropna()
    by_name = known.groupby(pd.Series(names, dtype=object)[known.index], sort=False)
    return by_name.transform(false_discovery_control).reindex(values.index)


class Judged(NamedTuple):
    """A verdict on a measure."""

    verdict: Verdict
    why: str = ""  # what a reader must know of it; empty for nothing
    # Whether it is a worsening of which the whole interval is beyond the bound.
    beyond: bool = False


def judged(
    change: Change, *, bound: float, band: float, advice: str = "", incomplete: str = ""
) -> Judged:
    """The verdict on the change of a measure, of which q is known.

    ``incomplete`` is the only side of which runs failed or are missing; no verdict is in its
    favour. ``advice`` says why the measure is shown and not judged.
    """
    if not change.n:
        return Judged("not compared", "recorded on one side only" if change.n_unknown else "")
    if change.identical:
        return Judged("identical")
    if advice:
        return Judged("advice", advice)
    direction, why = _direction(change, band)
    if {"worsening": "A", "improvement": "B"}.get(direction) == incomplete:
        return Judged("advice", f"runs of {incomplete} failed or are missing")
    beyond = direction == "worsening" and math.isfinite(bound)
    return Judged(direction, why, beyond and (change.lost > 0 or change.low > bound))


def _direction(change: Change, band: float) -> tuple[Verdict, str]:
    """Whether it is worse, better, both or neither, and why that is not told by the mean."""
    lost, gained, n = change.lost, change.gained, change.n
    worse = better = False
    always = n in (lost, gained)
    reached = f"only A reaches it in {lost}, only B in {gained} of {plural(n, 'pair')}"
    why = reached if lost or gained else ""
    if change.exact:
        widest = 1.0 if why else band
        above, below = (widest, 1 / widest) if change.scale == "ratio" else (0.0, 0.0)
        worse, better = lost > 0 or change.high > above, gained > 0 or change.low < below
    elif always and n < FEWEST_FOR_INTERVAL:
        why = f"{why}; {plural(n, 'pair')}: too few to tell"
    elif not why and math.isnan(change.q):
        why = f"{plural(change.n_runs, 'run')}: too few to tell"
    elif always or change.q <= _ALPHA:
        unchanged = 1.0 if change.scale == "ratio" else 0.0
        worse = lost > gained if why else change.mean > unchanged
        better = not worse
    if worse and better:
        return "mixed", why
    return ("worsening" if worse else "improvement" if better else "no difference told"), why


def of_cell(verdicts: Iterable[Verdict], outcomes: Iterable[str]) -> Verdict:
    """The verdict on a solver on a task, from its measures and how its pairs of runs ended."""
    kinds = {outcome.partition(" in ")[0] for outcome in outcomes}
    decided = [verdict for kind, verdict in KINDS.items() if kind in kinds]
    return (decided[0] or combined(verdicts)) if decided else "not compared"


#: How pairs of runs end, whatever the side, in the order of tables. The first that the runs of a
#: cell have decides it; the measures do where that is a pair.
KINDS: Mapping[str, Verdict | None] = {
    "failed": "failed",
    COMPARED: None,
    OTHER_PROBLEM: "not compared",
    "no record": "no record",
    GONE: "gone",
    NEW: "new",
    "skipped": "skipped",
}


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several: mixed if some are better and others worse."""
    present = set(verdicts)
    if "mixed" in present or {"worsening", "improvement"} <= present:
        return "mixed"
    if present >= {"identical", "advice"}:
        # What is not judged may differ.
        present.add("no difference told")
    told = ("worsening", "improvement", "no difference told", "identical", "advice")
    return min(present.intersection(told), key=told.index, default="not compared")


def of_tasks(
    verdicts: Sequence[Verdict], mean: Mapping[str, float], q: float, band: tuple[float, float]
) -> Verdict:
    """The verdict on a measure of a solver over the tasks of its mean.

    That of the tasks where these tell a change, mixed if the interval of their mean excludes it;
    else that of their mean, of at least six tasks, of which ``q`` is p, adjusted. Means within the
    ``band`` are no change.
    """
    verdict = combined(verdicts)
    above, below = mean["low"] > band[1], mean["high"] < band[0]
    if (verdict == "improvement" and above) or (verdict == "worsening" and below):
        return "mixed"
    if verdict == "no difference told" and "advice" in verdicts:
        return "advice"
    if verdict != "no difference told" or len(verdicts) < FEWEST_TASKS or not q <= _ALPHA:
        return verdict
    return "worsening" if mean["low"] > band[0] else "improvement"
