"""How a measure changed from A to B over paired runs: ratios, differences and their intervals.

Pure functions of arrays. Ratios are B over A, taken as logarithms, so that A against B is the
mirror image of B against A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t as student

from ..statistics.errors import CONFIDENCE, SolverErrors, difference

#: Fewer pairs than this have no interval: two seeds tell next to nothing of how others scatter.
FEWEST_FOR_INTERVAL = 3
#: Resamples of the tasks for the interval of a mean over tasks.
_RESAMPLES = 4000

Floats = npt.NDArray[np.float64]
Scale = Literal["ratio", "difference"]


@dataclass(frozen=True)
class Change:
    """How a measure changed over pairs of runs.

    Attributes
    ----------
    n, n_unknown : int
        Pairs with a value on both sides, and with a value on one side only.
    n_runs : int
        Different runs on the side with fewer of them: a single run may stand in several pairs.
    before, after : float
        Medians; infinite: the median run never reached the target.
    scale : {"ratio", "difference"}
        What the following are: B over A, or B less A where a value is zero.
    mean, median : float
        Geometric mean and median of the ratios, or mean and median of the differences, over the
        pairs that are finite on both sides; NaN of none.
    low, high : float
        The interval of the mean; of exact values their range. NaN where there is none.
    p : float
        How probable a mean as far from no change would be by chance; NaN where nothing is tested.
    exact : bool
        Whether each pair tells the change itself, as nothing in it is by chance.
    identical : bool
        Whether all pairs have equal values.
    reached_before, reached_after : int
        Pairs in which A, and in which B, has a finite value.
    lost, gained : int
        Pairs in which only A, or only B, has a finite value, such as the cost of a target.
    """

    n: int = 0
    n_unknown: int = 0
    n_runs: int = 0
    before: float = math.nan
    after: float = math.nan
    scale: Scale = "ratio"
    mean: float = math.nan
    median: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    exact: bool = False
    identical: bool = False
    reached_before: int = 0
    reached_after: int = 0
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
    n_runs: int | None = None,
) -> Change:
    """The change of a measure whose values are not negative.

    Parameters
    ----------
    before, after : ndarray, shape (n_pairs,)
        Values of A and B; NaN: unknown, infinite: never reached.
    exact : bool
        Whether repeating the runs gives the same values.
    band : float
        Ratios up to this, and down to its inverse, are what the measurement itself does not tell.
    n_runs : int, optional
        How many of the runs are different ones, if fewer than there are pairs.

    Returns
    -------
    Change
    """
    known = ~(np.isnan(before) | np.isnan(after))
    n_unknown = int((np.isnan(before) != np.isnan(after)).sum())
    a, b = before[known], after[known]
    if not len(a):
        return Change(n_unknown=n_unknown)
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = a[finite], b[finite]
    scale: Scale = "ratio" if bool((x > 0).all() and (y > 0).all()) else "difference"
    is_ratio = scale == "ratio"
    values = np.log(y) - np.log(x) if is_ratio else y - x
    n_different = len(values) if n_runs is None else min(n_runs, len(values))
    margin = math.log(band) if is_ratio else 0.0
    mean, median, low, high, p = _estimate(values, exact, margin, n_different)
    back = _exp if is_ratio else float
    return Change(
        n=len(a),
        n_unknown=n_unknown,
        n_runs=n_different,
        before=float(np.median(a)),
        after=float(np.median(b)),
        scale=scale,
        mean=back(mean),
        median=back(median),
        low=back(low),
        high=back(high),
        p=p,
        exact=exact,
        identical=not n_unknown and bool((a == b).all()),
        reached_before=int(np.isfinite(a).sum()),
        reached_after=int(np.isfinite(b).sum()),
        lost=int((np.isfinite(a) & ~np.isfinite(b)).sum()),
        gained=int((~np.isfinite(a) & np.isfinite(b)).sum()),
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
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = float(student.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)) * error
    return mean, median, mean - half, mean + half, _p(abs(mean) - margin, error, len(values) - 1)


def _p(excess: float, error: float, freedom: int) -> float:
    """Two-sided, of a mean that exceeds what is no change by so much."""
    if excess <= 0:
        return 1.0
    return 0.0 if error == 0 else min(1.0, 2 * float(student.sf(excess / error, freedom)))


def _exp(value: float) -> float:
    """Beyond the range of floating point there is no ratio to tell."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def error_change(before: SolverErrors, after: SolverErrors, *, n: int, by_chance: bool) -> Change:
    """The change of the test error: B less A, on the same test points.

    The interval is that of :func:`marginbench.reports.statistics.errors.difference`. Its p follows
    from the interval as of a normal one: Altman and Bland (2011), BMJ 343, d2304.

    Parameters
    ----------
    before, after : SolverErrors
    n : int
        The number of pairs.
    by_chance : bool
        Whether a solver draws at random; then fewer than three pairs have no interval.

    Returns
    -------
    Change
    """
    found = difference(after, before)
    told = not by_chance or n >= FEWEST_FOR_INTERVAL
    pairs = after.rates - before.rates if len(after.rates) == len(before.rates) else None
    return Change(
        n=n,
        n_runs=n,
        before=float(np.median(before.rates)),
        after=float(np.median(after.rates)),
        scale="difference",
        mean=found.value,
        median=found.value if pairs is None else float(np.median(pairs)),
        low=found.low if told else math.nan,
        high=found.high if told else math.nan,
        p=_implied_p(found.value, found.low, found.high) if told else math.nan,
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


def mean_over_tasks(means: Floats, scale: Scale) -> tuple[float, float, float]:
    """The mean of the changes of several tasks, and its bootstrap interval by task.

    The percentile interval, from a fixed seed, so that the same changes give the same interval and
    inverse ones the inverse interval.

    Parameters
    ----------
    means : ndarray, shape (n_tasks,)
        Positive ratios, or differences.
    scale : {"ratio", "difference"}
        Whether the mean is geometric.

    Returns
    -------
    mean, low, high : float
        The interval is NaN with fewer than three tasks.
    """
    values = np.log(means) if scale == "ratio" else np.asarray(means, dtype=np.float64)
    if not len(values):
        return math.nan, math.nan, math.nan
    ends = [math.nan, math.nan]
    if len(values) >= FEWEST_FOR_INTERVAL:
        draws = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
        tail = 0.5 - CONFIDENCE / 2
        ends = np.quantile(values[draws].mean(axis=1), [tail, 1 - tail]).tolist()
    back = _exp if scale == "ratio" else float
    return back(float(values.mean())), back(ends[0]), back(ends[1])


#: With fewer samples on a side, no interval holds at the level.
FEWEST_SAMPLES = 5
#: How often an interval may miss. Many times are looked at together, and each is told by its own.
_MISSES = 0.01


class Estimate(NamedTuple):
    """A ratio, after / before, with its 99 % interval.

    Attributes
    ----------
    ratio, low, high : float
    n : tuple of int
        How many samples there are before and after.
    """

    ratio: float
    low: float
    high: float
    n: tuple[int, int]

    @property
    def told(self) -> bool:
        """Whether the interval excludes no change."""
        return self.low > 1 or self.high < 1


def ratio_of_samples(before: Sequence[float], after: Sequence[float]) -> Estimate | None:
    """The median of all ratios of a sample after to one before (Hodges and Lehmann, 1963).

    The interval is the one that belongs to the test of Mann and Whitney, by its exact distribution.
    It holds for independent samples. With five on each side it reaches from the smallest ratio to
    the largest.

    Parameters
    ----------
    before, after : sequence of float
        Positive.

    Returns
    -------
    Estimate or None
        None with fewer than five samples on a side.
    """
    n, m = len(before), len(after)
    if min(n, m) < FEWEST_SAMPLES:
        return None
    logs = np.sort(np.subtract.outer(np.log(after), np.log(before)).ravel())
    k = _place(n, m)
    middle, low, high = np.exp([np.median(logs), logs[k - 1], logs[-k]])
    return Estimate(float(middle), float(low), float(high), (n, m))


@cache
def _place(n: int, m: int) -> int:
    """Which of the sorted differences bounds the interval: the k-th from either end."""
    # ways[u]: in how many orders of n + m samples u pairs are the wrong way round. It is the
    # Gaussian binomial coefficient, the product of (1 - x^(n + i)) / (1 - x^i) for i = 1, ..., m.
    size = n * m + 1
    ways = [1] + [0] * (size - 1)
    for i in range(1, m + 1):
        for u in range(size - 1, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, size):
            ways[u] += ways[u - i]
    orders, tail, k = sum(ways), 0, 0
    while 2 * (tail + ways[k]) <= _MISSES * orders:
        tail += ways[k]
        k += 1
    return max(k, 1)
