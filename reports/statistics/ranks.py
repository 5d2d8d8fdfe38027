"""Ranks of solvers over datasets, and tests of their differences where there are enough of them.

A dataset is one block, however many tasks it has: tasks that share a dataset are not independent.
The value of a solver in a block is the mean logarithm of its median costs on the dataset's tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from .resampling import (
    RESAMPLES,
    dataset_counts,
    generator,
    percentile_interval,
)

#: Below this many blocks the chi-squared distribution of Friedman's statistic is too rough.
FEWEST_FOR_FRIEDMAN = 5
#: Of Friedman's test, and of all pairs together after Holm.
LEVEL = 0.05
# Friedman's test of two solvers is a sign test, for which Wilcoxon's is the better one.
_FEWEST_SOLVERS_FOR_FRIEDMAN = 3
# A solver with costs on fewer of the tasks would take too many of them from the others.
_FEWEST_SHARE = 0.5
# The logarithm of an infinite cost. It is so large that the logarithm of a finite cost vanishes
# beside it in rounding: "never" against any cost is the largest difference, the same on all tasks.
_NEVER = 2.0**60

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of whether any solver has other ranks than the others.

    Attributes
    ----------
    statistic, p : float
    n_blocks, n_solvers : int
    """

    statistic: float
    p: float
    n_blocks: int
    n_solvers: int


def blocks(medians: pd.DataFrame, datasets: Mapping[str, str]) -> pd.DataFrame:
    """The logarithmic costs of solvers that can be ranked together.

    Ranked are solvers with a cost, perhaps infinite, on at least half of the tasks; on the tasks on
    which each of them has one.

    Parameters
    ----------
    medians : DataFrame
        Of :func:`marginbench.reports.statistics.profiles.medians`.
    datasets : mapping of str to str
        The dataset of each task.

    Returns
    -------
    DataFrame
        A row for each dataset, a column for each solver.
    """
    order = list(dict.fromkeys(medians["solver"]))
    wide = medians.pivot(index="task", columns="solver", values="median")[order]
    shared = wide.loc[:, wide.notna().mean() >= _FEWEST_SHARE].dropna()
    positive = shared.clip(lower=np.finfo(float).tiny).to_numpy(np.float64)
    logs = np.where(np.isinf(positive), _NEVER, np.log(positive))
    found = pd.DataFrame(logs, index=shared.index, columns=shared.columns)
    found = found.groupby([datasets[str(task)] for task in found.index]).mean()
    return found.rename_axis("dataset")


def average_ranks(blocks: pd.DataFrame) -> pd.DataFrame:
    """The mean rank of each solver over the datasets; 1 is the cheapest, equal costs share ranks.

    Returns
    -------
    DataFrame
        Columns solver, rank, low and high (bootstrap interval over datasets) and n (datasets),
        ascending in rank.
    """
    ranks = blocks.rank(axis=1).to_numpy(np.float64)
    counts = dataset_counts(len(blocks), generator())
    low, high = percentile_interval(counts @ ranks / len(blocks))
    columns = {"solver": blocks.columns, "rank": ranks.mean(axis=0), "low": low, "high": high}
    found = pd.DataFrame(columns).assign(n=len(blocks))
    return found.sort_values("rank", kind="stable").reset_index(drop=True)


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

    found = friedmanchisquare(*blocks.to_numpy().T)
    return Friedman(float(found.statistic), float(found.pvalue), n_blocks, n_solvers)


def needed_datasets(n_solvers: int) -> int:
    """How many datasets it takes for a pair of solvers to be told apart at all.

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

    Returns
    -------
    DataFrame
        One row per pair: solver, other, p (corrected), biserial, ratio (median over the datasets of
        the cost of the first to that of the second), ratio_low and ratio_high (bootstrap interval
        over datasets) and n (datasets). Empty with fewer than :func:`needed_datasets`.
    """
    names = [str(name) for name in blocks.columns]
    if len(names) < 2 or len(blocks) < needed_datasets(len(names)):
        return pd.DataFrame(columns=_PAIR_COLUMNS)
    p = _corrected(blocks).to_numpy(np.float64)
    drawn = generator().integers(len(blocks), size=(RESAMPLES, len(blocks)))
    rows = []
    for first, name in enumerate(names):
        for second in range(first + 1, len(names)):
            less = _differences(blocks, first, second)
            low, high = percentile_interval(np.median(less[drawn], axis=1))
            ratio = (_ratio(value) for value in (float(np.median(less)), float(low), float(high)))
            row = (name, names[second], float(p[first, second]), rank_biserial(-less))
            rows.append((*row, *ratio, len(blocks)))
    return pd.DataFrame(rows, columns=_PAIR_COLUMNS)


_PAIR_COLUMNS = [
    *("solver", "other", "p", "biserial", "ratio", "ratio_low", "ratio_high", "n"),
]


def rank_biserial(differences: Array) -> float:
    """The matched-pairs rank biserial correlation (Kerby 2014); zero if nothing differs."""
    ranks = pd.Series(np.abs(differences)).rank().to_numpy(np.float64)
    return float((np.sign(differences) * ranks).sum() / ranks.sum())


def _differences(blocks: pd.DataFrame, first: int, second: int) -> Array:
    values = blocks.to_numpy()
    return np.asarray(values[:, first] - values[:, second], dtype=np.float64)


def _ratio(difference: float) -> float:
    """A difference of logarithms as a ratio; infinite, or zero, where one never gets there."""
    if abs(difference) > math.log(np.finfo(float).max):
        return math.inf if difference > 0 else 0.0
    return math.exp(difference)


def _corrected(blocks: pd.DataFrame) -> pd.DataFrame:
    # Importing it takes seconds, for statsmodels: only studies with enough datasets pay.
    # Its Wilcoxon test is SciPy's, which is exact also with ties from version 1.15 on, if n <= 13.
    import scikit_posthocs

    long = blocks.melt(var_name="solver", value_name="cost")
    found: pd.DataFrame = scikit_posthocs.posthoc_wilcoxon(
        long, val_col="cost", group_col="solver", zero_method="zsplit", p_adjust="holm"
    )
    return found.loc[list(blocks.columns), list(blocks.columns)]
