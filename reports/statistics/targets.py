"""Fixed targets, which no solver of the study sets, and what runs spend until they stay there.

Who is first to a target and at a budget; what share of the problems, tasks with a target, is solved
at which cost; and what independent restarts cost. Only solvers of which no run failed can be first,
and two solvers whose runs overlap are both. A cost that is only an upper bound may be anything
below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .. import formatting
from ..frames import RUN, by_solver, of_task
from .curves import steps
from .ranks import (
    RESAMPLES,
    generator,
    percentile_interval,
    resampled_means,
    run_weights,
)

Array = npt.NDArray[np.float64]

#: Why a solver has no cost on a task.
SKIPPED, NO_TARGET, NOT_COUNTED, FAILED = "skipped", "no target", "not counted", "failed"
# So that a margin added in floating point includes an equal error.
_ROUNDING = 1e-12
_PAIR = ["task", "solver"]
_EACH = ["target", "cost", *_PAIR]
_RUNNING_TIME = [
    *("task", "solver", "ert", "low", "high", "n", "n_reached", "censored"),
    *("lower_bound", "upper_bound"),
]
# Costs that are measured from outside, also of solvers that count nothing.
_MEASURED = ("cpu_s", "wall_s")


@dataclass(frozen=True)
class Target:
    """A value for runs to reach and keep: a test error or a suboptimality."""

    value: str
    # Test errors may exceed that of the task's reference optimum by so much, as a fraction of the
    # test points; a suboptimality may be so large.
    margin: float

    @property
    def name(self) -> str:
        """What it is called in frames: "test_error-0.01"."""
        return f"{self.value}-{self.margin:g}"

    def levels(self, runs: pd.DataFrame) -> pd.Series:
        """The largest value at which each run is at the target; NaN where there is none.

        A run of a fold has the optimum of its fold. One without a record has that of the others of
        its task, and a task without a reference optimum has no targets.
        """
        base = "reference_test_error" if self.value == "test_error" else "reference_primal"
        own = runs[base]
        optimum = own.fillna(own.groupby(runs["task"]).transform("median"))
        return optimum + self.margin if self.value == "test_error" else optimum * 0.0 + self.margin

    @property
    def words(self) -> str:
        """What to be within, in a few words: "1 % of the optimum"."""
        if self.value == "test_error" and self.margin == 0:
            return "the optimum's error"
        if self.value == "test_error":
            return f"{100 * self.margin:g} point of the optimum's error"
        return f"{100 * self.margin:g}{formatting.THIN}% of the optimum"


def costs_to_targets(
    runs: pd.DataFrame, traces: pd.DataFrame, targets: Sequence[Target], costs: Sequence[str]
) -> pd.DataFrame:
    """What each run spent until it stayed at each target, in each of several columns of traces.

    That is the cost of the first checkpoint from which on all checkpoints, and the end, are at or
    below the target. A run that passes the target and ends above it never stays.

    One row per run that was tried and target that it has: value (infinite where the run never
    stayed there or failed, NaN where it is not counted), first (the cost of the first checkpoint
    at the target, perhaps not the one from which it stays) and upper_bound (it is there from its
    first checkpoint on: when it got there is not known, only that it had by then).
    """
    identity = runs[RUN]
    values = list(dict.fromkeys(target.value for target in targets))
    reached = traces.loc[traces["ok"], [*RUN, *values, *costs]]
    states = identity.assign(run=np.arange(len(runs))).merge(reached, on=RUN)
    # The states of a run are together, in their order.
    run, index = states["run"].to_numpy(), np.arange(len(states))
    parts: list[pd.DataFrame] = []
    for target in targets:
        level = target.levels(runs).to_numpy(np.float64)
        tried = (~runs["status"].isin(["skipped", "missing"])).to_numpy() & ~np.isnan(level)
        if target.value == "suboptimality":
            tried &= runs["minimises"].to_numpy(bool)
        # An unknown value is above every target.
        at = states[target.value].to_numpy(np.float64) <= level[run] + _ROUNDING
        last_above = np.full(len(runs), -1)
        np.maximum.at(last_above, run[~at], index[~at])
        stays = index > last_above[run]
        for cost in costs:
            spent = states[cost].to_numpy(np.float64)
            value = _first(run[stays], spent[stays], len(runs))
            value[run[np.isnan(spent)]] = np.nan
            costs_of_runs = identity.assign(
                target=target.name,
                cost=cost,
                value=value,
                first=_first(run[at], spent[at], len(runs)),
                # Less than nothing cannot have been spent.
                upper_bound=(last_above < 0) & np.isfinite(value) & (value > 0),
            )
            parts.append(costs_of_runs[tried])
    return pd.concat(parts, ignore_index=True)


def cost_to_target(
    runs: pd.DataFrame, traces: pd.DataFrame, target: Target, cost: str
) -> pd.DataFrame:
    """The rows of :func:`costs_to_targets` of one target in one cost, without their names."""
    return costs_to_targets(runs, traces, [target], [cost])[[*RUN, "value", "first", "upper_bound"]]


def _first(run: npt.NDArray[np.int64], spent: Array, n: int) -> Array:
    """The cost of the first of the states of each of n runs; infinite where it has none."""
    with_state, first = np.unique(run, return_index=True)
    costs = np.full(n, np.inf)
    costs[with_state] = spent[first]
    return costs


def bounds_median(costs: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Whether the cost of a run, one of known values, makes the median of its group a bound.

    A bound below the median leaves the median what it is.
    """
    medians = costs.groupby([costs[name] for name in by])["value"].transform("median")
    return costs["upper_bound"].astype(bool) & (costs["value"] >= medians)


def over_runs(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """What the values of runs are together, for each combination of keys.

    ``n`` of them are known, ``least`` is what any may have cost, ``first`` the median cost of first
    touching a target, and with ``upper_bound`` the median is only known to be at most this.
    """
    number = values["value"].astype(np.float64)
    known = values.assign(value=number, first=values["first"].astype(np.float64))
    grouped = known.assign(
        reached=np.isfinite(number),
        unknown=number.isna(),
        least=number.mask(values["upper_bound"].astype(bool), 0.0),
        upper_bound=bounds_median(known, by),
    ).groupby(list(by))
    return grouped.agg(
        median=("value", "median"),
        low=("value", "min"),
        high=("value", "max"),
        least=("least", "min"),
        n=("value", "count"),
        n_reached=("reached", "sum"),
        n_unknown=("unknown", "sum"),
        first=("first", "median"),
        upper_bound=("upper_bound", "any"),
    )


# ---- who is first


def against_best(
    spent: pd.DataFrame,
    counts: pd.DataFrame,
    targets: Sequence[Target],
    costs: Sequence[str],
) -> pd.DataFrame:
    """What each solver spends on each task until it stays at a target, against the best.

    ``spent`` is of :func:`costs_to_targets`, ``counts`` of :func:`.summary.run_counts`. A solver
    competes if it has a cost and all of its runs ended as planned; it is first if not all of its
    runs are known to cost more than every run of the best. Ratios are to the best median.
    """
    per_solver = over_runs(spent, _EACH).drop(columns=["n", "first"])
    each = [(target.name, cost) for target in targets for cost in costs]
    table = pd.DataFrame(each, columns=["target", "cost"]).merge(counts, how="cross")
    table = table.rename(columns={"n_planned": "n"}).join(per_solver, on=_EACH)
    reasons = {
        SKIPPED: table["n_skipped"] == table["n"],
        FAILED: table["n_ok"] == 0,
        NO_TARGET: table["n_unknown"].isna(),
        NOT_COUNTED: table["n_unknown"] > 0,
    }
    table["absent"] = np.select(list(reasons.values()), list(reasons), default="").astype(object)
    has_cost = table["absent"] == ""
    table["competes"] = has_cost & (table["n_failed"] == 0) & (table["n_missing"] == 0)
    for name in ("median", "low", "high", "least"):
        table[name] = table[name].astype(np.float64).where(has_cost)
    table["upper_bound"] = has_cost & table["upper_bound"].eq(True)
    table["n_reached"] = table["n_reached"].where(has_cost, 0).astype(int)
    columns = [*_EACH, "n", "n_failed", "n_missing", "n_reached"]
    columns += ["absent", "competes", "median", "low", "high", "least", "upper_bound"]
    table = table[columns]
    eligible = table[table["competes"] & np.isfinite(table["median"])]
    problem = ["target", "cost", "task"]
    best = eligible.sort_values(["median", "upper_bound"], kind="stable").groupby(problem)
    of_best = table[problem].join(best[["median", "high", "upper_bound"]].first(), on=problem)
    ratios = {
        name: _multiples(table[column], of_best["median"])
        for name, column in (("ratio", "median"), ("ratio_low", "low"), ("ratio_high", "high"))
    }
    first = table.index.isin(eligible.index) & (table["least"] <= of_best["high"])
    best_is_bound = of_best["upper_bound"].eq(True)
    return table.assign(**ratios, best_is_bound=best_is_bound, first=first).drop(columns="least")


def _multiples(costs: pd.Series, best: pd.Series) -> pd.Series:
    """Costs as multiples of the best: two that cost nothing are equal, and NaN is of nothing."""
    return (costs / best.where(best > 0)).mask((costs == 0) & (best == 0), 1.0)


def leaders(
    runs: pd.DataFrame, traces: pd.DataFrame, cost: str, budgets: pd.DataFrame
) -> pd.DataFrame:
    """The solvers with the lowest median test error after a budget was spent.

    A run that ends before keeps its final error; a solver with a run without a checkpoint by then
    does not compete.
    """
    complete = runs.groupby(["task", "solver"])["ok"].all()
    rows = []
    for group in steps(traces, cost, ["test_error"]):
        if not complete[group.task, group.solver]:
            continue
        task_budgets = of_task(budgets, group.task)
        amounts = task_budgets["amount"].to_numpy(np.float64)
        errors = group.at(amounts)[:, 0]
        for budget, median in zip(task_budgets["budget"], np.median(errors, axis=0), strict=True):
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


# ---- profiles: what share of the problems is solved at which cost


def problems(spent: pd.DataFrame, runs: pd.DataFrame, cost: str) -> pd.DataFrame:
    """The costs of the runs that were tried and whose costs are known, as problems to solve.

    A solver is left out on a task if a cost of its runs there is not counted. A run that failed has
    solved nothing. ``spent`` is of :func:`costs_to_targets` in one cost.
    """
    counted = runs if cost in _MEASURED else runs[runs["instrumented"]]
    costs = spent.merge(counted[RUN], on=RUN)
    unknown = costs["value"].isna().groupby([costs[name] for name in _PAIR]).transform("any")
    columns = [*RUN, "target", "value", "upper_bound"]
    return costs.loc[~unknown.astype(bool), columns].reset_index(drop=True)


def in_squares(problems: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The problems with costs in units of n², the entries of a task's kernel matrix, of known n."""
    size = runs.groupby("task")["n_train"].median()
    n = problems["task"].map(size)
    return problems.assign(value=problems["value"] / n**2)[n.notna()].reset_index(drop=True)


def data_profile(problems: pd.DataFrame) -> pd.DataFrame:
    """The share of problems that each solver solved within a cost (Moré and Wild 2009).

    The runs of a solver share the weight of their problem, so that each task with a target counts
    once, however many runs it has.
    """
    key = [problems[name] for name in (*_PAIR, "target")]
    weight = 1 / problems.groupby(key)["value"].transform("size")
    total = weight.groupby(problems["solver"]).transform("sum")
    return _steps(problems.assign(share=weight / total))


def solved(problems: pd.DataFrame, datasets: Mapping[str, str]) -> pd.DataFrame:
    """How many problems each solver solved at any cost, and how sure their share is.

    Each task with a target counts once in it.
    """
    if problems.empty:
        return pd.DataFrame(columns=["solver", "n", "n_solved", "n_tasks", "share", "low", "high"])
    marked = problems.assign(hit=np.isfinite(problems["value"]))
    # Targets of a run are not independent: a run is drawn with all of its targets.
    runs = marked.groupby(RUN, sort=False)["hit"].mean().reset_index()
    solvers = list(dict.fromkeys(runs["solver"]))
    tasks = {
        str(task): partial(_drawn_shares, dict(iter(each.groupby("solver")["hit"])), solvers)
        for task, each in runs.groupby("task", sort=False)
    }
    low, high = percentile_interval(resampled_means(tasks, datasets, (len(solvers),)))
    shares = runs.groupby(["solver", "task"], sort=False)["hit"].mean().groupby("solver")
    counts = marked.groupby("solver", sort=False)["hit"].agg(n="size", n_solved="sum")
    table: pd.DataFrame = counts.assign(n_tasks=shares.size(), share=shares.mean()).loc[solvers]
    return table.reset_index().assign(low=low, high=high)


def _drawn_shares(
    scores: Mapping[str, pd.Series], solvers: Sequence[str], n: int, rng: np.random.Generator
) -> Array:
    shares = np.full((n, len(solvers)), np.nan)
    for index, solver in enumerate(solvers):
        if solver in scores:
            own = scores[solver].to_numpy()
            shares[:, index] = run_weights(len(own), n, rng) @ own
    return shares


def medians(problems: pd.DataFrame) -> pd.DataFrame:
    """The median cost of each solver on each task, of the problems of one target."""
    table = problems.groupby(_PAIR, sort=False)["value"].agg(["median", "size"]).reset_index()
    return table.set_axis([*_PAIR, "median", "n"], axis=1)


def performance_ratios(
    medians: pd.DataFrame, incomplete: Collection[tuple[str, str]] = ()
) -> pd.DataFrame:
    """The median cost of each solver on each task as a ratio to the best (Dolan and Moré 2002)."""
    pairs = zip(medians["task"], medians["solver"], strict=True)
    whole = np.array([pair not in incomplete for pair in pairs], dtype=bool)
    cost = medians["median"].where(whole, np.inf)
    best = cost.groupby(medians["task"]).transform("min")
    return medians[_PAIR].assign(value=_multiples(cost, best).fillna(np.inf))


def performance_profile(ratios: pd.DataFrame) -> pd.DataFrame:
    """The share of tasks that each solver solved within a ratio to the best of the task."""
    n = ratios.groupby("solver")["value"].transform("size")
    return _steps(ratios.assign(share=1 / n))


def _steps(weighted: pd.DataFrame) -> pd.DataFrame:
    """The sums of the shares of all finite values up to each value, for each solver."""
    order = {solver: index for index, solver in enumerate(dict.fromkeys(weighted["solver"]))}
    finite = weighted[np.isfinite(weighted["value"])]
    summed = finite.groupby(["solver", "value"])["share"].sum().reset_index()
    summed = summed.sort_values("solver", key=lambda names: names.map(order), kind="stable")
    share = summed.groupby("solver", sort=False)["share"].cumsum().clip(upper=1.0)
    curves = pd.DataFrame({"solver": summed["solver"], "cost": summed["value"], "share": share})
    return curves.reset_index(drop=True)


# ---- expected running time: what reaching a target costs, runs that do not reach it included


def expected_running_time(
    problems: pd.DataFrame, runs: pd.DataFrame, traces: pd.DataFrame, cost: str
) -> pd.DataFrame:
    """The cost of all runs of a solver on a task, divided by the number that reached the target.

    That is what independent restarts cost on average until one reaches it (Hansen et al. 2021,
    COCO). A run that reached it has spent its cost to the target, any other one all that it spent.
    Of a run that was killed only the part up to its last checkpoint is known, so that the sum is a
    lower bound. ``censored`` says how the runs that did not reach the target ended.
    """
    last = traces.groupby(RUN)[cost].max().rename("last").reset_index()
    ends = runs[[*RUN, "status", "ok", cost]].rename(columns={cost: "total"})
    spent = problems.merge(ends, on=RUN, how="left").merge(last, on=RUN, how="left")
    total = spent[["total", "last"]].max(axis="columns")
    reached = np.isfinite(spent["value"])
    spent = spent.assign(
        reached=reached,
        cost=spent["value"].where(reached, total.fillna(0.0)),
        partial=~reached & (~spent["ok"] | total.isna()),
    )
    rng = generator()
    rows: list[tuple[Any, ...]] = []
    for task, solver, group in by_solver(spent):
        costs, hits, n = group["cost"].to_numpy(), group["reached"].to_numpy(), len(group)
        interval: tuple[Any, Any] = (np.nan, np.nan)
        if n > 1:
            weights = run_weights(n, RESAMPLES, rng)
            interval = percentile_interval(_ratio(weights @ costs, weights @ hits))
        ert = float(_ratio(costs.sum(), hits.sum()))
        ended = in_words(Counter(group.loc[~group["reached"], "status"]))
        bounds = group["partial"].any(), group["upper_bound"].any()
        rows.append((task, solver, ert, *map(float, interval), n, hits.sum(), ended, *bounds))
    return pd.DataFrame(rows, columns=_RUNNING_TIME)


def _ratio(total: Any, number: Any) -> Array:
    """The cost for each success; infinite without one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(number > 0, total / number, np.inf)


def in_words(statuses: Counter[str]) -> str:
    """How often each status, the most frequent first: "2 budget, 1 timeout"."""
    ordered = sorted(statuses.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {status}" for status, count in ordered)
