"""What a run spends until it reaches the target error of its task."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from marginbench.harness.measures import Measure
from marginbench.reports.derived import Derived

#: The target error of a task is this factor times the task's best error.
TARGET_FACTOR = 1.01

# So that 1.01 x best in floating point includes an equal error.
_ROUNDING = 1e-12


class _CostToTarget(Derived):
    kinds = ("svm",)
    group = "To the target error"
    cost: ClassVar[str]

    def values(self, runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
        """Of all runs that were not skipped: see :func:`costs_to_target`."""
        return costs_to_target(runs, traces, target_errors(runs), self.cost)


class EvaluationsToTarget(_CostToTarget):
    """All that a run evaluated up to its first checkpoint at the target error."""

    name = "evals_to_target"
    cost = titled_as = "evaluations"
    measure = Measure(
        *("", "evaluations to the target error", "count"),
        better="lower",
        short="evals to target",
        table=110,
        needs="instrumented",
        absent="not instrumented",
    )


class SecondsToTarget(_CostToTarget):
    """Seconds of a run up to its first checkpoint at the target error."""

    name = "seconds_to_target"
    cost = titled_as = "wall_s"
    measure = Measure(
        "", "solver seconds to the target error", "seconds", better="lower", table=120
    )


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
    runs: pd.DataFrame, traces: pd.DataFrame, targets: pd.DataFrame, cost: str
) -> pd.DataFrame:
    """What each run spent up to its first checkpoint at or below the target error.

    Parameters
    ----------
    runs, traces : DataFrame
        Of :class:`marginbench.reports.results.Results`.
    targets : DataFrame
        Of :func:`target_errors`.
    cost : str
        A column of ``traces``.

    Returns
    -------
    DataFrame
        One row per planned run that was not skipped: task, solver, seed, value (infinite where the
        target was not reached or the run failed, NaN where the count is unknown), kept (the run
        also ended at or below the target) and upper_bound (reached at the run's only checkpoint).
    """
    target_of = dict(zip(targets["task"], targets["target_error"], strict=True))
    trace_of = dict(iter(traces[traces["ok"]].groupby(["task", "solver", "seed"])))
    rows = []
    for run in runs[runs["status"] != "skipped"].itertuples(index=False):
        identity = (run.task, run.solver, run.seed)
        target = target_of.get(run.task, np.nan) + _ROUNDING
        trace = trace_of.get(identity, traces[:0])
        hits = trace[trace["test_error"] <= target]
        reached = not hits.empty
        spent = hits[cost].iloc[0] if reached else np.inf
        kept = reached and run.test_error <= target
        rows.append((*identity, spent, kept, reached and len(trace) == 1))
    columns = ["task", "solver", "seed", "value", "kept", "upper_bound"]
    return pd.DataFrame(rows, columns=columns)
