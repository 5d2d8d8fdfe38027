"""How cost and error grow with the number of training points: pure functions on DataFrames.

A family is a set of tasks that differ in nothing but the number n of training points, or in n and
in C = C1 / n with the same C1, the weight of the mean loss.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..described import SvmTask
from ..frames import medians, of_task

#: Sizes that a family, and a fitted slope, must have.
FEWEST_SIZES = 3
#: What is shown against the number of training points (columns of :func:`scaling_runs`).
MEASURES = ("cpu_s", "evaluations", "test_error", "train_error", "cpu_s_per_iteration", "n_iter")
#: What a slope is fitted to.
FITTED = ("cpu_s", "cpu_s_per_iteration", "n_iter", "evaluations")

# The dataset parameter that only sets the number of training points.
_SIZE = "n_train"
# Study files give C = C1 / n in so many digits at least.
_DIGITS = 5
_LEVEL = 0.95


@dataclass(frozen=True)
class Slope:
    """The exponent b of value = a n^b, and its 95 % confidence interval.

    Attributes
    ----------
    slope, low, high : float
    n_sizes : int
        Numbers of points that were fitted.
    degrees_of_freedom : int
        Of the t distribution of the interval: ``n_sizes`` - 2.
    """

    slope: float
    low: float
    high: float
    n_sizes: int
    degrees_of_freedom: int


def fit_slope(sizes: Sequence[float], values: Sequence[float]) -> Slope | None:
    """Least-squares slope of log(value) against log(size), one value for each size.

    Runs of one size are repeats on the same training points: whatever sets that size apart from the
    others sets all of them apart, so they are not independent and more of them do not make the
    slope more certain. Their median stands for the size, and the interval rests on how far the
    medians lie from the line.

    None with fewer than three different sizes, which leave nothing to judge the line by.
    """
    frame = pd.DataFrame({"size": sizes, "value": values}, dtype=np.float64)
    if not bool((np.isfinite(frame) & (frame > 0)).all(axis=None)):
        raise ValueError("sizes and values must be positive and finite")
    middle = frame.groupby("size")["value"].median()
    if len(middle) < FEWEST_SIZES:
        return None
    # Imported here: it takes longer than a report that has no slopes.
    from scipy import stats

    line = stats.linregress(np.log(middle.index), np.log(middle.to_numpy()))
    freedom = len(middle) - 2
    half = float(stats.t.ppf(0.5 + _LEVEL / 2, freedom)) * float(line.stderr)
    slope = float(line.slope)
    return Slope(slope, slope - half, slope + half, len(middle), freedom)


def families(tasks: Iterable[SvmTask], runs: pd.DataFrame) -> pd.DataFrame:
    """The families of a study's tasks, with at least three numbers of training points each.

    The tasks of a family have the same dataset, kernel, C or C n, bias and dataset parameters but
    for ``n_train``, and the same test points as far as the generator keeps them. A task may be in
    one family by its C and in another by its C n.

    Columns family (counted from 0 in the order of the study), task, n, and total, the C n that the
    tasks share, NaN where they share C; ascending in n.
    """
    groups: dict[str, list[dict[str, object]]] = {}
    for task in tasks:
        known = of_task(runs, task.label)["n_train"].dropna()
        if known.empty:
            continue
        n = float(known.iloc[0])
        total = float(f"{task.C * n:.{_DIGITS}g}")
        for shared in ({"C": task.C}, {"C n": total}):
            row = {"task": task.label, "n": n, "total": shared.get("C n", math.nan)}
            groups.setdefault(_all_but_size(task, shared), []).append(row)
    frames = [pd.DataFrame(rows) for rows in groups.values()]
    frames = [frame for frame in frames if frame["n"].nunique() >= FEWEST_SIZES]
    parts = [
        frame.assign(family=place).sort_values("n", kind="stable")
        for place, frame in enumerate(frames)
    ]
    if not parts:
        return pd.DataFrame({"family": pd.Series(dtype=int), "task": [], "n": [], "total": []})
    return pd.concat(parts, ignore_index=True)[["family", "task", "n", "total"]]


def _all_but_size(task: SvmTask, shared: Mapping[str, float]) -> str:
    described = task.model_dump(include={"dataset", "dataset_params", "kernel"})
    described["dataset_params"].pop(_SIZE, None)
    described |= {"bias": task.fit_intercept, **shared}
    return json.dumps(described, sort_keys=True, default=repr)


def scaling_runs(runs: pd.DataFrame, grouped: pd.DataFrame) -> pd.DataFrame:
    """The runs of the families, one row each.

    Columns family, task, n, solver, seed, status, ok and :data:`MEASURES`.
    """
    per_iteration = runs["cpu_s"] / runs["n_iter"].where(runs["n_iter"] > 0)
    runs = runs.assign(cpu_s_per_iteration=per_iteration)
    found = grouped[["family", "task", "n"]].merge(runs, on="task", how="inner")
    return found[["family", "task", "n", "solver", "seed", "status", "ok", *MEASURES]]


def scaling_medians(members: pd.DataFrame) -> pd.DataFrame:
    """Median and range over seeds of each measure, by solver and number of points.

    Columns family, solver, n, measure, median, low, high, n_runs; no row where no run has a value.
    """
    keys = ["family", "solver", "n", "measure"]
    long = members[members["ok"]].melt(
        id_vars=["family", "solver", "n"], value_vars=list(MEASURES), var_name="measure"
    )
    table = medians(long, keys, "value")
    return table.sort_values(["family", "n"], kind="stable").reset_index(drop=True)


def slopes(members: pd.DataFrame) -> pd.DataFrame:
    """The slopes of each family and solver: see :func:`fit_slope`.

    Runs that failed are left out, whatever they had spent; ``left_out`` counts them, as a slope
    over the runs that did end is not the slope of those that did not.

    A row for each family, solver and measure of :data:`FITTED`, with the columns slope, low, high,
    degrees_of_freedom (NaN where there are too few sizes), n_sizes, smallest, largest (sizes with a
    value), n_runs (fitted) and left_out (failed or skipped runs).
    """
    rows = []
    for (family, solver), group in members.groupby(["family", "solver"], sort=False):
        for measure in FITTED:
            # A clock too coarse for a run, or a method that spends nothing, has no logarithm.
            used = group[group["ok"] & (group[measure] > 0)]
            fitted = fit_slope(used["n"].tolist(), used[measure].tolist())
            rows.append(
                {
                    "family": family,
                    "solver": solver,
                    "measure": measure,
                    "slope": math.nan if fitted is None else fitted.slope,
                    "low": math.nan if fitted is None else fitted.low,
                    "high": math.nan if fitted is None else fitted.high,
                    "degrees_of_freedom": (
                        math.nan if fitted is None else fitted.degrees_of_freedom
                    ),
                    "n_sizes": used["n"].nunique(),
                    "smallest": used["n"].min(),
                    "largest": used["n"].max(),
                    "n_runs": len(used),
                    "left_out": int((~group["ok"]).sum()),
                }
            )
    return pd.DataFrame(rows, columns=_SLOPE_COLUMNS)


_SLOPE_COLUMNS = [
    *("family", "solver", "measure", "slope", "low", "high", "degrees_of_freedom"),
    *("n_sizes", "smallest", "largest", "n_runs", "left_out"),
]


def left_out(members: pd.DataFrame) -> pd.DataFrame:
    """The runs of the families that have no result, by solver, size and status.

    Columns family, solver, n, status, count, n_planned (of this solver and size).
    """
    keys = ["family", "solver", "n"]
    planned = members.groupby(keys, sort=False).size()
    found = members[~members["ok"]].groupby([*keys, "status"], sort=False).size()
    rows = [
        dict(zip([*keys, "status"], key, strict=True))
        | {"count": int(count), "n_planned": int(planned[key[:3]])}
        for key, count in found.items()
        if isinstance(key, tuple)
    ]
    return pd.DataFrame(rows, columns=[*keys, "status", "count", "n_planned"])
