"""Wins and ranks of solvers over datasets, with tests and bootstrap intervals.

A dataset is one block, however many tasks it has: tasks that share a dataset are not independent.
The bootstrap draws datasets with all of their tasks, then runs in each task and solver, as they
repeat the same task. Its seed is fixed: the same records give the same intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from .errors import CONFIDENCE

#: How often all is drawn anew.
RESAMPLES = 1000
_SEED = 20090101

Array = npt.NDArray[np.float64]
#: Values of a task in each of n resamples of its runs, shape (n, ...); NaN where it has none.
Resampled = Callable[[int, np.random.Generator], Array]


def generator() -> np.random.Generator:
    """A new generator of random draws, always with the same seed."""
    return np.random.default_rng(_SEED)


def run_weights(n_runs: int, n: int, rng: np.random.Generator) -> Array:
    """The share of each run in n resamples of all runs; rows sum to 1."""
    if n_runs == 1:
        return np.ones((n, 1))
    # Counting draws is several times faster than drawing the counts.
    drawn = rng.integers(n_runs, size=(n, n_runs)) + n_runs * np.arange(n)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * n_runs).reshape(n, n_runs) / n_runs


def dataset_counts(n_datasets: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """How often each dataset is drawn in each resample; rows sum to ``n_datasets``."""
    return rng.multinomial(n_datasets, np.full(n_datasets, 1 / n_datasets), size=RESAMPLES)


def resampled_means(
    tasks: Mapping[str, Resampled], datasets: Mapping[str, str], shape: tuple[int, ...]
) -> Array:
    """The means over the tasks in resamples of datasets and runs; NaN of no task with a value.

    A dataset that is drawn twice has its runs drawn twice, independently.
    """
    rng = generator()
    names = list(dict.fromkeys(datasets[task] for task in tasks))
    counts = dataset_counts(len(names), rng)
    totals, numbers = np.zeros((RESAMPLES, *shape)), np.zeros((RESAMPLES, *shape))
    # The products are small: several threads would wait for each other longer than they compute.
    with threadpool_limits(1, user_api="blas"):
        for index, name in enumerate(names):
            drawn = np.flatnonzero(counts[:, index])
            often = counts[drawn, index]
            starts = np.cumsum(often) - often
            for resampled in (tasks[task] for task in tasks if datasets[task] == name):
                values = resampled(int(often.sum()), rng)
                totals[drawn] += np.add.reduceat(np.nan_to_num(values), starts)
                numbers[drawn] += np.add.reduceat((~np.isnan(values)).astype(float), starts)
    return np.divide(totals, numbers, out=np.full_like(totals, np.nan), where=numbers > 0)


def percentile_interval(samples: Array) -> tuple[Array, Array]:
    """The ends of the percentile interval along the first axis; samples that are NaN are left out.

    Ends are samples, the next ones outwards, so that infinite samples are as good as others.
    """
    ordered = np.sort(samples, axis=0)  # NaN last
    last = np.maximum((~np.isnan(samples)).sum(axis=0) - 1, 0)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.floor(tail * last), np.ceil((1 - tail) * last)
    ends = [np.take_along_axis(ordered, end[None].astype(int), axis=0)[0] for end in (low, high)]
    return ends[0], ends[1]


#: With fewer datasets even wins on all of them may be chance: the two-sided sign test of five
#: equal signs has p = 0.0625. A percentile interval does not know that, and is too narrow.
FEWEST_DATASETS = 6
_EVEN = 0.5
_COLUMNS = ["solver", "other", "share", "low", "high", "n_tasks", "n_datasets", "separable"]


def wins(problems: pd.DataFrame, datasets: Mapping[str, str]) -> pd.DataFrame:
    """How often each solver is cheaper than each other one to one target.

    On a task that is the share of all pairs of a run of one and a run of the other in which the
    first is cheaper; equal costs, and runs that both never stay at the target, count half, and so
    does a pair in which an upper bound leaves open which is cheaper. Seeds of different solvers
    have nothing in common, so runs are not paired by seed. The mean is over the tasks on which both
    count.

    One row for each ordered pair that has a task in common; it is separable if the interval (over
    datasets, then runs) excludes one half, with at least :data:`FEWEST_DATASETS` datasets.
    """
    if problems.empty:
        return pd.DataFrame(columns=_COLUMNS)
    solvers = [str(solver) for solver in dict.fromkeys(problems["solver"])]
    costs = {
        str(task): _cost_matrix(group, solvers)
        for task, group in problems.groupby("task", sort=False)
    }
    tasks = {task: partial(_drawn_shares, matrix) for task, matrix in costs.items()}
    low, high = percentile_interval(resampled_means(tasks, datasets, (len(solvers),) * 2))
    shares = np.concatenate([_shares(matrix, _even(matrix)) for matrix in costs.values()])
    compared = ~np.isnan(shares)
    clusters = np.array([datasets[task] for task in costs])
    rows = []
    for first, second in np.argwhere(compared.any(axis=0) & ~np.eye(len(solvers), dtype=bool)):
        both = compared[:, first, second]
        ends = low[first, second], high[first, second]
        counts = int(both.sum()), len(np.unique(clusters[both]))
        share = float(shares[both, first, second].mean())
        rows.append((solvers[first], solvers[second], share, *ends, *counts))
    table = pd.DataFrame(rows, columns=_COLUMNS[:-1])
    apart = (table["low"] > _EVEN) | (table["high"] < _EVEN)
    return table.assign(separable=apart & (table["n_datasets"] >= FEWEST_DATASETS))


def _cost_matrix(problems: pd.DataFrame, solvers: Sequence[str]) -> Array:
    """The least and the most that the runs of a task may have cost.

    Shape (2, n_solvers, most runs); NaN beyond a solver's last run.
    """
    ends = problems.assign(least=problems["value"].mask(problems["upper_bound"], 0.0))
    costs = {
        str(name): group[["least", "value"]].to_numpy().T for name, group in ends.groupby("solver")
    }
    matrix = np.full((2, len(solvers), max(each.shape[1] for each in costs.values())), np.nan)
    for index, solver in enumerate(solvers):
        if solver in costs:
            matrix[:, index, : costs[solver].shape[1]] = costs[solver]
    return matrix


def _shares(costs: Array, weights: Array) -> Array:
    """Wins of all pairs of solvers with weighted runs; NaN where one of a pair has no run."""
    _, n_solvers, n_runs = costs.shape
    least, most = costs
    shares = np.full((len(weights), n_solvers, n_solvers), 0.5)
    for other in range(1, n_solvers):
        surely = most[:other].reshape(-1, 1) < least[other]
        perhaps = least[:other].reshape(-1, 1) <= most[other]
        cheaper = 0.5 * surely + 0.5 * perhaps
        against = (weights[:, other] @ cheaper.T).reshape(-1, other, n_runs)
        shares[:, :other, other] = np.einsum("nsr,nsr->ns", weights[:, :other], against)
        shares[:, other, :other] = 1 - shares[:, :other, other]
    absent = np.isnan(least).all(axis=1)
    shares[:, absent], shares[:, :, absent] = np.nan, np.nan
    return shares


def _even(costs: Array) -> Array:
    """The weights of runs that all count alike, one row of them."""
    counted = ~np.isnan(costs[:1])
    even: Array = counted / np.maximum(counted.sum(axis=2, keepdims=True), 1)
    return even


def _drawn_shares(costs: Array, n: int, rng: np.random.Generator) -> Array:
    weights = np.zeros((n, *costs.shape[1:]))
    for index, number in enumerate((~np.isnan(costs[0])).sum(axis=1)):
        if number:
            weights[:, index, :number] = run_weights(int(number), n, rng)
    return _shares(costs, weights)


#: Below this many blocks the chi-squared distribution of Friedman's statistic is too rough.
FEWEST_FOR_FRIEDMAN = 5
#: Of Friedman's test, and of all pairs together after Holm.
LEVEL = 0.05
# Friedman's test of two solvers is a sign test, for which Wilcoxon's is the better one.
_FEWEST_SOLVERS_FOR_FRIEDMAN = 3
# A solver with costs on fewer of the tasks would take too many of them from the others.
_FEWEST_SHARE = 0.5
# The logarithm of an infinite cost: more than those of finite ones can ever make up for. They lie
# within this of each other.
_NEVER, _WIDEST = 1e12, 1e6
_PAIR_COLUMNS = ["solver", "other", "p", "biserial", "ratio", "ratio_low", "ratio_high", "n"]


class Friedman(NamedTuple):
    """Friedman's test of whether any solver has other ranks than the others."""

    statistic: float
    p: float


def blocks(medians: pd.DataFrame, datasets: Mapping[str, str]) -> pd.DataFrame:
    """The logarithmic costs of solvers that can be ranked together, by dataset and solver.

    Those with a cost, perhaps infinite, on at least half of the tasks; on tasks on which all have.
    """
    order = list(dict.fromkeys(medians["solver"]))
    wide = medians.pivot(index="task", columns="solver", values="median")[order]
    shared = wide.loc[:, wide.notna().mean() >= _FEWEST_SHARE].dropna()
    positive = shared.clip(lower=np.finfo(float).tiny).to_numpy(np.float64)
    logs = np.where(np.isinf(positive), _NEVER, np.log(positive))
    table = pd.DataFrame(logs, index=shared.index, columns=shared.columns)
    table = table.groupby([datasets[str(task)] for task in table.index]).mean()
    return table.rename_axis("dataset")


def average_ranks(blocks: pd.DataFrame) -> pd.DataFrame:
    """The mean rank over the datasets, best first; 1 is the cheapest, equal costs share ranks."""
    ranks = blocks.rank(axis=1).to_numpy(np.float64)
    counts = dataset_counts(len(blocks), generator())
    low, high = percentile_interval(counts @ ranks / len(blocks))
    columns = {"solver": blocks.columns, "rank": ranks.mean(axis=0), "low": low, "high": high}
    table = pd.DataFrame(columns).assign(n=len(blocks))
    return table.sort_values("rank", kind="stable").reset_index(drop=True)


def friedman(blocks: pd.DataFrame) -> Friedman | None:
    """Friedman's test; None of too few datasets or solvers, or if all costs are equal."""
    n_blocks, n_solvers = blocks.shape
    if n_blocks < FEWEST_FOR_FRIEDMAN or n_solvers < _FEWEST_SOLVERS_FOR_FRIEDMAN:
        return None
    ranks = blocks.rank(axis=1).to_numpy(np.float64)
    if (ranks == ranks[:, :1]).all():
        return None
    # Importing it takes longer than a small report.
    from scipy.stats import friedmanchisquare

    test = friedmanchisquare(*blocks.to_numpy().T)
    return Friedman(float(test.statistic), float(test.pvalue))


def needed_datasets(n_solvers: int) -> int:
    """How many datasets it takes for a difference of two solvers to be significant at all.

    The smallest two-sided p of Wilcoxon's signed-rank test of n pairs is ``2 / 2^n``; Holm
    multiplies it by the number of pairs of solvers.
    """
    n_pairs = n_solvers * (n_solvers - 1) // 2
    n = FEWEST_FOR_FRIEDMAN
    while n_pairs * 2.0 ** (1 - n) >= LEVEL:
        n += 1
    return n


def compared_pairs(blocks: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon's signed-rank tests of all pairs, corrected by Holm, with the sizes of effects.

    Zero differences are split evenly between both signs (Demšar 2006). The matched-pairs rank
    biserial correlation is the sum of ranks in favour of the first less that in favour of the
    second, as a fraction of all: 1 if the first is cheaper on all datasets.

    The ratio is the median over the datasets of the cost of the first to that of the second. Empty
    with fewer than :func:`needed_datasets`.
    """
    names = [str(name) for name in blocks.columns]
    if len(names) < 2 or len(blocks) < needed_datasets(len(names)):
        return pd.DataFrame(columns=_PAIR_COLUMNS)
    # Imported here, since only studies with enough datasets pay for it.
    from scipy import stats

    pairs = list(combinations(names, 2))
    less = [_differences(blocks[one].to_numpy(), blocks[other].to_numpy()) for one, other in pairs]
    # SciPy's test is exact also with ties from version 1.15 on, if n <= 13.
    p_values = np.array([stats.wilcoxon(each, zero_method="zsplit").pvalue for each in less])
    order = np.argsort(p_values)
    steps = p_values[order] * np.arange(len(pairs), 0, -1)
    corrected = np.empty(len(pairs))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    drawn = generator().integers(len(blocks), size=(RESAMPLES, len(blocks)))
    rows = []
    for pair, each, p in zip(pairs, less, corrected, strict=True):
        low, high = percentile_interval(np.median(each[drawn], axis=1))
        ratio = (_ratio(value) for value in (float(np.median(each)), float(low), float(high)))
        rows.append((*pair, float(p), rank_biserial(-each), *ratio, len(blocks)))
    return pd.DataFrame(rows, columns=_PAIR_COLUMNS)


def rank_biserial(differences: Array) -> float:
    """The matched-pairs rank biserial correlation (Kerby 2014); zero if nothing differs."""
    ranks = pd.Series(np.abs(differences)).rank().to_numpy(np.float64)
    return float((np.sign(differences) * ranks).sum() / ranks.sum())


def _differences(first: Array, second: Array) -> Array:
    less = first - second
    # "Never" against any cost is the largest difference, the same on all datasets.
    return np.where(np.abs(less) > _WIDEST, _WIDEST * np.round(less / _WIDEST), less)


def _ratio(difference: float) -> float:
    """A difference of logarithms as a ratio; infinite, or zero, where one never gets there."""
    if abs(difference) > math.log(np.finfo(float).max):
        return math.inf if difference > 0 else 0.0
    return math.exp(difference)
