"""The hierarchical bootstrap: datasets are drawn with all of their tasks, then runs in each task.

Tasks that share a dataset are not independent, so a dataset is drawn as a whole. Runs are drawn
within a task and a solver, because they repeat the same task. The seed is fixed: the same records
give the same intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
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
    """The share of each run in n resamples of all runs.

    Returns
    -------
    array, shape (n, n_runs)
        Rows sum to 1.
    """
    if n_runs == 1:
        return np.ones((n, 1))
    # Counting draws is several times faster than drawing the counts.
    drawn = rng.integers(n_runs, size=(n, n_runs)) + n_runs * np.arange(n)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * n_runs).reshape(n, n_runs) / n_runs


def dataset_counts(n_datasets: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """How often each dataset is drawn in each resample.

    Returns
    -------
    array, shape (RESAMPLES, n_datasets)
        Rows sum to ``n_datasets``.
    """
    return rng.multinomial(n_datasets, np.full(n_datasets, 1 / n_datasets), size=RESAMPLES)


def resampled_means(
    tasks: Mapping[str, Resampled], datasets: Mapping[str, str], shape: tuple[int, ...]
) -> Array:
    """The means over the tasks in resamples of datasets and runs.

    A dataset that is drawn twice has its runs drawn twice, independently.

    Parameters
    ----------
    tasks : mapping of str to callable
        The values of each task, by its label.
    datasets : mapping of str to str
        The dataset of each task.
    shape : tuple of int
        Of the values of a task.

    Returns
    -------
    array, shape (RESAMPLES, *shape)
        NaN where a resample has no task with a value.
    """
    # The products are small: several threads would wait for each other longer than they compute.
    with threadpool_limits(1, user_api="blas"):
        return _resampled_means(tasks, datasets, shape)


def _resampled_means(
    tasks: Mapping[str, Resampled], datasets: Mapping[str, str], shape: tuple[int, ...]
) -> Array:
    rng = generator()
    names = list(dict.fromkeys(datasets[task] for task in tasks))
    counts = dataset_counts(len(names), rng)
    totals, numbers = np.zeros((RESAMPLES, *shape)), np.zeros((RESAMPLES, *shape))
    for place, name in enumerate(names):
        drawn = np.flatnonzero(counts[:, place])
        often = counts[drawn, place]
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
