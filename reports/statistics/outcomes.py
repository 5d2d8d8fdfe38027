"""How the runs of a study ended: counts, failures and skipped runs.

``runs`` is that of :class:`marginbench.reports.results.Results`.
"""

from __future__ import annotations

from collections import Counter

import pandas as pd

from ..frames import n_planned


def run_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """How many runs of each task and solver ended how.

    Returns
    -------
    DataFrame
        Columns task, solver, n_planned, n_ok, n_skipped, n_missing, n_failed and statuses (the text
        "2 converged, 1 timeout", most frequent first).
    """
    counted: dict[tuple[str, str], Counter[str]] = {}
    n_ok: Counter[tuple[str, str]] = Counter()
    for task, solver, status, ok in runs[["task", "solver", "status", "ok"]].to_numpy().tolist():
        counted.setdefault((task, solver), Counter())[status] += 1
        n_ok[task, solver] += ok
    rows = []
    for (task, solver), counts in counted.items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        as_planned = n_ok[task, solver] + counts["skipped"] + counts["missing"]
        rows.append(
            {
                "task": task,
                "solver": solver,
                "n_planned": counts.total(),
                "n_ok": n_ok[task, solver],
                "n_skipped": counts["skipped"],
                "n_missing": counts["missing"],
                "n_failed": counts.total() - as_planned,
                "statuses": ", ".join(f"{count} {status}" for status, count in ordered),
            }
        )
    columns = ["task", "solver", "n_planned", "n_ok", "n_skipped", "n_missing", "n_failed"]
    columns.append("statuses")
    return pd.DataFrame(rows, columns=columns)


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
