"""Data profiles and performance profiles: what share of the problems is solved at which cost.

A problem is a task with a fixed target. Pure functions from DataFrame to DataFrame.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from .resampling import (
    Resampled,
    percentile_interval,
    resampled_means,
    run_weights,
)
from .targets import Target, costs_to_target

Array = npt.NDArray[np.float64]

_RUN = ["task", "solver", "seed"]
_PAIR = ["task", "solver"]
_SOLVED_COLUMNS = ["solver", "n", "n_solved", "n_tasks", "share", "low", "high"]
# Costs that are measured from outside, also of solvers that count nothing.
_MEASURED = ("cpu_s", "wall_s")


def problems(
    runs: pd.DataFrame, traces: pd.DataFrame, targets: Sequence[Target], cost: str
) -> pd.DataFrame:
    """What each run spent until it stayed at each target.

    Skipped and missing runs were not tried and are left out; so is a solver on a task if a cost of
    its runs there is not counted. A run that failed has solved nothing.

    Parameters
    ----------
    runs, traces : DataFrame
        Of :class:`marginbench.reports.results.Results`; for an objective with the suboptimality of
        the checkpoints.
    targets : sequence of Target
    cost : str
        A column of ``traces``.

    Returns
    -------
    DataFrame
        Columns task, solver, seed, target (its place), value (infinite: never) and upper_bound
        (the value is only known to be at most this).
    """
    tried = runs[runs["status"] != "missing"]
    if cost not in _MEASURED:
        tried = tried[tried["instrumented"]]
    # Wide frames take most of the time of merging.
    tried = tried[[*_RUN, "status", "minimises", "reference_test_error", "reference_primal"]]
    values = {target.value for target in targets}
    states = traces.loc[traces["ok"], [*_RUN, "ok", cost, *sorted(values)]]
    parts = [
        costs_to_target(tried, states, target, cost).assign(target=place)
        for place, target in enumerate(targets)
    ]
    found = pd.concat(parts, ignore_index=True)
    unknown = found["value"].isna().groupby([found[name] for name in _PAIR]).transform("any")
    columns = [*_RUN, "target", "value", "upper_bound"]
    return found.loc[~unknown.astype(bool), columns].reset_index(drop=True)


def in_squares(problems: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The problems with costs in units of n², the entries of the kernel matrix of a task.

    A task of which n is not known has no problems.
    """
    size = runs.groupby("task")["n_train"].median()
    n = problems["task"].map(size)
    return problems.assign(value=problems["value"] / n**2)[n.notna()].reset_index(drop=True)


def data_profile(problems: pd.DataFrame) -> pd.DataFrame:
    """The share of problems that each solver solved within a cost (Moré and Wild 2009).

    The runs of a solver share the weight of their problem, so that each task with a target counts
    once, however many runs it has.

    Parameters
    ----------
    problems : DataFrame
        Of :func:`problems`.

    Returns
    -------
    DataFrame
        One row for each step of each curve: solver, cost (ascending) and share (after the step).
    """
    key = [problems[name] for name in (*_PAIR, "target")]
    weight = 1 / problems.groupby(key)["value"].transform("size")
    total = weight.groupby(problems["solver"]).transform("sum")
    return _steps(problems.assign(share=weight / total))


def solved(problems: pd.DataFrame, datasets: Mapping[str, str]) -> pd.DataFrame:
    """How many problems each solver solved at any cost, and how sure their share is.

    Parameters
    ----------
    problems : DataFrame
        Of :func:`problems`.
    datasets : mapping of str to str
        The dataset of each task.

    Returns
    -------
    DataFrame
        Columns solver, n (problems, one for each run), n_solved, n_tasks, share (each task with a
        target counts once), and low and high, the ends of the bootstrap interval of the share.
    """
    if problems.empty:
        return pd.DataFrame(columns=_SOLVED_COLUMNS)
    marked = problems.assign(hit=np.isfinite(problems["value"]).astype(float))
    # Targets of a run are not independent: a run is drawn with all of its targets.
    runs = marked.groupby(_RUN, sort=False)["hit"].agg(["mean", "size"]).reset_index()
    solvers = list(dict.fromkeys(runs["solver"]))
    tasks: dict[str, Resampled] = {
        str(task): _resampled_shares(mine, solvers)
        for task, mine in runs.groupby("task", sort=False)
    }
    low, high = percentile_interval(resampled_means(tasks, datasets, (len(solvers),)))
    of_task = runs.groupby(["solver", "task"], sort=False)["mean"].mean()
    counts = marked.groupby("solver", sort=False)["hit"].agg(["size", "sum"]).loc[solvers]
    return pd.DataFrame(
        {
            "solver": solvers,
            "n": counts["size"].to_numpy(),
            "n_solved": counts["sum"].to_numpy().astype(int),
            "n_tasks": of_task.groupby("solver", sort=False).size().loc[solvers].to_numpy(),
            "share": of_task.groupby("solver", sort=False).mean().loc[solvers].to_numpy(),
            "low": low,
            "high": high,
        }
    )


def medians(problems: pd.DataFrame) -> pd.DataFrame:
    """The median cost of each solver on each task, of the problems of one target.

    Returns
    -------
    DataFrame
        Columns task, solver, median (infinite: never) and n.
    """
    found = problems.groupby(_PAIR, sort=False)["value"].agg(["median", "size"]).reset_index()
    return found.set_axis([*_PAIR, "median", "n"], axis=1)


def performance_ratios(
    medians: pd.DataFrame, incomplete: Collection[tuple[str, str]] = ()
) -> pd.DataFrame:
    """The median cost of each solver on each task as a ratio to the best (Dolan and Moré 2002).

    Parameters
    ----------
    medians : DataFrame
        Of :func:`medians`.
    incomplete : collection of (str, str)
        Tasks and solvers of which a run failed or is missing: they solve nothing there.

    Returns
    -------
    DataFrame
        Columns task, solver and value (infinite: not solved).
    """
    pairs = zip(medians["task"], medians["solver"], strict=True)
    whole = np.array([pair not in incomplete for pair in pairs], dtype=bool)
    cost = medians["median"].where(whole, np.inf)
    best = cost.groupby(medians["task"]).transform("min")
    # Two that cost nothing are equally good, and nothing is a multiple of it.
    ratio = (cost / best.where(best > 0)).where(cost > 0, 1.0).where(np.isfinite(cost), np.inf)
    return medians[_PAIR].assign(value=ratio.fillna(np.inf))


def performance_profile(ratios: pd.DataFrame) -> pd.DataFrame:
    """The share of tasks that each solver solved within a ratio to the best of the task.

    Parameters
    ----------
    ratios : DataFrame
        Of :func:`performance_ratios`.

    Returns
    -------
    DataFrame
        As of :func:`data_profile`; the costs are ratios.
    """
    n = ratios.groupby("solver")["value"].transform("size")
    return _steps(ratios.assign(share=1 / n))


def _steps(weighted: pd.DataFrame) -> pd.DataFrame:
    """The sums of the shares of all finite values up to each value, for each solver."""
    order = {solver: place for place, solver in enumerate(dict.fromkeys(weighted["solver"]))}
    finite = weighted[np.isfinite(weighted["value"])]
    summed = finite.groupby(["solver", "value"])["share"].sum().reset_index()
    summed = summed.sort_values("solver", key=lambda names: names.map(order), kind="stable")
    share = summed.groupby("solver", sort=False)["share"].cumsum().clip(upper=1.0)
    found = pd.DataFrame({"solver": summed["solver"], "cost": summed["value"], "share": share})
    return found.reset_index(drop=True)


def _resampled_shares(runs: pd.DataFrame, solvers: Sequence[str]) -> Resampled:
    scores = {str(solver): group.to_numpy() for solver, group in runs.groupby("solver")["mean"]}

    def resampled(n: int, rng: np.random.Generator) -> Array:
        found = np.full((n, len(solvers)), np.nan)
        for place, solver in enumerate(solvers):
            if solver in scores:
                found[:, place] = run_weights(len(scores[solver]), n, rng) @ scores[solver]
        return found

    return resampled
