"""Who is first: on each task to a fixed target, and at a fixed budget.

Pure functions from DataFrame to DataFrame. Only solvers of which no run failed can be first, and
two solvers whose runs overlap are both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from marginbench.reports.frames import by_solver, records
from marginbench.reports.statistics.curves import step_values
from marginbench.reports.statistics.outcomes import run_counts
from marginbench.reports.statistics.targets import Target, costs_to_target

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
        n_reached, n_failed, n_missing, absent (why there is no cost; empty if there is one), ratio,
        ratio_low and ratio_high (to the best median; NaN without one) and first (no run of the
        best is cheaper than all of its runs).
    """
    values = costs_to_target(runs, traces, target, cost)
    found = {key: group["value"] for key, group in values.groupby(["task", "solver"])}
    has_target = set(runs.loc[target.levels(runs).notna(), "task"])
    counts = {(row["task"], row["solver"]): row for row in records(run_counts(runs))}
    rows: list[dict[str, Any]] = []
    for task, solver, group in by_solver(runs):
        spent = found.get((task, solver), pd.Series(dtype=float)).to_numpy(np.float64)
        row: dict[str, Any] = {"task": task, "solver": solver, "n": len(group)}
        row |= {name: counts[task, solver][name] for name in ("n_failed", "n_missing")}
        row["absent"] = _absent(group, spent, task in has_target)
        known = np.array([np.nan]) if row["absent"] else spent
        row |= {"median": float(np.median(known))}
        row |= {"low": float(known.min()), "high": float(known.max())}
        row["n_reached"] = int(np.isfinite(known).sum())
        rows.append(row)
    return _against_best(pd.DataFrame(rows, columns=_COLUMNS))


_COLUMNS = [
    *("task", "solver", "n", "n_failed", "n_missing", "n_reached"),
    *("absent", "median", "low", "high"),
]


def _absent(group: pd.DataFrame, spent: Any, has_target: bool) -> str:
    if (group["status"] == "skipped").all():
        return SKIPPED
    if not group["ok"].any():
        return FAILED
    if not has_target or not len(spent):
        return NO_TARGET
    return NOT_COUNTED if np.isnan(spent).any() else ""


def _against_best(table: pd.DataFrame) -> pd.DataFrame:
    complete = (table["n_failed"] == 0) & (table["n_missing"] == 0)
    eligible = table[(table["absent"] == "") & complete]
    eligible = eligible[np.isfinite(eligible["median"]) & (eligible["median"] > 0)]
    best = eligible.sort_values("median", kind="stable").groupby("task")[["median", "high"]].first()
    of_best = table[["task"]].join(best, on="task")
    ratios = {
        name: table[column] / of_best["median"]
        for name, column in (("ratio", "median"), ("ratio_low", "low"), ("ratio_high", "high"))
    }
    overlaps = table["low"] <= of_best["high"]
    first = table.index.isin(eligible.index) & overlaps
    return table.assign(**ratios, first=first)


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
    complete = {
        (task, solver) for task, solver, group in by_solver(runs) if bool(group["ok"].all())
    }
    known = traces[traces["ok"] & traces[[cost, "test_error"]].notna().all(axis=1)]
    rows = []
    for task, solver, group in by_solver(known):
        if (task, solver) not in complete:
            continue
        steps = [run.sort_values(cost, kind="stable") for _, run in group.groupby("seed")]
        for budget, amount in budgets.loc[budgets["task"] == task, ["budget", "amount"]].to_numpy():
            at = np.array([float(amount)])
            errors = [
                step_values(run[cost].to_numpy(float), run["test_error"].to_numpy(float), at)[0]
                for run in steps
            ]
            if not np.isnan(errors).any():
                rows.append((task, budget, solver, float(np.median(errors))))
    table = pd.DataFrame(rows, columns=["task", "budget", "solver", "error"])
    lowest = table.groupby(["task", "budget"])["error"].transform("min")
    return table.assign(first=table["error"] <= lowest)


def geometric_mean(values: Any) -> float:
    """Of positive numbers; NaN of none."""
    array = np.asarray(values, dtype=np.float64)
    return float(np.exp(np.log(array).mean())) if len(array) else np.nan
