"""How sure test errors are: intervals of one solver's error, and of the difference of two.

Two things make the error of a solver uncertain: the test points are a sample, and its runs differ
by seed. Solvers are compared on the same test points, so that the errors which they share do not
blur their difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...harness.results.svm import unpacked
from ..frames import by_solver

#: Of all intervals here.
CONFIDENCE = 0.95
_QUANTILE = 0.5 + CONFIDENCE / 2
_NORMAL = 1.959963984540054  # the standard normal distribution's, as of scipy.special.ndtri

Mask = npt.NDArray[np.bool_]


class Interval(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SolverErrors:
    """The test errors of a solver's runs on a task."""

    rates: npt.NDArray[np.float64]  # fractions, shape (n_runs,)
    n_test: int
    # Which points each run gets wrong, shape (n_runs, n_test); None where not recorded.
    mistakes: Mask | None = None

    @classmethod
    def of(cls, runs: pd.DataFrame) -> SolverErrors | None:
        """Those of runs on one task; None without any.

        Runs on different test points, as those of the folds of a cross-validation, are taken
        together as one on all of them.
        """
        tested = runs[runs["test_error"].notna() & (runs["n_test"] > 0)]
        if tested.empty:
            return None
        folded = tested["fingerprint"].nunique() > 1
        tested = tested.sort_values("seed") if folded else tested
        sizes, rates = tested["n_test"].astype(int), tested["test_error"].to_numpy(np.float64)
        masks = [unpacked(*pair) for pair in zip(tested["mistakes"], sizes, strict=True)]
        known = [mask for mask in masks if mask is not None]
        whole = len(known) == len(masks)
        if folded:
            rates = np.array([(rates * sizes).sum() / sizes.sum()])
            return cls(rates, int(sizes.sum()), np.concatenate(known)[None] if whole else None)
        return cls(rates, int(sizes.iloc[0]), np.stack(known) if whole else None)

    @property
    def seed_variance(self) -> float:
        """Of the mean error, as far as it comes from the seeds; 0 of a single run."""
        n = len(self.rates)
        return float(self.rates.var(ddof=1)) / n if n > 1 else 0.0


def error_interval(errors: SolverErrors) -> Interval:
    """The mean error of a solver with its interval.

    The Wilson interval of a proportion for the sample of test points, widened by the t interval of
    the mean over the seeds, the two taken as independent.
    """
    mean = float(errors.rates.mean())
    low, high = _wilson(mean * errors.n_test, errors.n_test)
    seeds = _seed_width(errors.seed_variance, len(errors.rates) - 1)
    below, above = math.hypot(mean - low, seeds), math.hypot(high - mean, seeds)
    return Interval(mean, max(0.0, mean - below), min(1.0, mean + above))


def difference(first: SolverErrors, second: SolverErrors) -> Interval:
    """Error of the first solver less that of the second, on the same test points or folds.

    Newcombe's score interval for paired proportions (Newcombe 1998, Statistics in Medicine 17,
    2635-2650, method 10), of the counts averaged over the runs; widened by the spread over the
    seeds as in :func:`error_interval`. Where mistakes are not recorded, or one of the two has some
    of the folds alone, the points count as not paired, which makes the interval wider, never too
    narrow for solvers that agree.
    """
    n, m = first.n_test, second.n_test
    p, q = float(first.rates.mean()), float(second.rates.mean())
    correlation = _correlation(first, second)
    (low_p, high_p), (low_q, high_q) = _wilson(p * n, n), _wilson(q * m, m)
    below, above = (
        math.sqrt(max(0.0, one * one - 2 * correlation * one * other + other * other))
        for one, other in ((p - low_p, high_q - q), (high_p - p, q - low_q))
    )
    variance = first.seed_variance + second.seed_variance
    seeds = _seed_width(variance, _welch(first, second))
    return Interval(p - q, p - q - math.hypot(below, seeds), p - q + math.hypot(above, seeds))


def first_folds(runs: pd.DataFrame, folds: Mapping[str, int]) -> pd.DataFrame:
    """The runs of tasks with folds of their first cross-validation; others test the same points."""
    return runs[runs["seed"].to_numpy() < [folds.get(task, math.inf) for task in runs["task"]]]


def intervals(runs: pd.DataFrame, folds: Mapping[str, int] = MappingProxyType({})) -> pd.DataFrame:
    """The interval of each solver's error, and whether it may be the best of its task.

    The best is the solver with the lowest mean error among those whose runs all ended as planned,
    and whoever's difference to it has an interval that holds zero.
    """
    rows: list[tuple[Any, ...]] = []
    runs = first_folds(runs[runs["status"] != "skipped"], folds)
    for task, group in runs.groupby("task", sort=False):
        whole = group.groupby("solver")["ok"].all()
        found = [(name, SolverErrors.of(each[each["ok"]])) for _, name, each in by_solver(group)]
        errors = {solver: each for solver, each in found if each is not None}
        complete = [solver for solver in errors if whole[solver]]
        best = min(complete, key=lambda name: float(errors[name].rates.mean()), default="")
        for solver, each in errors.items():
            near = solver in complete and (
                solver == best or difference(each, errors[best]).low <= 0
            )
            rows.append((task, solver, *error_interval(each), near and len(errors) > 1))
    return pd.DataFrame(rows, columns=["task", "solver", "value", "low", "high", "best"])


def with_intervals(table: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """The table of results with the intervals of the test errors in place of their ranges."""
    keys, names = ["task", "solver"], ["low", "high", "best"]
    known = table[keys].join(errors.set_index(keys)[names], on=keys)
    chosen = (table["measure"] == "test_error") & known["low"].notna()
    changed = {name: known[name].where(chosen, table[name]) for name in names}
    return table.assign(**changed).astype({"best": bool})


def _wilson(count: float, n: int) -> tuple[float, float]:
    """The Wilson score interval of a proportion; the count may be a mean of counts."""
    p, z = count / n, _NORMAL
    scale = 2 * (n + z**2)
    middle, half = (2 * n * p + z**2) / scale, z / scale * math.sqrt(4 * n * p * (1 - p) + z**2)
    # Rounding must not push an end past a proportion that is possible.
    return (0.0 if count == 0 else middle - half), (1.0 if count == n else middle + half)


def _correlation(first: SolverErrors, second: SolverErrors) -> float:
    """Of the mistakes of both, from the four-fold table averaged over the pairs of runs."""
    n = first.n_test
    if first.mistakes is None or second.mistakes is None or second.n_test != n:
        return 0.0
    one, other = first.mistakes.mean(axis=0), second.mistakes.mean(axis=0)
    both, p, q = float(one @ other), float(one.sum()), float(other.sum())
    only_one, only_other, neither = p - both, q - both, n - p - q + both
    product = p * (n - p) * q * (n - q)
    if product <= 0:
        return 0.0
    excess = both * neither - only_one * only_other
    # Newcombe's correction for continuity.
    excess = max(excess - n / 2, 0.0) if excess > 0 else excess
    return excess / math.sqrt(product)


def _seed_width(variance: float, freedom: float) -> float:
    if variance <= 0:
        return 0.0
    # Imported here: studies of one seed do without, and scipy.stats would take longer still.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, _QUANTILE)) * math.sqrt(variance)


def _welch(first: SolverErrors, second: SolverErrors) -> float:
    """Degrees of freedom of the difference of two means (Welch and Satterthwaite)."""
    parts = [(each.seed_variance, len(each.rates) - 1) for each in (first, second)]
    total = sum(variance for variance, _ in parts)
    below = sum(variance**2 / freedom for variance, freedom in parts if freedom > 0)
    return total**2 / below if below > 0 else 1.0


def fronts(runs: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Who dominates whom on each task.

    A solver dominates another if none of its medians is larger and at least one of them is smaller
    beyond doubt. For a test error that means that the interval of the difference on the same test
    points (:func:`difference`) excludes zero; for another measure, that all runs of the one are
    below all runs of the other. Only solvers of which all runs ended as planned and have a value of
    each measure are compared.
    """
    rows: list[tuple[Any, ...]] = []
    names = list(measures)
    for task, task_runs in runs[runs["status"] != "skipped"].groupby("task", sort=False):
        compared = {
            solver: (group[names].to_numpy(np.float64), SolverErrors.of(group))
            for _, solver, group in by_solver(task_runs)
            if group["ok"].all() and not group[names].isna().any(axis=None)
        }
        for solver, own in compared.items():
            above = [
                name
                for name, others in compared.items()
                if name != solver and _dominates(others, own, names)
            ]
            medians = np.median(own[0], axis=0)
            rows.append((task, solver, len(own[0]), *medians, ", ".join(above), not above))
    columns = ["task", "solver", "n", *names, "dominated_by", "front"]
    # A table without a row has no types of its own.
    types = {"n": int, "front": bool} | dict.fromkeys(names, float)
    return pd.DataFrame(rows, columns=columns).astype(types)


_Compared = tuple[npt.NDArray[np.float64], SolverErrors | None]  # the measures of runs, and errors


def _dominates(first: _Compared, second: _Compared, names: Sequence[str]) -> bool:
    """Whether no median of the first is larger, and some measure is smaller beyond doubt."""
    (values, errors), (others, their_errors) = first, second
    if (np.median(values, axis=0) > np.median(others, axis=0)).any():
        return False
    below = dict(zip(names, values.max(axis=0) < others.min(axis=0), strict=True))
    if any(below[name] for name in names if name != "test_error"):
        return True
    if "test_error" not in below or errors is None or their_errors is None:
        return False
    return difference(errors, their_errors).high < 0
