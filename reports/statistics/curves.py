"""The curves of a report's figures: pure functions from DataFrame to DataFrame.

A curve shows, for one task and solver, the median over seeds of a value against a cost, and a
band between the quartiles; of fewer than five runs each one is a curve too. Between checkpoints a
run keeps the value of its last checkpoint (step interpolation); after its end it keeps its final
value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from marginbench.reports.frames import FEWEST_FOR_QUARTILES, by_solver, n_planned, spread_of

Array = npt.NDArray[np.float64]

#: What stands around a median, in the words that captions use.
BAND = "bands are quartiles; of fewer than five runs each is a thin line"

_SHARED = ["task", "solver", "n_runs", "n_planned", "cost", "median", "low", "high"]
_CURVE_COLUMNS = [*_SHARED, "n_running"]
_POINT_COLUMNS = [*_SHARED, "cost_low", "cost_high"]


def step_values(costs: Array, values: Array, grid: Array) -> Array:
    """The value of the last checkpoint at or before each cost of a grid.

    Parameters
    ----------
    costs : array, shape (n_checkpoints,)
        Ascending; of checkpoints at the same cost the last one counts.
    values : array, shape (n_checkpoints,)
    grid : array, shape (n_points,)

    Returns
    -------
    array, shape (n_points,)
        NaN before the first checkpoint.
    """
    place = np.searchsorted(costs, grid, side="right") - 1
    return np.where(place >= 0, values[np.maximum(place, 0)], np.nan)


def curves(
    runs: pd.DataFrame, traces: pd.DataFrame, cost: str, value: str, n_points: int = 200
) -> pd.DataFrame:
    """Median and spread over seeds of a value against a cost, per task and solver.

    Runs that failed do not contribute (:func:`unfinished` gives their checkpoints). A curve starts
    where every contributing run has its first checkpoint and ends with its longest run. Solvers
    whose runs have one checkpoint each have no curve: see :func:`points`.

    Parameters
    ----------
    runs, traces : DataFrame
        Of :class:`marginbench.reports.results.Results`.
    cost, value : str
        Columns of ``traces``; rows where either is unknown are left out.
    n_points : int
        Points of the logarithmic grid of costs.

    Returns
    -------
    DataFrame
        Columns task, solver, cost, median, low and high (of
        :func:`marginbench.reports.frames.spread_of`), n_runs (that contribute), n_running (of them,
        not yet ended at this cost) and n_planned.
    """
    parts = []
    for shared, group in _groups(runs, traces, cost, value):
        if all(len(run) == 1 for run in group):
            continue
        first = max(run[cost].iloc[0] for run in group)
        ends = np.array([run[cost].iloc[-1] for run in group])
        positive = np.concatenate([run[cost].to_numpy() for run in group])
        # A logarithmic axis has no zero: a first checkpoint at no cost counts from the next one.
        start = first if first > 0 else positive[positive > 0].min(initial=np.inf)
        if not np.isfinite(start):
            continue
        grid = np.geomspace(start, ends.max(), n_points if ends.max() > start else 1)
        steps = np.stack(
            [step_values(run[cost].to_numpy(), run[value].to_numpy(), grid) for run in group]
        )
        low, high = spread_of(steps)
        part = pd.DataFrame(
            {
                "cost": grid,
                "median": np.median(steps, axis=0),
                "low": low,
                "high": high,
                "n_running": (ends[:, None] > grid).sum(axis=0),
            }
        )
        parts.append(part.assign(**shared))
    return _concat(parts, _CURVE_COLUMNS)


def singles(traces: pd.DataFrame, cost: str, value: str) -> pd.DataFrame:
    """The runs of curves that are of too few for quartiles; a lone run is its own median.

    Returns
    -------
    DataFrame
        Columns task, solver, seed, cost, value.
    """
    known = _known(traces, cost, value)
    per_run = known.groupby(["task", "solver", "seed"]).size()
    per_curve = per_run.groupby(["task", "solver"]).agg(["size", "max"])
    few = per_curve[per_curve["size"].between(2, FEWEST_FOR_QUARTILES - 1) & (per_curve["max"] > 1)]
    mine = known[pd.MultiIndex.from_frame(known[["task", "solver"]]).isin(few.index)]
    mine = mine[mine[cost] > 0].sort_values(cost, kind="stable")
    columns = ["task", "solver", "seed"]
    return mine[[*columns, cost, value]].set_axis([*columns, "cost", "value"], axis=1)


def points(runs: pd.DataFrame, traces: pd.DataFrame, cost: str, value: str) -> pd.DataFrame:
    """Final states of the solvers that report nothing in between: one checkpoint per run.

    Solvers that spent nothing of this cost are left out.

    Returns
    -------
    DataFrame
        Columns task, solver, median and range of the cost (cost, cost_low, cost_high) and of the
        value (median, low, high), n_runs, n_planned.
    """
    parts = []
    for shared, group in _groups(runs, traces, cost, value):
        if any(len(run) > 1 for run in group):
            continue
        states = pd.concat(group)
        if not states[cost].median() > 0:
            continue  # a logarithmic axis has no place for it
        row = {
            "cost": states[cost].median(),
            "cost_low": states[cost].min(),
            "cost_high": states[cost].max(),
            "median": states[value].median(),
            "low": states[value].min(),
            "high": states[value].max(),
        }
        part = pd.DataFrame([row])
        parts.append(part.assign(**shared))
    return _concat(parts, _POINT_COLUMNS)


def unfinished(traces: pd.DataFrame, cost: str, value: str) -> pd.DataFrame:
    """The checkpoints of runs that failed, up to where they ended.

    Returns
    -------
    DataFrame
        Columns task, solver, seed, status, cost, value.
    """
    failed = traces[~traces["ok"]]
    failed = failed[failed[[cost, value]].notna().all(axis=1) & (failed[cost] > 0)]
    columns = ["task", "solver", "seed", "status"]
    chosen = failed[[*columns, cost, value]]
    return chosen.set_axis([*columns, "cost", "value"], axis=1).reset_index(drop=True)


def _groups(
    runs: pd.DataFrame, traces: pd.DataFrame, cost: str, value: str
) -> Iterator[tuple[dict[str, str | int], list[pd.DataFrame]]]:
    """Per task and solver: what identifies the curve, and the contributing traces by seed."""
    known = _known(traces, cost, value)
    planned = n_planned(runs)
    for task, solver, group in by_solver(known):
        seeds = [run.sort_values(cost, kind="stable") for _, run in group.groupby("seed")]
        shared: dict[str, str | int] = {"task": task, "solver": solver, "n_runs": len(seeds)}
        yield shared | {"n_planned": planned[task, solver]}, seeds


def _known(traces: pd.DataFrame, cost: str, value: str) -> pd.DataFrame:
    """The checkpoints of runs that ended as planned of which both are known."""
    return traces[traces["ok"] & traces[[cost, value]].notna().all(axis=1)]


def _concat(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True)[columns]
