"""Grids of C and kernel parameters: the error at every point, and the best point by validation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .. import analysis, formatting
from ..analysis import once
from ..described import SYMBOLS, SvmTask, value_text
from ..formatting import plural, slug, unused
from ..frames import RUN, is_number, of_task, records
from ..results import Results
from ..tables import NONE, Cell, Column, Table, framed, matrix
from ..view import Section

# Shades of a cell: up to these ratios to the lowest error of its solver.
_SHADES = (1.0, 1.1, 1.3, 1.7, 2.5)
_VALIDATED = (
    "Errors are of validation points: of folds of the training part, or of points that tuning held "
    "out. The best point of each solver is bold."
)
_TESTED = (
    "Errors are of test points. No point is called the best: chosen on test points it would look "
    "better than it is. With folds or tune in the study file each task has validation errors."
)


def grid_section(results: Results) -> Iterator[Section]:
    """The error of each solver at each point of a grid, where tasks differ only in parameters."""
    all_points = grids(results)
    if all_points.empty:
        return
    names: list[str] = []
    tables = []
    # Solvers with other parameters have a table of their own.
    parameters = all_points["point"].map(tuple)
    for (title, _), points in all_points.groupby(["grid", parameters], sort=False):
        names.append(unused(f"grid-{slug(str(title))}", names))
        tables.append(_table(str(title), names[-1], points))
    best = _best(results, all_points[all_points["validated"]])
    notes = [_VALIDATED] * bool(all_points["validated"].any())
    notes += [_TESTED] * bool(not all_points["validated"].all())
    data = {"best": best, "tables": tables, "note": " ".join(notes)}
    yield Section("grids", "Grids of parameters", "grid.html", data)


@once
def grids(results: Results) -> pd.DataFrame:
    """The points of all grids of a study.

    Columns grid (its dataset, with what else its tasks share), dataset, solver, point (its
    parameters by name), error (the median over the runs), n (runs with one), validated (the error
    is of validation points) and best (the lowest of the solver among these, of the points that may
    be compared: no run of theirs is missing, and halving left them until the end).
    """
    parts = [*_tuned(results), *_of_tasks(results)]
    if not parts:
        return pd.DataFrame(columns=["grid", "validated"])
    points = pd.concat(parts, ignore_index=True)
    eligible = points["error"].where(points["validated"] & points["whole"])
    lowest = eligible.groupby([points["grid"], points["solver"]], sort=False).transform("min")
    return points.drop(columns=["whole", "runs", "stayed"]).assign(best=eligible == lowest)


def _tuned(results: Results) -> Iterator[pd.DataFrame]:
    """The trials of tuned tasks; of several rounds of halving the last one counts.

    What halving dropped was fitted to fewer points, and has errors that cannot be compared.
    """
    for task in results.tasks_of(SvmTask):
        if not task.tune:
            continue
        task_runs = of_task(results.runs, task.label)
        last: dict[tuple[Any, ...], dict[str, Any]] = {}
        for run in records(task_runs[task_runs["ok"]]):
            trials = json.loads(run["tuning"] or "[]")
            decided = _last_round(trials)
            for tried in trials:
                if tried["error"] is not None:
                    key = run["solver"], run["seed"], json.dumps(tried["params"])
                    last[key] = {"error": tried["error"], "stayed": tried["round"] == decided}
        if last:
            index = pd.MultiIndex.from_tuples(last, names=["solver", "seed", "point"])
            errors = pd.DataFrame(list(last.values()), index).reset_index()
            points = _medians(errors)
            whole = points["stayed"] == points.groupby("solver")["stayed"].transform("max")
            yield points.assign(grid=task.label, dataset=task.dataset, validated=True, whole=whole)


def _last_round(trials: Sequence[Mapping[str, Any]]) -> int:
    """The round that decided: the last one that was completed, or the first."""
    last = 0
    for number in {tried["round"] for tried in trials}:
        of_round = [tried for tried in trials if tried["round"] == number]
        scored = any(tried["error"] is not None for tried in of_round)
        if scored and all(tried["ended"] != "not tried" for tried in of_round):
            last = max(last, number)
    return last


def _of_tasks(results: Results) -> Iterator[pd.DataFrame]:
    """The tasks that differ in nothing but C and the numbers of their kernels."""
    families: dict[str, list[SvmTask]] = {}
    for task in results.tasks_of(SvmTask):
        if not task.tune:
            shared = [task.dataset, task.dataset_params, task.kernel.get("name"), task.folds]
            key = json.dumps([*shared, task.fit_intercept], sort_keys=True, default=repr)
            families.setdefault(key, []).append(task)
    titles: list[str] = []
    for tasks in families.values():
        if len(tasks) < 2:
            continue
        titles.append(unused(tasks[0].dataset, titles, " "))
        points = {}
        for task in tasks:
            numbers = {name: value for name, value in task.kernel.items() if is_number(value)}
            points[task.label] = json.dumps({"C": task.C, **numbers})
        runs = results.runs[results.runs["task"].isin(points)]
        errors = runs[RUN].assign(
            point=runs["task"].map(points),
            error=runs["test_error"].where(runs["ok"]),
            stayed=runs["ok"].astype(int),
        )
        table = _medians(errors)
        table = table.assign(
            grid=titles[-1],
            dataset=tasks[0].dataset,
            validated=tasks[0].folds is not None,
            whole=table["stayed"] == table["runs"],
        )
        yield table[table["n"] > 0]


def _medians(errors: pd.DataFrame) -> pd.DataFrame:
    """A row for each point: error, n (runs with one), runs, and stayed (of how many it counts)."""
    table = errors.groupby(["solver", "point"], sort=False, as_index=False).agg(
        error=("error", "median"),
        n=("error", "count"),
        runs=("error", "size"),
        stayed=("stayed", "sum"),
    )
    return table.assign(point=[json.loads(text) for text in table["point"]])


def _varied(points: pd.DataFrame) -> list[str]:
    """The parameters with several values; the one with the most of them last."""
    values: dict[str, set[str]] = {}
    for point in points["point"]:
        for name, value in point.items():
            values.setdefault(name, set()).add(value_text(value))
    names = [name for name, distinct in values.items() if len(distinct) > 1] or list(values)[:1]
    return sorted(names, key=lambda name: len(values[name]))


def _table(title: str, name: str, points: pd.DataFrame) -> Table:
    """A row for each solver and value of the other parameters, a column for each of the last."""
    *others, last = _varied(points)
    across = {value_text(point[last]): point[last] for point in points["point"]}
    if all(map(is_number, across.values())):
        across = dict(sorted(across.items(), key=lambda item: item[1]))
    order = {solver: index for index, solver in enumerate(dict.fromkeys(points["solver"]))}
    labels = []
    for row in records(points):
        words = [f"{SYMBOLS.get(each, each)} = {value_text(row['point'][each])}" for each in others]
        labels.append(", ".join([row["solver"], *words]))
    frame = points.assign(
        label=labels,
        column=[value_text(point[last]) for point in points["point"]],
        lowest=points.groupby("solver")["error"].transform("min"),
    ).sort_values("solver", key=lambda names: names.map(order), kind="stable")
    kind = "validation" if points["validated"].all() else "test"
    numbers = points.drop(columns=["point", "grid"]).assign(
        **{each: [point.get(each) for point in points["point"]] for each in (*others, last)}
    )
    headings = {each: f"{SYMBOLS.get(last, last)} = {each}" for each in across}
    return matrix(
        f"Median {kind} error on {title}",
        frame,
        ("label", dict.fromkeys(frame["label"])),
        ("column", headings),
        _cell,
        name=name,
        caption="Shaded by the ratio to the lowest error of the solver.",
        numbers=numbers,
    )


def _cell(row: Mapping[str, Any]) -> Cell:
    error, lowest = row["error"], row["lowest"]
    ratio = error / lowest if lowest > 0 else 1.0 if error == 0 else np.inf
    return Cell(
        formatting.percent(row["error"]),
        best=row["best"],
        number=row["error"],
        shade=int(np.searchsorted(_SHADES, ratio * (1 - 1e-9))),
    )


def _parameter(name: str, row: Mapping[str, Any]) -> Cell:
    value = row["point"].get(name)
    if value is None:
        return NONE
    return Cell(value_text(value), number=value if is_number(value) else None)


def _best(results: Results, points: pd.DataFrame) -> Table | None:
    """The best point of each solver on each dataset, by validation error; of equals the first."""
    if points.empty:
        return None
    best = points[points["best"]].drop_duplicates(["grid", "solver"])
    names = list(dict.fromkeys(name for point in best["point"] for name in point))
    frame = best.assign(**{each: [point.get(each) for point in best["point"]] for each in names})
    word = analysis.words(results).solver.capitalize()
    columns = [
        Column("Grid", of="grid"),
        Column(word, of="solver"),
        *(
            Column(SYMBOLS.get(name, name), "number", of=partial(_parameter, name))
            for name in names
        ),
        Column(
            "Validation error",
            "number",
            of=lambda row: Cell(
                formatting.percent(row["error"]),
                note=plural(row["n"], "run"),
                number=row["error"],
            ),
        ),
    ]
    numbers = frame.drop(columns=["point", "best", "validated"])
    return framed(
        "Best parameters by validation error", frame, columns, name="grid-best", numbers=numbers
    )
