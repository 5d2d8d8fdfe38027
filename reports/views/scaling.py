"""How time, evaluations and errors grow with the number of training points.

A family is a set of tasks that differ in nothing but the number n of training points, or in n and
in C = C1 / n with the same C1, the weight of the mean loss.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import analysis, described, formatting
from ..described import SvmTask
from ..drawing.figures import Axis, draw_medians
from ..formatting import slug, unused
from ..frames import SPREAD, medians, of_task, records
from ..measures import OF_SCALING
from ..results import Results
from ..tables import NONE, Cell, Column, Table, framed
from ..view import Figure, Section, not_shown, with_legend

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


class Slope(NamedTuple):
    """The exponent b of value = a n^b, its 95 % interval, and the number of sizes fitted.

    The degrees of freedom, two less, are those of the t distribution of the interval.
    """

    slope: float = math.nan
    low: float = math.nan
    high: float = math.nan
    degrees_of_freedom: float = math.nan
    n_sizes: int = 0


def fit_slope(sizes: Sequence[float], values: Sequence[float]) -> Slope | None:
    """Least-squares slope of log(value) against log(size), one value for each size.

    Runs of one size are repeats on the same training points, so they are not independent, and more
    of them do not make the slope more certain. Their median stands for the size, and the interval
    rests on how far the medians lie from the line. None with fewer than three different sizes.
    """
    middle = pd.Series(values, dtype=np.float64).groupby(np.asarray(sizes, np.float64)).median()
    if len(middle) < FEWEST_SIZES:
        return None
    # Imported here: it takes longer than a report that has no slopes.
    from scipy import stats

    line = stats.linregress(np.log(middle.index), np.log(middle.to_numpy()))
    freedom = len(middle) - 2
    half = float(stats.t.ppf(0.5 + _LEVEL / 2, freedom)) * float(line.stderr)
    slope = float(line.slope)
    return Slope(slope, slope - half, slope + half, freedom, len(middle))


def families(tasks: Iterable[SvmTask], runs: pd.DataFrame) -> pd.DataFrame:
    """The families of a study's tasks, with at least three numbers of training points each.

    They have the same dataset, kernel, C or C n, bias, folds, tuning and dataset parameters but for
    ``n_train``, and the same test points as far as the generator keeps them. A task may be in one
    by its C and in another by its C n. Columns family (counted from 0 in the order of the study),
    task, n, and total, the C n that the tasks share, NaN where they share C; ascending in n.
    """
    groups: dict[str, list[dict[str, object]]] = {}
    for task in tasks:
        sizes = of_task(runs, task.label)["n_train"].dropna()
        if sizes.empty:
            continue
        n = float(sizes.iloc[0])
        total = float(f"{task.C * n:.{_DIGITS}g}")
        for shared in ({"C": task.C}, {"C n": total}):
            row = {"task": task.label, "n": n, "total": shared.get("C n", math.nan)}
            groups.setdefault(_all_but_size(task, shared), []).append(row)
    frames = [pd.DataFrame(rows) for rows in groups.values()]
    frames = [frame for frame in frames if frame["n"].nunique() >= FEWEST_SIZES]
    parts = [
        frame.assign(family=index).sort_values("n", kind="stable")
        for index, frame in enumerate(frames)
    ]
    if not parts:
        return pd.DataFrame({"family": pd.Series(dtype=int), "task": [], "n": [], "total": []})
    return pd.concat(parts, ignore_index=True)[["family", "task", "n", "total"]]


def _all_but_size(task: SvmTask, shared: Mapping[str, float]) -> str:
    described = task.model_dump(include={"dataset", "dataset_params", "kernel", "folds", "tune"})
    described["dataset_params"].pop(_SIZE, None)
    described |= {"bias": task.fit_intercept, **shared}
    return json.dumps(described, sort_keys=True, default=repr)


def scaling_runs(runs: pd.DataFrame, grouped: pd.DataFrame) -> pd.DataFrame:
    """The runs of the families, one row each.

    Columns family, task, n, solver, seed, status, ok and :data:`MEASURES`.
    """
    per_iteration = runs["cpu_s"] / runs["n_iter"].where(runs["n_iter"] > 0)
    runs = runs.assign(cpu_s_per_iteration=per_iteration)
    joined = grouped[["family", "task", "n"]].merge(runs, on="task", how="inner")
    return joined[["family", "task", "n", "solver", "seed", "status", "ok", *MEASURES]]


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
    over the runs that did end is not the slope of those that did not. A row for each family, solver
    and measure of :data:`FITTED`: slope, low, high, degrees_of_freedom (NaN where there are too few
    sizes), n_sizes, smallest, largest (sizes with a value), n_runs (fitted) and left_out.
    """
    rows = []
    for (family, solver), group in members.groupby(["family", "solver"], sort=False):
        left_out = int((~group["ok"] & (group["status"] != "skipped")).sum())
        for measure in FITTED:
            # A clock too coarse for a run, or a method that spends nothing, has no logarithm.
            used = group[group["ok"] & (group[measure] > 0)]
            sizes = used["n"]
            fitted = fit_slope(sizes.tolist(), used[measure].tolist()) or Slope()
            fitted = fitted._replace(n_sizes=sizes.nunique())
            about = (family, solver, measure)
            rows.append((*about, *fitted, sizes.min(), sizes.max(), len(used), left_out))
    columns = ["family", "solver", "measure", *Slope._fields]
    return pd.DataFrame(rows, columns=[*columns, "smallest", "largest", "n_runs", "left_out"])


_DRAWN = ("cpu_s", "evaluations", "test_error", "train_error")
_POINTS = Axis("training points", padding=(0.03, 0.03))


def scaling_section(results: Results) -> Iterator[Section]:
    """Families of tasks that differ in their size: medians against it, and slopes.

    Where tasks differ only in their number of training points, or share C n.
    """
    members = families(results.tasks_of(SvmTask), results.runs)
    shown, names = [], list[str]()
    described = {task.label: task for task in results.tasks_of(SvmTask)}
    for _, tasks in members.groupby("family", sort=False):
        first = described[tasks["task"].iloc[0]]
        names.append(unused(slug(first.dataset), names))
        shown.append(_family(results, f"scaling-{names[-1]}", tasks, first))
    if shown:
        marks = f"Lines join medians over the runs at each n, bands are {SPREAD}."
        data = {"marks": marks, "families": shown}
        yield Section("scaling", "Scaling", "scaling.html", data)


def _family(
    results: Results, anchor: str, tasks: pd.DataFrame, first: SvmTask
) -> tuple[str, str, list[Figure], Table]:
    """The anchor and title of a family, its figures and table."""
    members = scaling_runs(results.runs, tasks)
    medians = scaling_medians(members).rename(columns={"n": "x"})
    total = float(tasks["total"].iloc[0])
    words = described.kernel_words(first, None if math.isnan(total) else total)
    label = ", ".join([first.dataset, *words])
    figures = []
    for name in _DRAWN:
        measure, panel = analysis.measures(results)[name], medians[medians["measure"] == name]
        title = f"{described.capitalised(measure.words)} against {_POINTS.words}"
        drawn = draw_medians(panel, measure, _POINTS, analysis.styles(results), label)
        note = not_shown(results, medians["solver"], panel["solver"])
        figures.append(Figure(f"{anchor}-{name}", title, drawn, note))
    return anchor, label, with_legend(results, figures), _table(results, label, members, anchor)


def _table(results: Results, label: str, members: pd.DataFrame, name: str) -> Table:
    fits, measures = slopes(members), {**analysis.measures(results), **OF_SCALING}
    fitted = {(row["solver"], row["measure"]): row for row in records(fits)}

    def slope(name: str, row: Mapping[str, Any]) -> Cell:
        return slope_cell(fitted[row["solver"], name])

    columns = [
        Column("Solver", of="solver"),
        Column("Runs", "number", of=_runs_cell),
        Column(
            "Sizes n", "number",
            of=lambda row: _sizes_cell(fitted[row["solver"], "cpu_s"]),
        ),
        *(
            Column(
                f"Slope of {measures[name].words}", "number", of=partial(slope, name)
            )
            for name in FITTED
        ),
    ]  # fmt: skip
    tried = members[members["status"] != "skipped"].groupby("solver", sort=False)["ok"]
    return framed(
        f"Slopes on {label}",
        tried.agg(["sum", "size"]).reset_index(),
        columns,
        caption="Exponents of n with their 95 % intervals from the t distribution.",
        numbers=fits,
        name=name,
    )


def _runs_cell(row: Mapping[str, Any]) -> Cell:
    return Cell(f"{row['sum']} / {row['size']}", incomplete=row["sum"] < row["size"])


def _sizes_cell(row: Mapping[str, Any]) -> Cell:
    if not row["n_sizes"]:
        return NONE
    ends = [formatting.integer(row[name]) for name in ("smallest", "largest")]
    words = ends[0] if row["n_sizes"] == 1 else f"{ends[0]} to {ends[1]}"
    return Cell(words, note=formatting.plural(row["n_sizes"], "size"), number=row["n_sizes"])


def slope_cell(row: Mapping[str, Any]) -> Cell:
    """The cell of one row of :func:`marginbench.reports.views.scaling.slopes`."""
    if math.isnan(row["slope"]):
        n = formatting.plural(int(row["n_sizes"]), "size")
        return Cell(f"{n}, {FEWEST_SIZES} needed", absent=True)
    return Cell(
        value=formatting.decimals(row["slope"], 2),
        range=" to ".join(formatting.decimals(row[name], 2) for name in ("low", "high")),
        note=f"{row['degrees_of_freedom']:.0f}{formatting.FIXED}d.f.",
        number=row["slope"],
    )
