"""Fixed targets, which no solver of the study sets, and what runs spend until they stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from .. import formatting

Array = npt.NDArray[np.float64]

# So that a margin added in floating point includes an equal error.
_ROUNDING = 1e-12
_RUN = ["task", "solver", "seed"]


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
        the one from which it stays) and upper_bound (it is there from its first checkpoint on:
        when it got there is not known, only that it had by then).
    """
    tried = _tried(runs, target)
    reached = traces.loc[traces["ok"], [*_RUN, target.value, cost]]
    states = tried.assign(run=np.arange(len(tried))).merge(reached, on=_RUN)
    # The states of a run are together, in their order.
    run, place = states["run"].to_numpy(), np.arange(len(states))
    # An unknown value is above every target.
    at = (states[target.value] <= states["level"] + _ROUNDING).to_numpy(bool)
    last_above = np.full(len(tried), -1)
    np.maximum.at(last_above, run[~at], place[~at])
    stays = place > last_above[run]
    spent = states[cost].to_numpy(np.float64)
    value = _first(run[stays], spent[stays], len(tried))
    return tried[_RUN].assign(
        value=value,
        first=_first(run[at], spent[at], len(tried)),
        # Less than nothing cannot have been spent.
        upper_bound=(last_above < 0) & np.isfinite(value) & (value > 0),
    )


def bounds_median(costs: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Whether the cost of a run makes the median of its group an upper bound.

    A bound below the median leaves the median what it is.

    Parameters
    ----------
    costs : DataFrame
        With the columns value and upper_bound, of values that are known.
    by : sequence of str
        The columns of the groups.
    """
    medians = costs.groupby([costs[name] for name in by])["value"].transform("median")
    return costs["upper_bound"].astype(bool) & (costs["value"] >= medians)


def _tried(runs: pd.DataFrame, target: Target) -> pd.DataFrame:
    """The runs that are asked to reach a target, and the value at which they do."""
    chosen = runs["status"] != "skipped"
    if target.value == "suboptimality":
        chosen &= runs["minimises"]
    tried = runs[_RUN].assign(level=target.levels(runs))
    return tried[chosen & tried["level"].notna()].reset_index(drop=True)


def _first(run: npt.NDArray[np.int64], spent: Array, n: int) -> Array:
    """The cost of the first of the states of each of n runs; infinite where it has none."""
    known, first = np.unique(run, return_index=True)
    costs = np.full(n, np.inf)
    costs[known] = spent[first]
    return costs
