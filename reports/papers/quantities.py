"""Measured quantities: one number for each run of a solver on a task, and what is made of them.

The vocabulary of ``studies/published``: a row names a measure, and whether its value, its ratio or
difference to another one, or its slope over tasks of several sizes is meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.typing import SeriesGroupBy
from scipy import stats

from ...harness.results.journal import FOLDER, segments_in
from .. import analysis
from ..described import CellTask
from ..frames import first_known, json_object, of_task
from ..measures import LATE_EPOCHS, late_spreads
from ..results import Results, load_results
from ..statistics import curves, summary
from ..statistics.targets import Target, cost_to_target
from ..views import scaling
from .published import UNITS, Row

_LEVEL = 0.95
#: Epochs at the end of a run over which what happens in them is averaged.
LAST_EPOCHS = 5
#: The values of a quantity by seed.
Values = pd.Series


@dataclass(frozen=True)
class Estimate:
    """A measured quantity with its 95 % interval.

    Of several seeds the mean (of ratios the geometric one) and the interval of Student's t; where a
    value is infinite, the median and the range, and for a claim about every run the mean and the
    range. One run of a solver that draws nothing is its own interval; of one that draws, the
    interval is everything.
    """

    value: float
    low: float
    high: float
    n: int  # seeds, or sizes of a slope
    versions: tuple[str, ...] = ()  # of the solvers' code
    failed: int = 0  # runs that did not end as planned, and have no value


class Unmeasured(Exception):
    """Why a quantity has no value."""


@dataclass(frozen=True)
class Part:
    """The runs of a solver on a task in one results folder."""

    results: Results
    task: str
    solver: str

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Those that ended as planned, by seed."""
        results = self.results
        runs = analysis.solved(results).runs if results.kind == "feasibility" else results.runs
        runs = of_task(runs, self.task, self.solver)
        return runs[runs["ok"]].set_axis(runs.loc[runs["ok"], "seed"].to_numpy())

    @property
    def failed(self) -> int:
        """How many did not, of those that took place."""
        ended = of_task(self.results.runs, self.task, self.solver)
        return int((~ended["ok"] & ~ended["status"].isin(["missing", "skipped"])).sum())

    @cached_property
    def traces(self) -> pd.DataFrame:
        """Their checkpoints."""
        checkpoints = of_task(analysis.traces(self.results), self.task, self.solver)
        return checkpoints[checkpoints["ok"]]

    @property
    def draws(self) -> bool:
        """Whether other seeds give other results."""
        (solver,) = (each for each in self.results.study.solvers if each.label == self.solver)
        return not solver.deterministic

    def number(self, column: str) -> float:
        """What all runs of the task share, such as the number of its training points."""
        value = first_known(self.runs[column])
        return math.nan if value is None else value


def _pass(part: Part) -> float:
    """Evaluations of the kernel for all pairs of training points."""
    return part.number("n_train") ** 2


def _error_at(part: Part, column: str, limit: float) -> Values:
    """The test error of the last checkpoint at which a count is at most so large."""
    reached = part.traces[part.traces[column] <= limit * (1 + 1e-9)]
    return reached.groupby("seed")["test_error"].last()


def _error_near(part: Part, epochs: float) -> Values:
    """The test error of the checkpoint that is nearest to the end of an epoch."""
    far = (part.traces["n_iter"] - epochs * part.number("n_train")).abs()
    nearest = far.groupby(part.traces["seed"]).idxmin()
    return part.traces.loc[nearest].set_index("seed")["test_error"]


def _until(part: Part, value: str, margin: float, cost: str) -> Values:
    """What runs spend until they stay within a margin of the optimum; infinite: they do not."""
    # Traces of the analysis have the suboptimality of each checkpoint.
    costs = cost_to_target(part.runs, part.traces, Target(value, margin), cost)
    return costs.set_index("seed")["value"]


def _until_risk(part: Part, at: float, cost: str) -> Values:
    """For an absolute margin of J = lambda/2 ||w||^2 + mean loss, relative to the optimum."""
    unit = part.number("C") * part.number("n_train")
    return _until(part, "suboptimality", at * unit / part.number("reference_primal"), cost)


def _noted(part: Part, column: str) -> SeriesGroupBy[Any, Any]:
    """What is noted after each epoch of a run, by seed."""
    epochs = of_task(analysis.epochs(part.results), part.task, part.solver)
    return epochs.dropna(subset=column).groupby("seed")[column]


def _largest_fall(values: pd.Series) -> float:
    """The largest fall of an objective from one epoch to a later one, relative to its range."""
    spread = float(values.max() - values.min())
    return float((values.cummax() - values).max() / spread) if spread else 0.0


def _predicted(part: Part, column: str) -> Values:
    """What Lemma 2 of BSCA18 predicts for the task, for each run."""
    fractions = curves.predicted_fractions(of_task(part.results.runs, part.task))
    value = float(fractions[column].iloc[0]) if len(fractions) else math.nan
    return pd.Series(value, index=part.runs.index)


def _gaps(part: Part) -> pd.DataFrame:
    gaps = of_task(curves.bundle_gaps(part.results.runs), part.task, part.solver)
    return gaps[gaps["gamma"] > 0]


def _gap_slope(part: Part) -> Values:
    """The slope of log gamma_t over log t."""
    slopes = curves.gap_slopes(_gaps(part))
    return pd.Series(slopes["slope"].to_numpy(), index=range(len(slopes)), dtype=float)


def _straightness(part: Part) -> Values:
    """How much straighter log gamma_t is over t than over log t: a difference of two R^2."""
    gaps = _gaps(part)
    gaps = gaps[gaps["n_iter"] >= curves.FIRST_OF_SLOPE]
    if len(gaps) < 5:
        return pd.Series(dtype=float)
    logs = np.log(gaps["gamma"])
    linear = float(np.corrcoef(gaps["n_iter"], logs)[0, 1]) ** 2
    power = float(np.corrcoef(np.log(gaps["n_iter"]), logs)[0, 1]) ** 2
    return pd.Series({0: linear - power})


def _early_acceleration(part: Part) -> Values:
    """How much more log gamma_t falls in one of iterations 5 to 10 than in one of 1 to 5."""
    logs = _gaps(part).set_index("n_iter")["gamma"].map(math.log)
    parts = (logs.loc[1:5], logs.loc[5:10])
    if min(map(len, parts)) < 5:
        return pd.Series(dtype=float)
    first, second = (np.polyfit(each.index, each, 1)[0] for each in parts)
    return pd.Series({0: first - second})


def _residual(part: Part) -> Values:
    """The largest residual times t / sqrt(2 log n) of each run; a theorem of MPFP14 says 1."""
    columns = _columns(part.results)
    return part.traces.groupby("seed")[["task", "solver", "n_iter", "phi_lo", "phi_up"]].apply(
        lambda trace: summary.gap_ratio(trace, columns)[0]
    )


def _whole_error(runs: pd.DataFrame) -> Values:
    """The error on the training and the test points together."""
    wrong = runs["n_train"] * runs["train_error"] + runs["n_test"] * runs["test_error"]
    return wrong / (runs["n_train"] + runs["n_test"])


def _column(part: Part, at: float, *, name: str) -> Values:
    values = part.runs[name].astype(float)
    # A method that ended at a limit would have needed nobody knows how much.
    costly = name in _COSTS and "solved" in part.runs
    return values.where(part.runs["solved"], math.inf) if costly else values


_COLUMNS = (
    *("test_error", "train_error", "n_iter", "cpu_s", "wall_s", "evaluations", "matvecs"),
    *("n_support", "solved", "n_train", "n_test", "n_features", "reference_nu", "C"),
)

# What a run without a certificate of feasibility has no end of.
_COSTS = frozenset({"n_iter", "cpu_s", "wall_s", "evaluations", "matvecs"})

#: The measures: of the runs of a solver on a task, and the number ``at``, one value by seed.
MEASURES: Mapping[str, Callable[[Part, float], Values]] = {
    **{name: partial(_column, name=name) for name in _COLUMNS},
    "accuracy": lambda part, at: 1 - part.runs["test_error"],
    "passes": lambda part, at: part.runs["evaluations"] / _pass(part),
    "primal_last": lambda part, at: part.runs["primal"],
    "kernel_gamma": lambda part, at: part.runs["kernel"].map(
        lambda text: json_object(text)["gamma"]
    ),
    "error_at_epoch": _error_near,
    "error_at_iteration": lambda part, at: _error_at(part, "n_iter", at),
    "error_at_pass": lambda part, at: _error_at(part, "evaluations", at * _pass(part)),
    "late_spread": lambda part, at: late_spreads(part.runs, part.traces),
    "evals_to_error": lambda part, at: _until(part, "test_error", at, "evaluations"),
    "seconds_to_error": lambda part, at: _until(part, "test_error", at, "cpu_s"),
    "epochs_to_error": lambda part, at: (
        _until(part, "test_error", at, "n_iter") / part.number("n_train")
    ),
    "iterations_to_risk": lambda part, at: _until_risk(part, at, "n_iter"),
    "seconds_to_risk": lambda part, at: _until_risk(part, at, "cpu_s"),
    "late_primal_spread": lambda part, at: part.traces.groupby("seed")["primal"].apply(
        lambda each: each.tail(LATE_EPOCHS).max() / each.tail(LATE_EPOCHS).min() - 1
    ),
    "whole_error": lambda part, at: _whole_error(part.runs),
    "merge_fraction": lambda part, at: _noted(part, "maintenance_fraction").apply(
        lambda each: each.tail(LAST_EPOCHS).mean()
    ),
    "merge_s": lambda part, at: _noted(part, "maintenance_seconds").sum(),
    "merge_time_share": lambda part, at: (
        _noted(part, "maintenance_seconds").sum() / _noted(part, "seconds").sum()
    ),
    "predicted_primal": lambda part, at: _predicted(part, "primal_steps"),
    "predicted_dual": lambda part, at: _predicted(part, "dual_steps"),
    "primal_rise": lambda part, at: _noted(part, "primal").apply(
        lambda each: each.iloc[-1] / each.min() - 1
    ),
    "dual_fall": lambda part, at: _noted(part, "dual_mixed").apply(_largest_fall),
    "seconds_per_iteration": lambda part, at: part.runs["cpu_s"] / part.runs["n_iter"],
    "gap_slope": lambda part, at: _gap_slope(part),
    "gap_straightness": lambda part, at: _straightness(part),
    "early_acceleration": lambda part, at: _early_acceleration(part),
    "residual_bound": lambda part, at: _residual(part),
    "error_drop": lambda part, at: (
        _error_at(part, "evaluations", at * _pass(part)) - part.runs["test_error"]
    ),
}


def measured(row: Row, labels: Mapping[tuple[str, str], tuple[str, str]], folder: Path) -> Estimate:
    """The quantity of a row, in its unit, from the records of one results folder.

    ``labels`` are those in the study, by the paper's words for tasks and solvers. Unmeasured if
    there are no records, or what runs did gives no value.
    """
    files = [folder / "study.json", *segments_in(folder / FOLDER)]
    results = _results(folder, *(path.stat().st_mtime_ns for path in files if path.exists()))
    parts = [Part(results, *labels[side]) for side in row.sides]
    found = _slope(row, parts) if row.by == "slope" else _compared(row, parts[0], parts[-1])
    value, low, high = (UNITS[row.unit] * each for each in (found.value, found.low, found.high))
    versions = dict.fromkeys(
        f"{part.solver} {version}" for part in parts for version in part.runs["version"]
    )
    failed = sum(part.failed for part in parts)
    return Estimate(value, low, high, found.n, tuple(versions), failed)


def _compared(row: Row, part: Part, other: Part) -> Estimate:
    """The value of one side, or its ratio or difference to the other."""
    values = _values(part, row.measure, row.at)
    if row.against is None:
        return _estimate(values, part.draws, every=row.every)
    against = row.against
    at = row.at if against.at is None else against.at
    second = _values(other, against.measure or row.measure, at)
    first, second = _paired(values, second, part.draws and other.draws)
    draws = part.draws or other.draws
    if row.by == "difference":
        return _estimate(first - second, draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(first.to_numpy(float)) - np.log(second.to_numpy(float))
    mean = _estimate(pd.Series(logs), draws)
    value, low, high = (float(np.exp(each)) for each in (mean.value, mean.low, mean.high))
    return Estimate(value, low, high, mean.n)


@cache
def _results(folder: Path, *changed: int) -> Results:
    return load_results(folder)


def _values(part: Part, measure: str, at: float | None) -> Values:
    """A measure by seed."""
    task_runs = of_task(part.results.runs, part.task, part.solver)
    if task_runs.empty:
        raise Unmeasured(f"{part.solver} on {part.task} has not been run")
    if not task_runs["ok"].any():
        ended = ", ".join(dict.fromkeys(task_runs["status"]))
        reason = next(filter(None, task_runs["reason"]), "")
        raise Unmeasured(f"{part.solver} on {part.task}: {ended} ({reason})")
    try:
        values = MEASURES[measure](part, math.nan if at is None else at)
    except KeyError:
        raise Unmeasured(f"the records of {part.solver} have no {measure}") from None
    values = values.dropna()
    if values.empty:
        raise Unmeasured(f"no run of {part.solver} on {part.task} has a value of {measure}")
    return values


def _paired(first: Values, second: Values, by_seed: bool) -> tuple[Values, Values]:
    """Two sides by seed; the only run of a deterministic solver pairs with each of the other's."""
    if not by_seed and len(first) == 1:
        first = pd.Series(first.iloc[0], index=second.index)
    elif not by_seed and len(second) == 1:
        second = pd.Series(second.iloc[0], index=first.index)
    common = first.index.intersection(second.index)
    if common.empty:
        raise Unmeasured("no seed has runs of both sides")
    return first[common], second[common]


def _estimate(values: Values, draws: bool, *, every: bool = False) -> Estimate:
    """The mean and its interval, or the range of every value."""
    numbers = values.to_numpy(float)
    n = len(numbers)
    if np.isnan(numbers).all():
        raise Unmeasured("neither side reached what is asked for")
    if np.isnan(numbers).any() or (n == 1 and draws):
        # Where neither side got there, any ratio is possible; so it is for another seed.
        return Estimate(_median(numbers), -math.inf, math.inf, n)
    if every or not np.isfinite(numbers).all():
        value = float(numbers.mean()) if np.isfinite(numbers).all() else _median(numbers)
        return Estimate(value, numbers.min(), numbers.max(), n)
    mean, half = float(numbers.mean()), 0.0
    if n > 1:
        half = float(stats.t.ppf(0.5 + _LEVEL / 2, n - 1) * numbers.std(ddof=1) / math.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)


def _median(numbers: NDArray[np.float64]) -> float:
    """The median of what is known; of the two infinities in the middle the lower one."""
    present = np.sort(numbers[~np.isnan(numbers)])
    low, high = present[(len(present) - 1) // 2], present[len(present) // 2]
    return float(low if math.isinf(low) else (low + high) / 2)


def _slope(row: Row, parts: list[Part]) -> Estimate:
    """The exponent of a measure's growth with the number of training points, or columns."""
    sizes, values = [], []
    for part in parts:
        of_part = _values(part, row.measure, row.at)
        size = _columns(part.results).get(part.task) or part.number("n_train")
        sizes += [float(size)] * len(of_part)
        values += [*of_part]
    fitted = scaling.fit_slope(sizes, values)
    if fitted is None:
        raise Unmeasured("a slope needs three sizes")
    return Estimate(fitted.slope, fitted.low, fitted.high, fitted.n_sizes)


def _columns(results: Results) -> dict[str, int]:
    """The number of columns of each cell of feasibility problems."""
    return {cell.label: cell.n for cell in results.tasks_of(CellTask)}
