"""The quantities of a report, each with its title, words, format, direction, place and meaning.

Those of a record or checkpoint are declared with its column, counters with the counter. Here are
the others: sums of counters, costs to targets, and what follows from checkpoints or sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from ..harness.planning.plan import kind_named
from ..harness.results.measures import Format, Measure, counter_measures, measures_of
from .described import SvmTask
from .frames import RUN, is_number
from .results import SUMS
from .statistics.targets import Target

#: The unit of the stored values of a measure by the name of its format, and its words for readers.
UNITS: Mapping[Format, tuple[str, str]] = MappingProxyType(
    {
        "percent": ("fraction", "Unit: percent."),
        "count": (
            "count",
            "A count; k, M, G and T stand for thousands, millions, 10⁹ and 10¹².",
        ),
        "integer": ("count", "A count."),
        "seconds": ("s", "Unit: seconds (s) or milliseconds (ms)."),
        "scientific": ("ratio", "A ratio without a unit."),
        "number": ("", "A number without a unit."),
        "megabytes": ("MB", "Unit: megabytes."),
    }
)
#: What the columns low and high of a table of numbers are.
RANGE, INTERVAL = "minimum to maximum", "95% interval of the mean"

#: The targets that have columns in the table of results; no solver of the study sets them.
ERROR_TARGET = Target("test_error", 0.01)
OBJECTIVE_TARGET = Target("suboptimality", 0.01)
#: Epochs at whose ends the test error is compared.
LATE_EPOCHS = 10
#: What runs spend, of which costs to targets are known.
COSTS = ("evaluations", "cpu_s")

#: What follows from the checkpoints, or from several tasks, and no record declares.
FURTHER: Mapping[str, Measure] = MappingProxyType(
    {
        "certified_gap": Measure(
            "Certified gap",
            "certified gap, as a fraction of the objective",
            "scientific",
            better="lower",
        ),
        "maintenance_fraction": Measure(
            "Maintenance",
            "maintenance events per iteration in the epoch",
            "percent",
            better="lower",
        ),
        "margin_gap": Measure(
            "Gap", "gap between the bounds on the margin", "scientific", better="lower"
        ),
        "phi_lo": Measure(
            "Lower bound", "lower bound on the margin", "scientific", better="higher"
        ),
        "phi_up": Measure("Upper bound", "upper bound on the margin", "scientific", better="lower"),
    }
)
#: Against the number of training points.
OF_SCALING: Mapping[str, Measure] = MappingProxyType(
    {
        "cpu_s_per_iteration": Measure(
            "CPU time per iteration", "CPU seconds per iteration", "seconds"
        ),
        "n_iter": Measure("Number of iterations", "iterations", "count"),
    }
)
# Sums of several counters: titles, places in the table of results, and what they are.
_SUMS_IN_TABLE = {
    "evaluations": (
        "Evals",
        60,
        "What the method asks for in training, as if nothing were cached: kernel entries, or what "
        "a method without a kernel computes in their place.",
    ),
    "evaluations_computed": ("Evals computed", 61, "What of it was really computed."),
}
# More kinds of evaluations than this are too many words for an axis.
_MOST_IN_WORDS = 2


@dataclass(frozen=True)
class Derived:
    """A measure that its record does not hold, and that has a column in the table of results."""

    name: str  # unique among all measures
    measure: Measure  # with its place in the table
    # The values of runs from the frames runs, traces and of ``targets.costs_to_targets``: as of
    # ``summary.run_values``, without ``measure``.
    values: Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]
    group: str = ""  # what its column stands under, with others of the group
    note: str = ""  # a sentence below the tables that have the column
    cost: str = ""  # the measure whose title it takes; empty: it has its own


def late_spreads(runs: pd.DataFrame, traces: pd.DataFrame) -> pd.Series:
    """The range of each run's test error over the ends of its last ten epochs.

    With the index of ``runs``; NaN for runs without a checkpoint at each of these ends.
    """
    identity = runs[RUN].assign(run=runs.index, n_train=runs["n_train"].where(runs["n_train"] > 0))
    states = identity.merge(traces[[*RUN, "n_iter", "test_error"]], on=RUN)
    states["epoch"] = states["n_iter"] / states["n_train"]
    # Of two checkpoints after the same iteration the last one counts.
    states = states.dropna(subset="epoch").drop_duplicates(["run", "epoch"], keep="last")
    last = states.groupby("run")["epoch"].transform("max")
    at_ends = (last % 1 == 0) & (last >= LATE_EPOCHS) & (states["epoch"] % 1 == 0)
    late = states[at_ends & (last - states["epoch"] < LATE_EPOCHS)]
    errors = late.groupby("run")["test_error"].agg(["count", "min", "max"])
    whole = errors[errors["count"] == LATE_EPOCHS]
    return (whole["max"] - whole["min"]).reindex(runs.index).astype(float)


def _late_values(runs: pd.DataFrame, traces: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Of runs that ended as planned; NaN without a checkpoint at each of these ends."""
    finals = runs[runs["ok"]]
    spreads = late_spreads(finals, traces)
    return finals[RUN].assign(value=spreads, first=spreads, upper_bound=False)


EVALUATIONS_TO_ERROR = "evals_to_error"


def _to_target(name: str, target: Target, cost: str, place: int) -> Derived:
    """What a run spends until it stays at a target."""
    counted, of_error = cost == "evaluations", target.value == "test_error"
    needs, absent = ("", "") if of_error else ("minimises", "not minimised")
    spent, goal = "Evaluations" if counted else "CPU time", "error" if of_error else "objective"
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
        meaning=f"{spent} until the {'test error' if of_error else goal} of a run is at its target "
        "to stay.",
    )

    def values(runs: pd.DataFrame, traces: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
        chosen = (costs["target"] == target.name) & (costs["cost"] == cost)
        return costs.loc[chosen, [*RUN, "value", "first", "upper_bound"]]

    return Derived(name, measure, values, f"To stay within {target.words}", cost=cost)


_SVM = (
    Derived(
        "late_spread",
        Measure("Late spread", "late spread", "percent", table=30),
        _late_values,
        note="“Late spread” is the range of the test error of a run over the ends of its last "
        f"{LATE_EPOCHS} epochs.",
    ),
    _to_target(EVALUATIONS_TO_ERROR, ERROR_TARGET, "evaluations", 110),
    _to_target("seconds_to_error", ERROR_TARGET, "cpu_s", 120),
    _to_target("evals_to_objective", OBJECTIVE_TARGET, "evaluations", 130),
    _to_target("seconds_to_objective", OBJECTIVE_TARGET, "cpu_s", 140),
)


def derived_measures(kind: str) -> tuple[Derived, ...]:
    """The derived measures of a kind of studies."""
    return _SVM if kind == "svm" else ()


def declared(kind: str, counters: Mapping[str, Measure]) -> dict[str, Measure]:
    """Every measure of a kind by name: of its records, sums of the counters used, and derived."""
    record: Any = kind_named(kind).record
    measures = measures_of(record.checkpoint) | measures_of(record)
    measures |= {name: _sum(name, parts, counters) for name, parts in SUMS.items()}
    for item in derived_measures(kind):
        title = measures[item.cost].title if item.cost else item.measure.title
        measures[item.name] = replace(item.measure, title=title)
    return measures


def _sum(name: str, parts: tuple[str, ...], counters: Mapping[str, Measure]) -> Measure:
    """The measure that a sum of counters is: of the counter itself if only one is used."""
    used = [counters[part] for part in parts if part in counters]
    used = used or [counter_measures()[parts[0]]]
    title, place, meaning = _SUMS_IN_TABLE[name]
    title = used[0].title if len(used) == 1 else title
    words = " or ".join(measure.words for measure in used)
    return replace(
        used[0],
        title=title,
        words="evaluations of all kinds" if len(used) > _MOST_IN_WORDS else words,
        short=title.lower() if name == "evaluations" else "",
        table=place,
        meaning=meaning,
    )


def measured(
    table: pd.DataFrame,
    measures: Mapping[str, Measure],
    counts: pd.DataFrame,
    intervals: Collection[str] = (),
) -> pd.DataFrame:
    """The rows of a table of results with what a reader of the numbers alone must know.

    A row for each task, solver and measure: title, unit, n_planned (runs), n (with a value),
    n_reached (with a finite one), median, low, high, spread (what low and high are: of the measures
    ``intervals`` the interval of the mean), first (the median cost of first touching a target),
    upper_bound (the median is only known to be at most this), absent (why there is no value),
    complete (no run failed) and best (bold on the page).
    """
    rows = table.merge(counts[["task", "solver", "n_planned"]], on=["task", "solver"], how="left")
    names = rows["measure"]
    rows = rows.assign(
        title=names.map({name: item.title for name, item in measures.items()}),
        unit=names.map({name: UNITS[item.format][0] for name, item in measures.items()}),
        spread=[INTERVAL if name in intervals else RANGE for name in names],
    )
    columns = [
        *("task", "solver", "measure", "title", "unit", "n_planned", "n", "n_reached", "median"),
        *("low", "high", "spread", "first", "upper_bound", "absent", "complete", "best"),
    ]
    return rows[columns].reset_index(drop=True)


def kernel_parameters(tasks: Iterable[SvmTask], taken: Collection[str] = ()) -> pd.DataFrame:
    """The numbers among the parameters of each task's kernel, by label: ``kernel_gamma``, say."""
    rows = {
        task.label: {
            f"kernel_{name}": float(value)
            for name, value in task.kernel.items()
            if is_number(value) and f"kernel_{name}" not in taken
        }
        for task in tasks
    }
    return pd.DataFrame.from_dict(rows, orient="index")
