"""What solvers noted at the end of each epoch: pure functions from DataFrame to DataFrame."""

from __future__ import annotations

import json

import pandas as pd

from ..frames import is_number, medians, records

#: Columns of :func:`epochs_frame`, NaN for what a solver did not note.
MEASURES = (
    *("epoch", "n_iter", "n_support", "iterations", "maintenance", "weight_degradation"),
    *("margin_evals", "search_evals", "seconds", "maintenance_seconds"),
)
OBJECTIVES = ("primal", "dual_exact", "dual_mixed", "dual_model", "drift")


def epochs_frame(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run and epoch.

    Parameters
    ----------
    runs : DataFrame
        Of :class:`marginbench.reports.results.Results`; the column ``epochs`` holds JSON.

    Returns
    -------
    DataFrame
        Columns task, solver, seed, :data:`MEASURES`, :data:`OBJECTIVES` and
        ``maintenance_fraction``, maintenance events per iteration. Of runs that ended as planned.
    """
    rows = []
    for run in records(runs.loc[runs["ok"], ["task", "solver", "seed", "epochs"]]):
        identity = {name: run[name] for name in ("task", "solver", "seed")}
        for noted in json.loads(run["epochs"] or "[]"):
            # A solver of the user's own may note other things under such names.
            objectives = noted.get("objectives")
            found = noted | (objectives if isinstance(objectives, dict) else {})
            values = {name: found.get(name) for name in (*MEASURES, *OBJECTIVES)}
            known = {name: value for name, value in values.items() if is_number(value)}
            if known.keys() >= {"epoch", "maintenance", "iterations"} and known["iterations"]:
                rows.append(identity | known)
    frame = pd.DataFrame(rows, columns=["task", "solver", "seed", *MEASURES, *OBJECTIVES])
    numbers = [*MEASURES, *OBJECTIVES]
    frame[numbers] = frame[numbers].astype(float)
    frame["maintenance_fraction"] = frame["maintenance"] / frame["iterations"]
    return frame


def maintenance_curves(epochs: pd.DataFrame) -> pd.DataFrame:
    """Median, minimum and maximum over seeds of the maintenance fraction in each epoch.

    Returns
    -------
    DataFrame
        Columns task, solver, epoch, median, low, high, n_runs.
    """
    return medians(epochs, ["task", "solver", "epoch"], "maintenance_fraction")


def predicted_fractions(runs: pd.DataFrame) -> pd.DataFrame:
    """The fractions of iterations that add a point near a task's optimum (BSCA18 Lemma 2).

    Returns
    -------
    DataFrame
        Columns task, ``primal_steps`` (sum alpha* / (n C), for BSGD) and ``dual_steps`` (the part
        of alpha* strictly between 0 and C, for BSCA); tasks without a reference are left out.
    """
    known = runs.dropna(subset=["reference_alpha_sum", "reference_n_free", "n_train", "C"])
    first = known.groupby("task", sort=False).first().reset_index()
    return pd.DataFrame(
        {
            "task": first["task"],
            "primal_steps": first["reference_alpha_sum"] / (first["n_train"] * first["C"]),
            "dual_steps": first["reference_n_free"] / first["n_train"],
        }
    )
