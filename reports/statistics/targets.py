"""Fixed targets, which no solver of the study sets, and what runs spend until they stay there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from marginbench.reports import formatting

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
        the one from which it stays) and upper_bound (there at the run's only checkpoint).
    """
    tried = runs.assign(level=target.levels(runs))
    tried = tried[(tried["status"] != "skipped") & tried["level"].notna()]
    if target.value == "suboptimality":
        tried = tried[tried["minimises"]]
    states = tried[[*_RUN, "level"]].merge(traces[traces["ok"]], on=_RUN)
    # An unknown value is above every target.
    above = ~(states[target.value] <= states["level"] + _ROUNDING)
    place = states.groupby(_RUN).cumcount()
    last_above = place.where(above, -1).groupby([states[name] for name in _RUN]).transform("max")
    left = place <= last_above
    found = tried[_RUN].merge(_first_states(states[~left], cost, "value"), on=_RUN, how="left")
    found = found.merge(_first_states(states[~above], cost, "first"), on=_RUN, how="left")
    n_states = states.groupby(_RUN).size().rename("n_states").reset_index()
    found = found.merge(n_states, on=_RUN, how="left")
    # Of an unknown count the cost is unknown; without such a state it is infinite.
    for name in ("value", "first"):
        found[name] = found[name].where(found[f"has_{name}"].notna(), np.inf)
    only = found["has_value"].notna() & (found["n_states"] == 1)
    return found.assign(upper_bound=only)[[*_RUN, "value", "first", "upper_bound"]]


def _first_states(states: pd.DataFrame, cost: str, name: str) -> pd.DataFrame:
    """The cost of the first of the states of each run, and that there is one."""
    first = states.drop_duplicates(_RUN)
    found = first[_RUN].copy()
    found[name], found[f"has_{name}"] = first[cost].astype(float), True
    return found
