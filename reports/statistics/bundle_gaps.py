"""What bundle methods knew by iteration: pure functions from DataFrame to DataFrame."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from ..frames import by_solver, is_number, records

#: Slopes are taken from this iteration on: the first ones depend on the start.
FIRST_OF_SLOPE = 10
# The fields of a bundle method's notes.
_NOTED = {"n_iter", "gamma", "epsilon", "lower_bound"}
# Fewer iterations than this have no slope to speak of.
_FEWEST_OF_SLOPE = 5


def bundle_gaps(runs: pd.DataFrame) -> pd.DataFrame:
    """gamma_t and epsilon_t (BMRM07 section 3.2) by iteration.

    Parameters
    ----------
    runs : DataFrame
        Of :class:`marginbench.reports.results.Results`; the column ``epochs`` holds JSON.

    Returns
    -------
    DataFrame
        Columns task, solver, n_iter, gamma, epsilon, one row for each iteration noted but the
        start. Of each solver's first run on a task that ended as planned: the methods draw nothing,
        so other seeds only repeat it.
    """
    rows = []
    finished = runs.loc[runs["ok"], ["task", "solver", "seed", "epochs"]]
    firsts = finished.sort_values("seed", kind="stable").drop_duplicates(["task", "solver"])
    # In the order of the study.
    for first in records(firsts.sort_index()):
        for noted in json.loads(first["epochs"] or "[]"):
            # A solver of the user's own may note other things under such names.
            if noted.keys() == _NOTED and all(is_number(value) for value in noted.values()):
                rows.append({"task": first["task"], "solver": first["solver"]} | noted)
    frame = pd.DataFrame(rows, columns=["task", "solver", "n_iter", "gamma", "epsilon"])
    frame = frame[frame["n_iter"] != 0]  # the start has no place on a logarithmic axis
    return frame.astype({"n_iter": float, "gamma": float, "epsilon": float})


def gap_slopes(gaps: pd.DataFrame) -> pd.DataFrame:
    """How fast gamma_t falls: the slope of its logarithm over that of t, by least squares.

    The iterations noted lie about evenly on the logarithmic axis, so that each decade weighs the
    same. -1 is the rate of the bound for losses with kinks (BMRM07 Theorem 5).

    Parameters
    ----------
    gaps : DataFrame
        Of :func:`bundle_gaps`.

    Returns
    -------
    DataFrame
        Columns task, solver, slope; of iterations from :data:`FIRST_OF_SLOPE` on. Without solvers
        that ended before there was anything to fit.
    """
    rows = []
    falling = gaps[(gaps["n_iter"] >= FIRST_OF_SLOPE) & (gaps["gamma"] > 0)]
    for task, solver, group in by_solver(falling):
        if len(group) >= _FEWEST_OF_SLOPE:
            slope = np.polyfit(np.log(group["n_iter"]), np.log(group["gamma"]), 1)[0]
            rows.append({"task": task, "solver": solver, "slope": float(slope)})
    return pd.DataFrame(rows, columns=["task", "solver", "slope"])
