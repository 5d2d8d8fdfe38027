"""How runs ended, and the table of results: median and range of each measure.

Medians and ranges are over the runs that succeeded, and carry their number ``n``; a failed run
counts as never reaching a target; an unknown count stays unknown.

A run of a feasibility method has solved its problem if it ended as planned with the certificate
that the problem has: a separator, or for a problem without one an epsilon-solution of the
alternative (``||A x||`` at most the tolerance of the cell, the margin is then at most this, too) or
a proof that nothing separates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...harness.results.measures import Measure
from ..described import CellTask, Task
from ..frames import RUN, by_solver, json_object, n_planned, of_task, other_problem, records
from .targets import in_words, over_runs

#: The answers that count as a solution, by the generator of the problem.
_ANSWERS = {"ldfp": ("separable",), "lap": ("inseparable", "margin_at_most_tol")}
_ANY = ("separable", "inseparable", "margin_at_most_tol")


def with_outcome(runs: pd.DataFrame, tasks: Iterable[Task]) -> pd.DataFrame:
    """A copy with ``solved`` (bool) and ``limit``, the seconds allowed (NaN without a record)."""
    answers = {
        task.label: _ANSWERS.get(task.generator, _ANY) if isinstance(task, CellTask) else _ANY
        for task in tasks
    }
    right = [
        answer in answers[task] for task, answer in zip(runs["task"], runs["found"], strict=True)
    ]
    limits = [json_object(text).get("timeout", math.nan) for text in runs["budget"]]
    return runs.assign(
        solved=runs["ok"] & pd.Series(right, index=runs.index, dtype=bool),
        limit=pd.Series(limits, index=runs.index, dtype=float),
    )


def solved_table(
    runs: pd.DataFrame, measures: Mapping[str, Measure], *, rank_times: bool
) -> pd.DataFrame:
    """What each method needed on the instances that it solved, as :func:`results_table` has it.

    All methods end with the same certificate, so that their costs can be ranked: best are medians
    of methods that solved every instance.
    """
    ranked = {name: replace(item, better="lower") for name, item in measures.items()}
    solved = runs[runs["solved"]]
    values = [run_values(solved, name) for name in measures if name in solved]
    return results_table(
        runs,
        pd.concat(values, ignore_index=True),
        ranked,
        success="solved",
        rank_times=rank_times,
        overlap=False,
    )


def gap_ratio(traces: pd.DataFrame, columns: Mapping[str, int]) -> tuple[float, int]:
    """The largest ``t (phi_up - phi_lo) / sqrt(2 log n)``, and of how many checkpoints.

    At most 1 for mirror prox by its convergence theorem; NaN if nothing is recorded.
    """
    points = traces[traces["task"].isin(columns)]
    if points.empty:
        return math.nan, 0
    bound = (2 * points["task"].map(columns).map(math.log)).map(math.sqrt) / points["n_iter"]
    return float(((points["phi_up"] - points["phi_lo"]) / bound).max()), len(points)


def fewest_iterations(runs: pd.DataFrame, task: str) -> tuple[dict[str, int], int]:
    """On how many instances each method needed the fewest iterations; and how many were solved.

    Of methods that solved the instance; those that needed equally many both count.
    """
    task_runs = of_task(runs, task)
    solved = task_runs[task_runs["solved"]]
    fewest = solved.groupby("seed")["n_iter"].transform("min")
    first = solved.loc[solved["n_iter"] == fewest, "solver"]
    counts = first.value_counts(sort=False).sort_values(ascending=False, kind="stable")
    return {str(name): int(count) for name, count in counts.items()}, solved["seed"].nunique()


_REFERENCE = ["reference_primal", "reference_gap"]


def resolution(frame: pd.DataFrame) -> pd.Series:
    """The relative suboptimality below which the reference's certificate cannot tell."""
    return frame["reference_gap"] / frame["reference_primal"]


def floor_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with suboptimality floored at the certificate's ``resolution``, a bound there."""
    lowest = resolution(frame)
    # fmax: without a certificate (NaN) the value itself; an unknown value stays unknown.
    raw = frame["suboptimality"]
    floored = pd.Series(np.fmax(raw, lowest), index=frame.index).where(raw.notna())
    return frame.assign(
        suboptimality=floored, resolution=lowest, suboptimality_is_bound=raw <= lowest
    )


def trace_suboptimality(traces: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add each checkpoint's reference optimum and relative suboptimality, not floored.

    It is NaN for solvers that do not minimise the SVM objective.
    """
    optima = traces[RUN].merge(runs[[*RUN, *_REFERENCE]], on=RUN, how="left")
    joined = traces.assign(**{name: optima[name].to_numpy() for name in _REFERENCE})
    raw = (joined["primal"] - joined["reference_primal"]) / joined["reference_primal"]
    return joined.assign(suboptimality=raw.where(joined["minimises"]))


def run_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """How many runs of each task and solver ended how."""
    rows = []
    for task, solver, group in by_solver(runs):
        counts, n_ok = Counter(group["status"]), int(group["ok"].sum())
        others = n_ok + counts["skipped"] + counts["missing"]
        names = (task, solver, len(group), n_ok, counts["skipped"], counts["missing"])
        rows.append((*names, len(group) - others, in_words(counts)))
    columns = ["task", "solver", "n_planned", "n_ok", "n_skipped", "n_missing", "n_failed"]
    return pd.DataFrame(rows, columns=[*columns, "statuses"])


def by_reason(chosen: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Some of the runs, grouped by what they have in common: how they ended, and why."""
    keys = ["task", "solver", "status", "reason"]
    planned = n_planned(runs)
    rows = [
        (*key, len(seeds), planned[str(key[0]), str(key[1])], ", ".join(map(str, sorted(seeds))))
        for key, seeds in chosen.groupby(keys, sort=False)["seed"]
    ]
    return pd.DataFrame(rows, columns=[*keys, "n", "n_planned", "seeds"])


#: Why a value is absent from the table, where its measure does not say.
NO_RUN = "no run"
NOT_COUNTED = "not counted"
UNKNOWN = "unknown"
#: In the place of a value that cannot be compared with the task's optimum.
OTHER_PROBLEM = "another problem"
#: Of runs that are judged by their predictions alone.
NO_MODEL = "no model"

#: Columns of the values of runs: see :func:`run_values`.
VALUE_COLUMNS = ["task", "solver", "seed", "measure", "value", "first", "upper_bound"]


def run_values(runs: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The values of a column of runs that have a result, as the table takes them.

    One row per run: task, solver, seed, measure, value (NaN: unknown; infinite: never reached),
    first (the cost at which a target was first touched; else the value) and upper_bound (the value
    is only known to be at most this).
    """
    bound = runs.get(f"{measure}_is_bound", False)
    values = runs[["task", "solver", "seed"]].assign(
        measure=measure, value=runs[measure], first=runs[measure], upper_bound=bound
    )
    return values[VALUE_COLUMNS]


def results_table(
    runs: pd.DataFrame,
    values: pd.DataFrame,
    measures: Mapping[str, Measure],
    success: str = "ok",
    *,
    rank_times: bool = True,
    overlap: bool = True,
) -> pd.DataFrame:
    """Aggregate the values of each measure over the runs of a task and solver: :func:`over_runs`.

    And absent (why there is no value), complete (all runs succeeded) and best (the lowest median,
    where lower is better, among the complete solvers of the task, and all of them whose range
    overlaps with that of the lowest; no cost that is only known to be at most its value).
    """
    keys = ["task", "solver", "measure"]
    aggregates = over_runs(values, keys).drop(columns=["least", "n_unknown"])
    known = dict(zip(aggregates.index, records(aggregates), strict=True))
    nothing = dict.fromkeys(aggregates, np.nan) | {"n": 0, "n_reached": 0, "upper_bound": False}
    traits = {measure.needs for measure in measures.values() if measure.needs}
    rows: list[dict[str, Any]] = []
    for task, solver, group in by_solver(runs):
        skipped = bool((group["status"] == "skipped").all())
        complete, some = bool(group[success].all()), bool(group[success].any())
        lacking = {name for name in traits if not group[name].any()}
        for name, measure in measures.items():
            row: dict[str, Any] = dict(zip(keys, (task, solver, name), strict=True))
            row |= known.get((task, solver, name), nothing)
            if skipped:
                row["absent"] = NO_RUN
            elif measure.needs in lacking:
                row["absent"] = without(measure, group)
            elif row["n"]:
                row["absent"] = ""
            elif measure.unknown or not some:
                row["absent"] = measure.unknown or NO_RUN
            else:
                row["absent"] = NOT_COUNTED if measure.format == "count" else UNKNOWN
            row["complete"] = complete
            row["ranked"] = (
                measure.better == "lower"
                and (rank_times or measure.format != "seconds")
                # Another problem has another number of them.
                and (name != "n_support" or not other_problem(group))
            )
            # Unlike a suboptimality, which nobody knows better than the reference does.
            row["open"] = row["upper_bound"] and measure.format in ("count", "seconds")
            rows.append(row)
    columns = [*keys, *nothing, "absent", "complete", "ranked", "open"]
    return _mark_best(pd.DataFrame(rows, columns=columns), "high" if overlap else "median")


def without(measure: Measure, group: pd.DataFrame) -> str:
    """Why runs without a trait have no value of the measure that needs it."""
    if measure.needs != "minimises":
        return measure.absent
    if not group["shows_model"].any():
        return NO_MODEL
    return OTHER_PROBLEM if other_problem(group) else measure.absent


def _mark_best(table: pd.DataFrame, end: str) -> pd.DataFrame:
    # A model without support vectors is of another kind, or empty: not the sparsest one.
    counted = (table["measure"] != "n_support") | (table["median"] > 0)
    eligible = table[table["ranked"] & counted & table["complete"] & (table["absent"] == "")]
    eligible = eligible[np.isfinite(eligible["median"])]
    keys = ["task", "measure"]
    # A lone solver is not the best of anything.
    rivals = table[table["absent"] == ""].groupby(keys)["solver"].nunique().rename("rivals")
    eligible = eligible[(eligible.join(rivals, on=keys)["rivals"] > 1).to_numpy(bool)]
    best = eligible.sort_values("median", kind="stable").groupby(keys)[end].first()
    reach = eligible.join(best.rename("reach"), on=keys)["reach"]
    # Runs of the best reach up to there: a solver with a run below is as good as it.
    marked = (eligible["low" if end == "high" else "median"] <= reach) & ~eligible["open"]
    best = marked.reindex(table.index, fill_value=False)
    return table.assign(best=best).drop(columns=["ranked", "open"])
