"""Measures of a run that its record does not hold, derived from its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd

from ..harness.results.measures import Measure
from .statistics.targets import Target, costs_to_target

#: The targets that have columns in the table of results; no solver of the study sets them.
ERROR_TARGET = Target("test_error", 0.01)
OBJECTIVE_TARGET = Target("suboptimality", 0.01)
#: Epochs at whose ends the test error is compared.
LATE_EPOCHS = 10


@dataclass(frozen=True)
class Derived:
    """A measure that is a column of the table of results.

    Attributes
    ----------
    name : str
        Unique among all measures.
    measure : Measure
        With its place in the table.
    values : callable
        The values of runs, from the frames of :class:`marginbench.reports.results.Results`: as of
        :func:`marginbench.reports.statistics.summary.run_values`, without ``measure``.
    group : str
        What its column stands under, with others of the group.
    note : str
        A sentence below the tables that have the column.
    titled_as : str
        The name of the measure whose title it takes; empty: it has its own.
    """

    name: str
    measure: Measure
    values: Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]
    group: str = ""
    note: str = ""
    titled_as: str = ""

    def title_among(self, measures: Mapping[str, Measure]) -> str:
        """The heading of its column."""
        return measures[self.titled_as].title if self.titled_as else self.measure.title


def late_spreads(runs: pd.DataFrame, traces: pd.DataFrame) -> pd.Series:
    """The range of each run's test error over the ends of its last ten epochs.

    Returns
    -------
    Series
        With the index of ``runs``; NaN for runs without a checkpoint at each of these ends.
    """
    keys = ["task", "solver", "seed"]
    mine = runs[keys].assign(run=runs.index, n_train=runs["n_train"].where(runs["n_train"] > 0))
    states = mine.merge(traces[[*keys, "n_iter", "test_error"]], on=keys)
    states["epoch"] = states["n_iter"] / states["n_train"]
    # Of two checkpoints after the same iteration the last one counts.
    states = states.dropna(subset="epoch").drop_duplicates(["run", "epoch"], keep="last")
    last = states.groupby("run")["epoch"].transform("max")
    at_ends = (last % 1 == 0) & (last >= LATE_EPOCHS) & (states["epoch"] % 1 == 0)
    late = states[at_ends & (last - states["epoch"] < LATE_EPOCHS)]
    errors = late.groupby("run")["test_error"].agg(["count", "min", "max"])
    whole = errors[errors["count"] == LATE_EPOCHS]
    return (whole["max"] - whole["min"]).reindex(runs.index).astype(float)


def _late_values(runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """Of runs that ended as planned; NaN without a checkpoint at each of these ends."""
    finals = runs[runs["ok"]]
    spreads = late_spreads(finals, traces)
    found = finals[["task", "solver", "seed"]]
    return found.assign(value=spreads, first=spreads, upper_bound=False)


def _to_target(name: str, target: Target, cost: str, place: int, meaning: str) -> Derived:
    """What a run spends until it stays at a target."""
    counted = cost == "evaluations"
    of_error = target.value == "test_error"
    goal = "error" if of_error else "objective"
    needs, absent = ("", "") if of_error else ("minimises", "not minimised")
    measure = Measure(
        title="",
        words=f"{'evaluations' if counted else 'CPU seconds'} to the target {goal}",
        format="count" if counted else "seconds",
        better="lower",
        short="evals to target" if name == EVALUATIONS_TO_ERROR else "",
        table=place,
        needs="instrumented" if counted else needs,
        absent="not instrumented" if counted else absent,
        unknown="no target",
        meaning=meaning,
        weight=3 if name == EVALUATIONS_TO_ERROR else 0,
    )
    values = partial(costs_to_target, target=target, cost=cost)
    return Derived(name, measure, values, f"To stay within {target.words}", titled_as=cost)


EVALUATIONS_TO_ERROR = "evals_to_error"
_AT = "until the {} of a run is at its target to stay."
_SVM = (
    Derived(
        "late_spread",
        Measure("Late spread", "late spread", "percent", table=30),
        _late_values,
        note="“Late spread” is the range of the test error of a run over the ends of its last "
        f"{LATE_EPOCHS} epochs.",
    ),
    _to_target(
        EVALUATIONS_TO_ERROR, ERROR_TARGET, "evaluations", 110,
        f"Evaluations {_AT.format('test error')}",
    ),
    _to_target(
        "seconds_to_error", ERROR_TARGET, "cpu_s", 120, f"CPU time {_AT.format('test error')}"
    ),
    _to_target(
        "evals_to_objective", OBJECTIVE_TARGET, "evaluations", 130,
        f"Evaluations {_AT.format('objective')}",
    ),
    _to_target(
        "seconds_to_objective", OBJECTIVE_TARGET, "cpu_s", 140,
        f"CPU time {_AT.format('objective')}",
    ),
)  # fmt: skip


def derived_measures(kind: str) -> tuple[Derived, ...]:
    """The derived measures of a kind of studies."""
    return _SVM if kind == "svm" else ()
