"""Pairwise wins: how probably a run of one solver reaches a target cheaper than one of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from .resampling import (
    Resampled,
    percentile_interval,
    resampled_means,
    run_weights,
)

#: With fewer datasets even wins on all of them may be chance: the two-sided sign test of five
#: equal signs has p = 0.0625. A percentile interval does not know that, and is too narrow.
FEWEST_DATASETS = 6
_EVEN = 0.5

Array = npt.NDArray[np.float64]


def wins(problems: pd.DataFrame, datasets: Mapping[str, str]) -> pd.DataFrame:
    """How often each solver is cheaper than each other one to one target.

    On a task that is the share of all pairs of a run of one and a run of the other in which the
    first is cheaper; equal costs, and runs that both never stay at the target, count half, and so
    does a pair in which an upper bound leaves open which is cheaper. Seeds of different solvers
    have nothing in common, so runs are not paired by seed. The mean is over the tasks on which both
    count.

    Parameters
    ----------
    problems : DataFrame
        Of :func:`marginbench.reports.statistics.profiles.problems`, of one target.
    datasets : mapping of str to str
        The dataset of each task.

    Returns
    -------
    DataFrame
        One row for each ordered pair that has a task in common: solver, other, share, low and high
        (bootstrap interval over datasets, then runs), n_tasks, n_datasets and separable (the
        interval excludes one half, with at least :data:`FEWEST_DATASETS` datasets).
    """
    solvers = [str(solver) for solver in dict.fromkeys(problems["solver"])]
    costs = {
        str(task): _cost_matrix(mine, solvers)
        for task, mine in problems.groupby("task", sort=False)
    }
    if not costs:
        return pd.DataFrame(columns=_COLUMNS)
    shape = (len(solvers), len(solvers))
    shares = np.stack(
        [_shares(matrix, _even_weights(matrix)[None])[0] for matrix in costs.values()]
    )
    tasks = {task: _resampled(matrix) for task, matrix in costs.items()}
    low, high = percentile_interval(resampled_means(tasks, datasets, shape))
    known = ~np.isnan(shares)
    places = {name: place for place, name in enumerate(dict.fromkeys(datasets.values()))}
    clusters = np.array([places[datasets[task]] for task in costs])
    rows = []
    for first, second in zip(*np.nonzero(known.any(axis=0)), strict=True):
        if first == second:
            continue
        mine = known[:, first, second]
        row = (float(shares[mine, first, second].mean()), low[first, second], high[first, second])
        counts = (int(mine.sum()), len(np.unique(clusters[mine])))
        rows.append((solvers[first], solvers[second], *row, *counts))
    table = pd.DataFrame(rows, columns=_COLUMNS[:-1])
    apart = (table["low"] > _EVEN) | (table["high"] < _EVEN)
    return table.assign(separable=apart & (table["n_datasets"] >= FEWEST_DATASETS))


_COLUMNS = ["solver", "other", "share", "low", "high", "n_tasks", "n_datasets", "separable"]


def _cost_matrix(problems: pd.DataFrame, solvers: Sequence[str]) -> Array:
    """The least and the most that the runs of a task may have cost.

    Shape (2, n_solvers, most runs); NaN beyond the runs that there are.
    """
    ends = problems.assign(least=problems["value"].mask(problems["upper_bound"], 0.0))
    costs = {
        str(name): group[["least", "value"]].to_numpy().T for name, group in ends.groupby("solver")
    }
    found = np.full((2, len(solvers), max(mine.shape[1] for mine in costs.values())), np.nan)
    for place, solver in enumerate(solvers):
        if solver in costs:
            found[:, place, : costs[solver].shape[1]] = costs[solver]
    return found


def _even_weights(costs: Array) -> Array:
    known = ~np.isnan(costs[0])
    shares: Array = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
    return shares


def _shares(costs: Array, weights: Array) -> Array:
    """Wins of all pairs of solvers with weighted runs.

    Parameters
    ----------
    costs : array, shape (2, n_solvers, n_runs)
        The least and the most that each run may have cost.
    weights : array, shape (n, n_solvers, n_runs)
        Of solvers that have runs, each sums to 1; 0 where there is no run.

    Returns
    -------
    array, shape (n, n_solvers, n_solvers)
        NaN for pairs of which one has no run.
    """
    _, n_solvers, n_runs = costs.shape
    least, most = costs
    found = np.full((len(weights), n_solvers, n_solvers), 0.5)
    for other in range(1, n_solvers):
        surely = most[:other].reshape(-1, 1) < least[other]
        perhaps = least[:other].reshape(-1, 1) <= most[other]
        cheaper = 0.5 * surely + 0.5 * perhaps
        against = (weights[:, other] @ cheaper.T).reshape(-1, other, n_runs)
        found[:, :other, other] = np.einsum("nsr,nsr->ns", weights[:, :other], against)
        found[:, other, :other] = 1 - found[:, :other, other]
    absent = np.isnan(least).all(axis=1)
    found[:, absent], found[:, :, absent] = np.nan, np.nan
    return found


def _resampled(costs: Array) -> Resampled:
    numbers = (~np.isnan(costs[0])).sum(axis=1)

    def resampled(n: int, rng: np.random.Generator) -> Array:
        weights = np.zeros((n, *costs.shape[1:]))
        for place, number in enumerate(numbers):
            if number:
                weights[:, place, :number] = run_weights(int(number), n, rng)
        return _shares(costs, weights)

    return resampled
