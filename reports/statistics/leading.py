"""Who is first: on each task to a fixed target, and at a fixed budget.

Pure functions from DataFrame to DataFrame. Only solvers of which no run failed can be first, and
two solvers whose runs overlap are both. A cost that is only an upper bound may be anything below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..frames import of_task
from .curves import step_values, steps
from .outcomes import run_counts
from .targets import Target, bounds_median, costs_to_target

#: Why a solver has no cost on a task.
SKIPPED, NO_TARGET, NOT_COUNTED, FAILED = "skipped", "no target", "not counted", "failed"


def costs(runs: pd.DataFrame, traces: pd.DataFrame, target: Target, cost: str) -> pd.DataFrame:
    """What each solver spends on each task until it stays at a target, against the best.

    Parameters
    ----------
    runs, traces : DataFrame
        Of :class:`marginbench.reports.results.Results`; for an objective with the suboptimality of
        the checkpoints.
    target : Target
    cost : str
        A column of ``traces``.

    Returns
    -------
    DataFrame
        One row per task and solver: median, low and high cost over the runs (infinite: never), n,
        n_reached, n_failed, n_missing, absent (why there is no cost; empty if there is one),
        upper_bound (the median is only known to be at most this), ratio, ratio_low and ratio_high
        (to the best median; NaN without one), best_is_bound (so is that median) and first (not
        all of its runs are known to cost more than every run of the best).
    """
    counts = run_counts(runs)
    spent = costs_to_target(runs, traces, target, cost)
    keys = ["task", "solver"]
    spent = spent.assign(
        reached=np.isfinite(spent["value"]),
        unknown=spent["value"].isna(),
        least=spent["value"].mask(spent["upper_bound"], 0.0),
        upper_bound=bounds_median(spent, keys),
    )
    found = spent.groupby(keys).agg(
        median=("value", "median"),
        low=("value", "min"),
        high=("value", "max"),
        least=("least", "min"),
        upper_bound=("upper_bound", "any"),
        n_reached=("reached", "sum"),
        n_unknown=("unknown", "sum"),
    )
    table = counts.rename(columns={"n_planned": "n"}).join(found, on=["task", "solver"])
    has_target = runs.loc[target.levels(runs).notna(), "task"].unique()
    table["absent"] = _absent(table, table["task"].isin(has_target))
    known = table["absent"] == ""
    for name in ("median", "low", "high", "least"):
        table[name] = table[name].astype(np.float64).where(known)
    table["upper_bound"] = known & table["upper_bound"].eq(True)
    table["n_reached"] = table["n_reached"].where(known, 0).astype(int)
    return _against_best(table[_COLUMNS])


_COLUMNS = [
    *("task", "solver", "n", "n_failed", "n_missing", "n_reached"),
    *("absent", "median", "low", "high", "least", "upper_bound"),
]


def _absent(table: pd.DataFrame, has_target: pd.Series) -> pd.Series:
    """Why there is no cost, by row; empty where there is one."""
    reasons = {
        SKIPPED: table["n_skipped"] == table["n"],
        FAILED: table["n_ok"] == 0,
        NO_TARGET: ~has_target | table["n_unknown"].isna(),
        NOT_COUNTED: table["n_unknown"] > 0,
    }
    found = np.select(list(reasons.values()), list(reasons), default="")
    return pd.Series(found, index=table.index, dtype=object)


def _against_best(table: pd.DataFrame) -> pd.DataFrame:
    complete = (table["n_failed"] == 0) & (table["n_missing"] == 0)
    eligible = table[(table["absent"] == "") & complete]
    eligible = eligible[np.isfinite(eligible["median"]) & (eligible["median"] > 0)]
    best = eligible.sort_values(["median", "upper_bound"], kind="stable").groupby("task")
    of_best = table[["task"]].join(best[["median", "high", "upper_bound"]].first(), on="task")
    ratios = {
        name: table[column] / of_best["median"]
        for name, column in (("ratio", "median"), ("ratio_low", "low"), ("ratio_high", "high"))
    }
    overlaps = table["least"] <= of_best["high"]
    first = table.index.isin(eligible.index) & overlaps
    best_is_bound = of_best["upper_bound"].eq(True)
    return table.assign(**ratios, best_is_bound=best_is_bound, first=first).drop(columns="least")


def leaders(
    runs: pd.DataFrame, traces: pd.DataFrame, cost: str, budgets: pd.DataFrame
) -> pd.DataFrame:
    """The solvers with the lowest median test error after a budget was spent.

    A run that ends before keeps its final error; one without a checkpoint by then has none, and
    its solver does not compete.

    Parameters
    ----------
    runs, traces : DataFrame
    cost : str
        A column of ``traces``.
    budgets : DataFrame
        Columns task, budget (a name) and amount (in units of the cost).

    Returns
    -------
    DataFrame
        Columns task, budget, solver, error, first: the solvers that compete, and whether no other
        has a lower median.
    """
    complete = runs.groupby(["task", "solver"])["ok"].all()
    rows = []
    for group in steps(traces, cost, "test_error"):
        if not complete[group.task, group.solver]:
            continue
        mine = of_task(budgets, group.task)
        amounts = mine["amount"].to_numpy(np.float64)
        errors = np.stack([step_values(*run, amounts) for run in group.runs])
        for budget, median in zip(mine["budget"], np.median(errors, axis=0), strict=True):
            # NaN: some run has no checkpoint by then.
            if not np.isnan(median):
                rows.append((group.task, budget, group.solver, float(median)))
    table = pd.DataFrame(rows, columns=["task", "budget", "solver", "error"])
    lowest = table.groupby(["task", "budget"])["error"].transform("min")
    return table.assign(first=table["error"] <= lowest)


def geometric_mean(values: Any) -> float:
    """Of positive numbers; NaN of none."""
    array = np.asarray(values, dtype=np.float64)
    return float(np.exp(np.log(array).mean())) if len(array) else np.nan


def best_ranked(costs: pd.DataFrame, labels: Sequence[str], most: int) -> list[str]:
    """The solvers with the lowest mean rank over the tasks, by their median cost to a target.

    A solver that does not stay at the target, whose cost is unknown, or of which a run failed or is
    missing, shares the last rank of the task. Among equals those that the study names first are
    taken.

    Parameters
    ----------
    costs : DataFrame
        Of :func:`marginbench.reports.statistics.leading.costs`.
    labels : sequence of str
        All solvers, in the order of the study.
    most : int
        How many are taken.

    Returns
    -------
    list of str
        In the order of the study.
    """
    complete = (costs["absent"] == "") & (costs["n_failed"] == 0) & (costs["n_missing"] == 0)
    known = costs.assign(cost=costs["median"].where(complete, np.inf))
    table = known.pivot(index="solver", columns="task", values="cost").reindex(list(labels))
    # Equal medians, infinite ones too, share a rank: a task that nobody finishes decides nothing.
    ranks = table.fillna(np.inf).rank(method="average").mean(axis=1)
    chosen = set(ranks.sort_values(kind="stable").index[:most])
    return [label for label in labels if label in chosen]
