"""Fixed targets, which no solver of the study sets, and what runs spend until they stay there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from marginbench.reports import formatting

# So that a margin added in floating point includes an equal error.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Target:
    """A value that runs are asked to reach and keep.

    Attributes
    ----------
    value : {"test_error", "suboptimality"}
    margin : float
        Test errors may exceed that of the task's reference optimum by so much, as a fraction of
        the test points; a suboptimality may be so large.
    """

    value: str
    margin: float

    def levels(self, runs: pd.DataFrame) -> pd.Series:
        """The largest value at which each run is at the target; NaN where there is none.

        A run of a fold has the optimum of its fold. One without a record has that of the others of
        its task, and a task without a reference optimum has no targets.
        """
        base = "reference_test_error" if self.value == "test_error" else "reference_primal"
        own = runs[base]
        known = own.fillna(own.groupby(runs["task"]).transform("median"))
        return known + self.margin if self.value == "test_error" else known * 0.0 + self.margin

    @property
    def words(self) -> str:
        """What to be within, in a few words: "1 % of the optimum"."""
        if self.value == "test_error" and self.margin == 0:
            return "the optimum's error"
        if self.value == "test_error":
            return f"{100 * self.margin:g} point of the optimum's error"
        return f"{100 * self.margin:g}{formatting.THIN}% of the optimum"


def costs_to_target(
    runs: pd.DataFrame, traces: pd.DataFrame, target: Target, cost: str
) -> pd.DataFrame:
    """What each run spent until it stayed at a target.

    That is the cost of the first checkpoint from which on all checkpoints, and the end, are at or
    below the target. A run that passes the target and ends above it never stays.

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
        One row per planned run that was not skipped, of a task and a solver that have the target:
        task, solver, seed, value (infinite where the run never stayed there or failed, NaN where
        the count is unknown), first (the cost of the first checkpoint at the target, perhaps not
        the one from which it stays) and upper_bound (there at the run's only checkpoint).
    """
    tried = runs[runs["status"] != "skipped"]
    levels = target.levels(runs)[tried.index].to_numpy(np.float64)
    trace_of = dict(iter(traces[traces["ok"]].groupby(["task", "solver", "seed"])))
    rows = []
    for run, level in zip(tried.itertuples(index=False), levels, strict=True):
        if math.isnan(level) or (target.value == "suboptimality" and not run.minimises):
            continue
        identity = (run.task, run.solver, run.seed)
        trace = trace_of.get(identity, traces[:0])
        reached = _reached(trace, target, level)
        staying = _staying(reached)
        spent = trace[cost].to_numpy(np.float64)
        first = spent[np.argmax(reached)] if reached.any() else np.inf
        stays = spent[staying] if staying < len(spent) else np.inf
        rows.append((*identity, stays, first, staying < len(spent) == 1))
    columns = ["task", "solver", "seed", "value", "first", "upper_bound"]
    return pd.DataFrame(rows, columns=columns)


def _reached(trace: pd.DataFrame, target: Target, level: float) -> npt.NDArray[np.bool_]:
    """Which checkpoints are at or below the target."""
    if trace.empty:
        return np.zeros(0, bool)
    return trace[target.value].to_numpy(np.float64) <= level + _ROUNDING


def _staying(reached: npt.NDArray[np.bool_]) -> int:
    """The first place from which on all are; the length if the last one is not."""
    above = np.flatnonzero(~reached)
    return int(above[-1]) + 1 if len(above) else 0
