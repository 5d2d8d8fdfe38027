"""The curves of a report's figures: pure functions from DataFrame to DataFrame.

A curve shows, for one task and solver, the median over seeds of a value against a cost, and a
band between the quartiles; of fewer than five runs each one is a curve too. Between checkpoints a
run keeps the value of its last checkpoint (step interpolation); after its end it keeps its final
value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..frames import (
    FEWEST_FOR_QUARTILES,
    RUN,
    by_solver,
    is_number,
    medians,
    n_planned,
    records,
    spread_of,
)

Array = npt.NDArray[np.float64]

#: The band around a median, in the words of captions.
BAND = "bands are quartiles; of fewer than five runs each is a thin line"

_CURVE_COLUMNS = [
    *("task", "solver", "n_runs", "n_planned", "cost", "median", "low", "high", "n_running"),
    *("drawn", "seed", "value", "status", "cost_low", "cost_high"),
]


@dataclass(frozen=True)
class Steps:
    """What a solver's runs on a task had spent, and reached, at their checkpoints."""

    task: str
    solver: str
    seeds: npt.NDArray[Any]  # shape (n_runs,)
    starts: npt.NDArray[np.int64]  # shape (n_runs,): where each run begins among the checkpoints
    costs: Array  # shape (n_checkpoints,), ascending in each run
    values: Array  # shape (n_values, n_checkpoints)

    @property
    def only_ends(self) -> bool:
        """Whether each run has one checkpoint, so that there is no curve."""
        return len(self.starts) == len(self.costs)

    @property
    def run(self) -> npt.NDArray[np.int64]:
        """The place of the run of each checkpoint."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.costs)))

    def at(self, grid: Array) -> Array:
        """The values of the last checkpoint of each run at or before each cost of a grid.

        The grid is ascending. Shape (n_runs, n_values, n_grid); NaN before the first checkpoint.
        """
        # The last checkpoint before each place of the grid, where one lies just before it.
        last = np.full((len(self.starts), len(grid) + 1), -1)
        last[self.run, np.searchsorted(grid, self.costs)] = np.arange(len(self.costs))
        last = np.maximum.accumulate(last[:, :-1], axis=1)
        return np.where(last >= 0, self.values[:, last], np.nan).swapaxes(0, 1)

    def medians(self, n_points: int) -> dict[str, npt.NDArray[Any]] | None:
        """Medians and spread against the cost, with a row for each value.

        Of runs with one checkpoint each their medians, with the ranges of costs and values. None
        without a positive cost: a logarithmic axis has no place for another.
        """
        if self.only_ends:
            grid, values = np.median(self.costs, keepdims=True), self.values.T[:, :, None]
            low, high = values.min(axis=0), values.max(axis=0)
            further = {"cost_low": self.costs.min(), "cost_high": self.costs.max()}
        else:
            ends = self.costs[np.append(self.starts[1:], len(self.costs)) - 1]
            start = self.costs[self.starts].max()
            if not start > 0:
                # A first checkpoint at no cost counts from the next.
                start = self.costs[self.costs > 0].min(initial=np.inf)
            if not np.isfinite(start):
                return None
            grid = np.geomspace(start, ends.max(), n_points if ends.max() > start else 1)
            values = self.at(grid)
            low, high = spread_of(values)
            further = {"n_running": (ends[:, None] > grid).sum(axis=0)}
        if not grid[0] > 0:
            return None
        medians = {"cost": grid, "median": np.median(values, axis=0), "low": low, "high": high}
        return medians | {name: np.atleast_1d(number) for name, number in further.items()}


def along(
    runs: pd.DataFrame, traces: pd.DataFrame, cost: str, value: str, n_points: int = 200
) -> pd.DataFrame:
    """A value against a cost, for each task and solver, as a figure shows it.

    ``drawn`` says what a row is. "median": of n_runs, of which n_running have not ended at this
    cost, from where each has its first checkpoint to the end of the longest. "end": the same of a
    solver that reports nothing in between. "run" and "failed run": the checkpoints of runs that are
    too few for quartiles, and of those that failed, which are in no median.
    """
    planned = n_planned(runs)
    failed = unfinished(traces, cost, value)
    parts: list[dict[str, Any]] = [{str(name): failed[name] for name in failed}]
    parts[0]["drawn"] = "failed run"
    for group in steps(traces, cost, [value]):
        medians = group.medians(n_points)
        if medians is None:
            continue
        n_runs, about = len(group.starts), {"task": group.task, "solver": group.solver}
        counts = {"n_runs": n_runs, "n_planned": planned[group.task, group.solver]}
        columns = {name: numbers.ravel() for name, numbers in medians.items()}
        drawn = "end" if group.only_ends else "median"
        parts.append({**about, **counts, **columns, "drawn": drawn})
        if drawn == "median" and 1 < n_runs < FEWEST_FOR_QUARTILES:
            # A lone run is its own median.
            paid, seeds = group.costs > 0, group.seeds[group.run]
            columns = {"cost": group.costs[paid], "value": group.values[0][paid]}
            parts.append({**about, **columns, "seed": seeds[paid], "drawn": "run"})
    # One frame of whole columns: a frame for each part takes several times as long.
    sizes = [len(part["cost"]) for part in parts]
    whole: dict[str, Any] = {}
    for name in _CURVE_COLUMNS:
        values = [
            np.broadcast_to(np.asarray(part.get(name, np.nan), object), size)
            for part, size in zip(parts, sizes, strict=True)
        ]
        whole[name] = np.concatenate(values)
    types = dict.fromkeys(("n_runs", "n_planned", "n_running", "seed"), "Int64")
    types |= dict.fromkeys(("cost", "median", "low", "high", "value"), "float64")
    types |= dict.fromkeys(("cost_low", "cost_high"), "float64")
    return pd.DataFrame(whole).astype(types)


def unfinished(traces: pd.DataFrame, cost: str, value: str) -> pd.DataFrame:
    """The checkpoints of runs that failed, up to where they ended."""
    failed = traces[~traces["ok"]]
    failed = failed[failed[[cost, value]].notna().all(axis=1) & (failed[cost] > 0)]
    columns = ["task", "solver", "seed", "status"]
    chosen = failed[[*columns, cost, value]]
    return chosen.set_axis([*columns, "cost", "value"], axis=1).reset_index(drop=True)


def steps(traces: pd.DataFrame, cost: str, values: Sequence[str]) -> list[Steps]:
    """The checkpoints, with cost and values, of runs that ended as planned.

    For each task and solver, whose runs follow each other in ``traces``, in this order.
    """
    columns = np.stack([traces[name].to_numpy(np.float64) for name in (cost, *values)])
    rows = np.flatnonzero(traces["ok"].to_numpy(bool) & ~np.isnan(columns).any(axis=0))
    if not len(rows):
        return []
    task, solver, seed = (traces[name].to_numpy()[rows] for name in RUN)
    other_pair = (task[1:] != task[:-1]) | (solver[1:] != solver[:-1])
    starts = np.append(0, np.flatnonzero(other_pair | (seed[1:] != seed[:-1])) + 1)
    run = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    # Of checkpoints at the same cost the order stays.
    columns = columns[:, rows][:, np.lexsort((columns[0, rows], run))]
    groups = []
    for first, end in pairwise([0, *(np.flatnonzero(other_pair) + 1), len(rows)]):
        own = starts[(starts >= first) & (starts < end)]
        names = str(task[first]), str(solver[first]), seed[own]
        groups.append(Steps(*names, own - first, columns[0, first:end], columns[1:, first:end]))
    return groups


def by_checkpoints(traces: pd.DataFrame, cost: str, values: Iterable[str]) -> list[list[str]]:
    """The values in groups that have the same checkpoints without a NaN: see :func:`steps`."""
    groups: dict[bytes, list[str]] = {}
    unknown = traces[cost].isna().to_numpy()
    for name in values:
        groups.setdefault((unknown | traces[name].isna().to_numpy()).tobytes(), []).append(name)
    return list(groups.values())


def _noted(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The numbers, also of objectives, that solvers noted in runs that ended as planned."""
    for run in records(runs.loc[runs["ok"], [*RUN, "epochs"]]):
        for noted in json.loads(run["epochs"] or "[]"):
            # A solver of the user's own may note other things under such names.
            objectives = noted.get("objectives")
            fields = noted | (objectives if isinstance(objectives, dict) else {})
            numbers = {name: value for name, value in fields.items() if is_number(value)}
            yield {name: run[name] for name in RUN} | numbers


# What is read of the notes on an epoch, NaN for what a solver did not note.
_OF_EPOCHS = (
    *("epoch", "n_iter", "iterations", "maintenance", "seconds", "maintenance_seconds"),
    *("primal", "dual_mixed"),
)


def epochs_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """What solvers noted at the end of each epoch, with maintenance events per iteration."""
    rows = [row for row in _noted(runs) if {"epoch", "maintenance"} <= row.keys()]
    rows = [row for row in rows if row.get("iterations")]
    frame = pd.DataFrame(rows, columns=[*RUN, *_OF_EPOCHS])
    frame = frame.astype(dict.fromkeys(_OF_EPOCHS, float))
    return frame.assign(maintenance_fraction=frame["maintenance"] / frame["iterations"])


def maintenance_curves(epochs: pd.DataFrame) -> pd.DataFrame:
    """Median and spread over seeds of the maintenance fraction in each epoch."""
    return medians(epochs, ["task", "solver", "epoch"], "maintenance_fraction")


def predicted_fractions(runs: pd.DataFrame) -> pd.DataFrame:
    """The fractions of iterations that add a point near a task's optimum (BSCA18 Lemma 2).

    ``primal_steps`` are for BSGD; ``dual_steps``, the part of alpha* strictly between 0 and C, for
    BSCA. Tasks without a reference are left out.
    """
    with_reference = runs.dropna(subset=["reference_alpha_sum", "reference_n_free", "n_train", "C"])
    first = with_reference.groupby("task", sort=False).first().reset_index()
    return pd.DataFrame(
        {
            "task": first["task"],
            "primal_steps": first["reference_alpha_sum"] / (first["n_train"] * first["C"]),
            "dual_steps": first["reference_n_free"] / first["n_train"],
        }
    )


#: Slopes are taken from this iteration on: the first ones depend on the start.
FIRST_OF_SLOPE = 10
# The fields of a bundle method's notes.
_NOTED = {"n_iter", "gamma", "epsilon", "lower_bound"}
# Fewer iterations than this have no slope to speak of.
_FEWEST_OF_SLOPE = 5


def bundle_gaps(runs: pd.DataFrame) -> pd.DataFrame:
    """gamma_t and epsilon_t (BMRM07 section 3.2) by iteration.

    Of each solver's first run on a task: the methods draw nothing, so other seeds only repeat it.
    """
    finished = runs[runs["ok"]].sort_values("seed", kind="stable")
    # In the order of the study.
    firsts = finished.drop_duplicates(["task", "solver"]).sort_index()
    rows = [row for row in _noted(firsts) if row.keys() == {*RUN, *_NOTED}]
    frame = pd.DataFrame(rows, columns=["task", "solver", "n_iter", "gamma", "epsilon"])
    frame = frame[frame["n_iter"] != 0]  # the start has no place on a logarithmic axis
    return frame.astype({"n_iter": float, "gamma": float, "epsilon": float})


def gap_slopes(gaps: pd.DataFrame) -> pd.DataFrame:
    """How fast gamma_t falls: the slope of its logarithm over that of t, by least squares.

    The iterations noted lie about evenly on the logarithmic axis, so that each decade weighs the
    same. -1 is the rate of the bound for losses with kinks (BMRM07 Theorem 5).
    """
    rows = []
    falling = gaps[(gaps["n_iter"] >= FIRST_OF_SLOPE) & (gaps["gamma"] > 0)]
    for task, solver, group in by_solver(falling):
        if len(group) >= _FEWEST_OF_SLOPE:
            slope = np.polyfit(np.log(group["n_iter"]), np.log(group["gamma"]), 1)[0]
            rows.append({"task": task, "solver": solver, "slope": float(slope)})
    return pd.DataFrame(rows, columns=["task", "solver", "slope"])
