"""Expected running time: what reaching a target costs, runs that do not reach it included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..frames import by_solver
from .resampling import (
    RESAMPLES,
    generator,
    percentile_interval,
    run_weights,
)

Array = npt.NDArray[np.float64]

_RUN = ["task", "solver", "seed"]
_COLUMNS = [
    *("task", "solver", "ert", "low", "high", "n", "n_reached", "censored"),
    *("lower_bound", "upper_bound"),
]


def expected_running_time(
    problems: pd.DataFrame, runs: pd.DataFrame, traces: pd.DataFrame, cost: str
) -> pd.DataFrame:
    """The cost of all runs of a solver on a task, divided by the number that reached the target.

    That is what independent restarts cost on average until one reaches it (Hansen et al. 2021,
    COCO). A run that reached it has spent its cost to the target, any other one all that it spent.
    Of a run that was killed only the part up to its last checkpoint is known, so that the sum is a
    lower bound.

    Parameters
    ----------
    problems : DataFrame
        Of :func:`marginbench.reports.statistics.profiles.problems`, of one target.
    runs, traces : DataFrame
        Of :class:`marginbench.reports.results.Results`.
    cost : str
        The column of ``traces`` that the problems are of, in the same units.

    Returns
    -------
    DataFrame
        One row per task and solver: ert (infinite without a success), low and high (bootstrap
        interval over the runs; NaN of a single run), n, n_reached, censored (how the runs that did
        not reach the target ended: "2 budget, 1 timeout"), lower_bound and upper_bound (the cost
        to the target of some run is one).
    """
    spent = _spent(problems, runs, traces, cost)
    reached = np.isfinite(spent["value"])
    spent = spent.assign(
        reached=reached,
        cost=spent["value"].where(reached, spent["known"].fillna(0.0)),
        partial=~reached & (~spent["ok"] | spent["known"].isna()),
    )
    rng = generator()
    rows = []
    for task, solver, mine in by_solver(spent):
        costs, hits, status, partial = (
            mine[name].to_numpy() for name in ("cost", "reached", "status", "partial")
        )
        low, high = _interval(costs, hits, rng)
        ert = costs.sum() / hits.sum() if hits.any() else np.inf
        counts = (len(mine), int(hits.sum()))
        ended = _ended(status[~hits])
        bounds = bool(partial.any()), bool(mine["upper_bound"].any())
        rows.append((task, solver, ert, low, high, *counts, ended, *bounds))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _ended(statuses: Iterable[str]) -> str:
    """How often each status, the most frequent first: "2 budget, 1 timeout"."""
    counts = sorted(Counter(statuses).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {status}" for status, count in counts)


def _spent(
    problems: pd.DataFrame, runs: pd.DataFrame, traces: pd.DataFrame, cost: str
) -> pd.DataFrame:
    """The problems with what their runs are known to have spent in all, and how they ended."""
    last = traces.groupby(_RUN)[cost].max().rename("last").reset_index()
    ends = runs[[*_RUN, "status", "ok", cost]].rename(columns={cost: "known"})
    found = problems.merge(ends, on=_RUN, how="left").merge(last, on=_RUN, how="left")
    return found.assign(known=np.fmax(found["known"], found["last"]))


def _interval(
    costs: Array, hits: npt.NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    n = len(costs)
    if n == 1:
        return np.nan, np.nan
    weights = run_weights(n, RESAMPLES, rng)
    total, number = weights @ costs, weights @ hits
    ratios = np.divide(total, number, out=np.full_like(total, np.inf), where=number > 0)
    low, high = percentile_interval(ratios)
    return float(low), float(high)
