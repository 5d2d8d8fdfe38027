"""What a run spends until it stays at a fixed target: one that no solver of the study sets."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from ...harness.results.measures import Measure
from ..statistics.targets import Target, costs_to_target
from . import Derived

#: The targets that have columns in the table of results.
ERROR_TARGET = Target("test_error", 0.01)
OBJECTIVE_TARGET = Target("suboptimality", 0.01)


class _CostToTarget(Derived):
    kinds = ("svm",)
    target: ClassVar[Target]
    cost: ClassVar[str]

    def values(self, runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
        """Of all runs that were not skipped: see :func:`costs_to_target`."""
        return costs_to_target(runs, traces, self.target, self.cost)


class EvaluationsToError(_CostToTarget):
    """All that a run evaluated until its test error stays near that of the optimum."""

    name = "evals_to_error"
    group = f"To stay within {ERROR_TARGET.words}"
    target, cost = ERROR_TARGET, "evaluations"
    titled_as = "evaluations"
    measure = Measure(
        *("", "evaluations to the target error", "count"),
        better="lower",
        short="evals to target",
        table=110,
        needs="instrumented",
        absent="not instrumented",
        unknown="no target",
    )


class SecondsToError(_CostToTarget):
    """CPU seconds of a run until its test error stays near that of the optimum."""

    name = "seconds_to_error"
    group = EvaluationsToError.group
    target, cost = ERROR_TARGET, "cpu_s"
    titled_as = "cpu_s"
    measure = Measure(
        *("", "CPU seconds to the target error", "seconds"),
        better="lower",
        table=120,
        unknown="no target",
    )


class EvaluationsToObjective(_CostToTarget):
    """All that a run evaluated until its objective stays near the optimum."""

    name = "evals_to_objective"
    group = f"To stay within {OBJECTIVE_TARGET.words}"
    target, cost = OBJECTIVE_TARGET, "evaluations"
    titled_as = "evaluations"
    measure = Measure(
        *("", "evaluations to the target objective", "count"),
        better="lower",
        table=130,
        needs="instrumented",
        absent="not instrumented",
        unknown="no target",
    )


class SecondsToObjective(_CostToTarget):
    """CPU seconds of a run until its objective stays near the optimum."""

    name = "seconds_to_objective"
    group = EvaluationsToObjective.group
    target, cost = OBJECTIVE_TARGET, "cpu_s"
    titled_as = "cpu_s"
    measure = Measure(
        *("", "CPU seconds to the target objective", "seconds"),
        better="lower",
        table=140,
        needs="minimises",
        absent="not minimised",
        unknown="no target",
    )
