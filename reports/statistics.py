"""The numbers of a report's tables: pure functions from DataFrame to DataFrame.

Rules that hold everywhere: medians and ranges are over the runs that ended as planned, and carry
their number ``n``; a failed run counts as never reaching a target; an unknown count stays
unknown. ``runs`` and ``traces`` are those of :class:`marginbench.reports.results.StudyResults`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from marginbench.reports.frames import by_solver, n_planned, of_task, records

#: The target error of a task is this factor times the task's best error.
TARGET_FACTOR = 1.01

#: Epochs at whose ends the test error is compared, for how far it still moves.
LATE_EPOCHS = 10

#: Measures of the results table and whether the lowest median is marked as the best. Total costs
#: are not: solvers spend them to reach different accuracies.
MEASURES: dict[str, bool] = {
    "test_error": True,
    "train_error": False,
    "late_spread": False,
    "suboptimality": True,
    "kernel_evals": False,
    "kernel_evals_computed": False,
    "wall_s": False,
    "n_support": True,
    "evals_to_target": True,
    "seconds_to_target": True,
}
_TARGET_COSTS = {"evals_to_target": "kernel_evals", "seconds_to_target": "wall_s"}
_COUNTS = ("kernel_evals", "kernel_evals_computed", "evals_to_target")

#: Why a value is absent from the results table.
NO_RUN = "no run"
NOT_INSTRUMENTED = "not instrumented"
NOT_MINIMISED = "not minimised"
UNKNOWN = "unknown"


def run_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """How many runs of each task and solver ended how.

    Returns
    -------
    DataFrame
        Columns task, solver, n_planned, n_ok, n_skipped, n_failed and statuses (the text
        "2 converged, 1 timeout", most frequent first).
    """
    rows = []
    for task, solver, group in by_solver(runs):
        counts = group["status"].value_counts()
        ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        n_ok = int(group["ok"].sum())
        n_skipped = int((group["status"] == "skipped").sum())
        rows.append(
            {
                "task": task,
                "solver": solver,
                "n_planned": len(group),
                "n_ok": n_ok,
                "n_skipped": n_skipped,
                "n_failed": len(group) - n_ok - n_skipped,
                "statuses": ", ".join(f"{count} {status}" for status, count in ordered),
            }
        )
    columns = ["task", "solver", "n_planned", "n_ok", "n_skipped", "n_failed", "statuses"]
    return pd.DataFrame(rows, columns=columns)


def resolution(frame: pd.DataFrame) -> pd.Series:
    """The relative suboptimality below which the reference's certificate cannot tell.

    The optimum lies in [reference_primal - reference_gap, reference_primal], so a relative
    suboptimality is known up to reference_gap / reference_primal.
    """
    return frame["reference_gap"] / frame["reference_primal"]


def floor_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """Floor the column suboptimality at the certificate's resolution.

    Returns
    -------
    DataFrame
        A copy with suboptimality floored, ``resolution``, and ``at_resolution``: True where the
        value is only known to be at most the resolution.
    """
    lowest = resolution(frame)
    # fmax: without a certificate (NaN) the value itself; an unknown value stays unknown.
    raw = frame["suboptimality"]
    floored = pd.Series(np.fmax(raw, lowest), index=frame.index).where(raw.notna())
    return frame.assign(suboptimality=floored, resolution=lowest, at_resolution=raw <= lowest)


def trace_suboptimality(traces: pd.DataFrame) -> pd.DataFrame:
    """Add each checkpoint's relative suboptimality, (primal - reference) / reference.

    It is not floored, and NaN for solvers that do not minimise the SVM objective.
    """
    raw = (traces["primal"] - traces["reference_primal"]) / traces["reference_primal"]
    return traces.assign(suboptimality=raw.where(traces["minimises"]))


def target_errors(runs: pd.DataFrame) -> pd.DataFrame:
    """The test error that each task's solvers are asked to reach.

    The best error of a task is the lowest median final test error among its solvers, the target
    ``TARGET_FACTOR`` times it. A best error of zero makes the target zero: no test error at all.

    Returns
    -------
    DataFrame
        Columns task, best_error, target_error, solvers (that attain the best), n (solvers
        compared). Tasks without a result are absent.
    """
    finals = runs[runs["ok"] & runs["test_error"].notna()]
    rows = []
    for task, group in finals.groupby("task", sort=False):
        medians = group.groupby("solver", sort=False)["test_error"].median()
        best = float(medians.min())
        rows.append(
            {
                "task": task,
                "best_error": best,
                "target_error": TARGET_FACTOR * best,
                "solvers": ", ".join(str(name) for name in medians.index[medians == best]),
                "n": len(medians),
            }
        )
    return pd.DataFrame(rows, columns=["task", "best_error", "target_error", "solvers", "n"])


def costs_to_target(
    runs: pd.DataFrame, traces: pd.DataFrame, targets: pd.DataFrame
) -> pd.DataFrame:
    """What each run spent up to its first checkpoint at the target error.

    Returns
    -------
    DataFrame
        One row per planned run that was not skipped: task, solver, seed, evals_to_target,
        seconds_to_target (infinite where the target was not reached or the run failed, NaN where
        the count is unknown), reached, kept (the run also ended there) and only_final (reached at
        the run's only checkpoint, so the cost is an upper bound).
    """
    target_of = dict(zip(targets["task"], targets["target_error"], strict=True))
    trace_of = dict(iter(traces[traces["ok"]].groupby(["task", "solver", "seed"])))
    rows = []
    for run in runs[runs["status"] != "skipped"].itertuples(index=False):
        trace = trace_of.get((run.task, run.solver, run.seed))
        target = target_of.get(run.task, np.nan)
        row = {"task": run.task, "solver": run.solver, "seed": run.seed}
        # A hair above, so that 1.01 x best in floating point includes an equal error.
        hits = None if trace is None else trace[trace["test_error"] <= target + 1e-12]
        reached = hits is not None and not hits.empty
        for name, cost in _TARGET_COSTS.items():
            row[name] = hits[cost].iloc[0] if hits is not None and reached else np.inf
        row["reached"] = reached
        row["kept"] = bool(reached and run.test_error <= target + 1e-12)
        row["only_final"] = reached and trace is not None and len(trace) == 1
        rows.append(row)
    return pd.DataFrame(
        rows, columns=["task", "solver", "seed", *_TARGET_COSTS, "reached", "kept", "only_final"]
    )


def late_spreads(runs: pd.DataFrame, traces: pd.DataFrame) -> pd.Series:
    """How far each run's test error still moves: its range over the ends of the last ten epochs.

    Returns
    -------
    Series
        With the index of ``runs``; NaN for runs without a checkpoint at each of these ends.
    """
    trace_of = dict(iter(traces.groupby(["task", "solver", "seed"])))
    spreads = {
        place: _late_spread(trace_of.get((run["task"], run["solver"], run["seed"])), run["n_train"])
        for place, run in zip(runs.index, records(runs), strict=True)
    }
    return pd.Series(spreads, index=runs.index, dtype=float)


def _late_spread(trace: pd.DataFrame | None, n_train: float) -> float:
    if trace is None or not n_train > 0:
        return np.nan
    # Of two checkpoints after the same iteration the last one counts.
    error_at = dict(zip(trace["n_iter"] / n_train, trace["test_error"], strict=True))
    last = max(error_at, default=0.0)
    errors = [error_at.get(last - back, np.nan) for back in range(LATE_EPOCHS)]
    return float(np.ptp(errors)) if last.is_integer() and last >= LATE_EPOCHS else np.nan


def results_table(runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """Median and range of each measure, per task and solver.

    Final measures are over the runs that ended as planned. The costs to the target error are over
    all planned runs but the skipped ones, a run that failed or never got there counting as
    infinite.

    Returns
    -------
    DataFrame
        One row per task, solver and measure of ``MEASURES``: median, low (minimum), high
        (maximum), n (values), n_reached and n_kept (runs that reached the target, and that also
        ended there; of the target's measures),
        at_resolution (the median suboptimality is at the certificate's resolution), upper_bound
        (the cost was only seen at the end of the run), best (the lowest median among the solvers
        of the task all of whose runs ended as planned) and absent (why there is no value).
    """
    finals = floor_suboptimality(runs[runs["ok"]])
    finals = finals.assign(late_spread=late_spreads(finals, traces))
    costs = costs_to_target(runs, traces, target_errors(runs))
    rows = []
    for task, solver, group in by_solver(runs):
        final = of_task(finals, task, solver)
        cost = of_task(costs, task, solver)
        for measure in MEASURES:
            source = cost if measure in _TARGET_COSTS else final
            row: dict[str, Any] = {"task": task, "solver": solver, "measure": measure}
            row |= _aggregate(source[measure])
            row["n_reached"] = int(cost["reached"].sum()) if source is cost else np.nan
            row["n_kept"] = int(cost["kept"].sum()) if source is cost else np.nan
            row["upper_bound"] = source is cost and bool(cost["only_final"].any())
            row["at_resolution"] = measure == "suboptimality" and bool(
                row["median"] <= final["resolution"].max()
            )
            row["absent"] = _absent(measure, group, row["n"])
            row["complete"] = bool(group["ok"].all())
            rows.append(row)
    return _mark_best(pd.DataFrame(rows, columns=_TABLE_COLUMNS))


_TABLE_COLUMNS = [
    *("task", "solver", "measure", "median", "low", "high", "n", "n_reached", "n_kept"),
    *("upper_bound", "at_resolution", "absent", "complete"),
]


def _aggregate(values: pd.Series) -> dict[str, float]:
    known = values.dropna()
    if known.empty:
        return {"median": np.nan, "low": np.nan, "high": np.nan, "n": 0}
    return {
        "median": float(np.median(known)),
        "low": float(known.min()),
        "high": float(known.max()),
        "n": len(known),
    }


def _absent(measure: str, group: pd.DataFrame, n: int) -> str:
    """Why a measure has no value; empty if it has one."""
    if (group["status"] == "skipped").all():
        return NO_RUN
    if measure in _COUNTS and not group["instrumented"].any():
        return NOT_INSTRUMENTED
    if measure == "suboptimality" and not group["minimises"].any():
        return NOT_MINIMISED
    if n:
        return ""
    if not group["ok"].any():
        return NO_RUN
    return NOT_INSTRUMENTED if measure in _COUNTS else UNKNOWN


def _mark_best(table: pd.DataFrame) -> pd.DataFrame:
    marked = table["measure"].map(MEASURES).astype(bool)
    # A model without support vectors is of another kind, or empty: not the sparsest one.
    counted = (table["measure"] != "n_support") | (table["median"] > 0)
    eligible = table[marked & counted & table["complete"] & (table["absent"] == "")]
    lowest = eligible.groupby(["task", "measure"])["median"].transform("min")
    best = (eligible["median"] == lowest) & np.isfinite(lowest)
    return table.assign(best=best.reindex(table.index, fill_value=False))


def failures(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that did not end as planned, grouped by what they have in common.

    Returns
    -------
    DataFrame
        Columns task, solver, status, reason, n, n_planned (of the task and solver) and seeds.
    """
    return _group_by_reason(runs[~runs["ok"] & (runs["status"] != "skipped")], runs)


def skipped(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that were skipped, with the same columns as :func:`failures`."""
    return _group_by_reason(runs[runs["status"] == "skipped"], runs)


def _group_by_reason(chosen: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    keys = ["task", "solver", "status", "reason"]
    planned = n_planned(runs)
    rows = []
    for (task, solver, status, reason), group in chosen.groupby(keys, sort=False):
        rows.append(
            {
                "task": task,
                "solver": solver,
                "status": status,
                "reason": reason,
                "n": len(group),
                "n_planned": planned[str(task), str(solver)],
                "seeds": ", ".join(str(seed) for seed in sorted(group["seed"])),
            }
        )
    return pd.DataFrame(rows, columns=[*keys, "n", "n_planned", "seeds"])
