"""The statistics of a study's results: functions, each of which is answered once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import pandas as pd

from ..harness.results.measures import Measure, counter_measures
from . import described
from .described import SvmTask
from .drawing.canvas import SolverStyle, solver_styles
from .formatting import slugs as slugs_of
from .measures import (
    COSTS,
    ERROR_TARGET,
    LATE_EPOCHS as LATE_EPOCHS,
    OBJECTIVE_TARGET,
    declared,
    derived_measures,
)
from .results import SUMS, Results
from .statistics import curves, errors as intervals, integrity, summary, targets
from .statistics.targets import Target

_COUNTERS_IN_TABLE = 70
#: Targets for the objective and for the test error; problems are tasks with one of them.
FAMILIES: dict[str, tuple[Target, ...]] = {
    "suboptimality": (
        Target("suboptimality", 0.1),
        OBJECTIVE_TARGET,
        Target("suboptimality", 1e-3),
    ),
    "test_error": (
        Target("test_error", 0.0),
        Target("test_error", 0.005),
        ERROR_TARGET,
        Target("test_error", 0.02),
    ),
}

_TARGETS = tuple(target for family in FAMILIES.values() for target in family)

T = TypeVar("T")
_P = ParamSpec("_P")


def once(
    statistic: Callable[Concatenate[Results, _P], T],
) -> Callable[Concatenate[Results, _P], T]:
    """A function of results and further arguments that computes each of its values once."""

    @wraps(statistic)
    def computed(results: Results, /, *args: _P.args, **kwargs: _P.kwargs) -> T:
        question = (statistic, args, *kwargs.items())
        if question not in results.answers:
            results.answers[question] = statistic(results, *args, **kwargs)
        answer: T = results.answers[question]
        return answer

    return computed


# ---- how runs ended, and where


#: Of the runs of a study: :func:`.summary.run_counts` and so on.
counts = once(lambda results: summary.run_counts(results.runs))
environments = once(lambda results: integrity.environments(results.runs))


@once
def failures(results: Results) -> pd.DataFrame:
    """Runs that did not end as planned, grouped by what they have in common."""
    runs = results.runs
    return summary.by_reason(runs[~runs["ok"] & (runs["status"] != "skipped")], runs)


@once
def skipped(results: Results) -> pd.DataFrame:
    """Runs that were not tried, with the same columns."""
    return summary.by_reason(results.runs[results.runs["status"] == "skipped"], results.runs)


@once
def times_compare(results: Results) -> bool:
    """Whether CPU seconds of different solvers may be ranked."""
    return integrity.times_compare(results.runs, environments(results))


@once
def cautions(results: Results) -> list[str]:
    """What limits the comparison: :func:`.integrity.cautions`."""
    of_runs = integrity.cautions(
        results.runs, _raw_traces(results), environments(results), [*folds(results)]
    )
    of_study = [] if results.notes else described.part_of_study(results.study)
    return [*of_study, *results.notes, *of_runs]


# ---- what things are called, and how they look


def words(results: Results) -> described.KindWords:
    """What tasks, solvers and seeds are called in studies of this kind."""
    return described.KIND_WORDS[results.kind]


@once
def slugs(results: Results) -> dict[str, str]:
    """What the tasks are called in anchors and files, by label."""
    return slugs_of(task.label for task in results.study.tasks)


@once
def styles(results: Results) -> dict[str, SolverStyle]:
    """How each solver looks in every figure."""
    return solver_styles([solver.label for solver in results.study.solvers])


def styled_as(part: Results, whole: Results) -> Results:
    """A part of results, whose solvers look as in the whole."""
    labels = {solver.label for solver in part.study.solvers}
    looks = {label: look for label, look in styles(whole).items() if label in labels}
    part.answers[styles.__wrapped__, ()] = looks  # type: ignore[attr-defined]
    return part


# ---- checkpoints and measures


@once
def _raw_traces(results: Results) -> pd.DataFrame:
    if "reference_primal" not in results.runs:
        return results.traces
    return summary.trace_suboptimality(results.traces, results.runs)


@once
def traces(results: Results) -> pd.DataFrame:
    """The checkpoints; where there are reference optima with floored suboptimality."""
    raw = _raw_traces(results)
    return summary.floor_suboptimality(raw) if "suboptimality" in raw else raw


@once
def epochs(results: Results) -> pd.DataFrame:
    """What solvers noted after each epoch: :func:`.curves.epochs_frame`."""
    return curves.epochs_frame(results.runs)


@once
def counters(results: Results) -> dict[str, Measure]:
    """The counters of which some run of the study has a positive count, by name."""
    named = counter_measures().items()
    return {name: measure for name, measure in named if (results.runs[name] > 0).any()}


@once
def measures(results: Results) -> dict[str, Measure]:
    """Every measure of the study by name: of its records, sums of counters, and derived."""
    return declared(results.kind, counters(results))


@once
def shown(results: Results) -> dict[str, Measure]:
    """The measures of the table of results by name, in the order of its columns.

    Beside the measures that have a place in it, the counters that no column shows already; without
    derived measures that no run has a value for.
    """
    by_name = dict(measures(results))
    valued = set(derived_values(results).dropna(subset="value")["measure"])
    for item in derived_measures(results.kind):
        if item.name not in valued:
            del by_name[item.name]
    used = counters(results)
    sums = [{name for name in parts if name in used} for parts in SUMS.values()]
    if sums[0] == sums[1]:
        del by_name["evaluations_computed"]
    titles = {measure.title for name, measure in by_name.items() if name not in used}
    for name, measure in used.items():
        if {name} not in sums and measure.title not in titles:
            by_name[name] = replace(measure, table=_COUNTERS_IN_TABLE)
    placed = {name: measure for name, measure in by_name.items() if measure.table}
    return dict(sorted(placed.items(), key=lambda item: item[1].table))


# ---- costs to targets


@once
def costs(results: Results) -> pd.DataFrame:
    """What each run spent until it stayed at each target: :func:`.targets.costs_to_targets`."""
    return targets.costs_to_targets(results.runs, traces(results), _TARGETS, COSTS)


@once
def spent(results: Results, target: Target, cost: str) -> pd.DataFrame:
    """The part of :func:`costs` of one target in one cost."""
    rows = costs(results)
    return rows[(rows["target"] == target.name) & (rows["cost"] == cost)]


@once
def _against_best(results: Results) -> pd.DataFrame:
    return targets.against_best(costs(results), counts(results), _TARGETS, COSTS)


@once
def target_costs(results: Results, target: Target, cost: str) -> pd.DataFrame:
    """What each solver spends on each task, against the best: :func:`.targets.against_best`."""
    rows = _against_best(results)
    chosen = rows[(rows["target"] == target.name) & (rows["cost"] == cost)]
    return chosen.drop(columns=["target", "cost"]).reset_index(drop=True)


@once
def problems(results: Results, family: str, cost: str) -> pd.DataFrame:
    """The problems of a family of targets: :func:`.targets.problems`."""
    parts = [
        spent(results, target, cost).assign(target=index)
        for index, target in enumerate(FAMILIES[family])
    ]
    return targets.problems(pd.concat(parts, ignore_index=True), results.runs, cost)


# ---- the table of results


@once
def derived_values(results: Results) -> pd.DataFrame:
    """The values of the derived measures, as :func:`.summary.run_values` gives others."""
    parts = [
        item.values(results.runs, traces(results), costs(results)).assign(measure=item.name)
        for item in derived_measures(results.kind)
    ]
    if not parts:
        return pd.DataFrame(columns=summary.VALUE_COLUMNS)
    return pd.concat(parts, ignore_index=True)[summary.VALUE_COLUMNS]


@once
def table(results: Results) -> pd.DataFrame:
    """Medians and ranges of the measures shown: :func:`.summary.results_table`.

    The ranges of test errors are intervals, and those that are not separable from the best are
    marked: :func:`.errors.intervals`. With folds test errors are of the first cross-validation.
    """
    finals = results.runs[results.runs["ok"]]
    if "suboptimality" in finals:
        finals = summary.floor_suboptimality(finals)
    tested_once = intervals.first_folds(finals, folds(results))
    values = [
        summary.run_values(tested_once if name == "test_error" else finals, name)
        for name in shown(results)
        if name in finals
    ]
    frame = summary.results_table(
        results.runs,
        pd.concat([*values, derived_values(results)], ignore_index=True),
        shown(results),
        rank_times=times_compare(results),
    )
    if "mistakes" not in results.runs:
        return frame
    return intervals.with_intervals(frame, errors(results))


@once
def errors(results: Results) -> pd.DataFrame:
    """The intervals of the test errors: :func:`.errors.intervals`."""
    return intervals.intervals(results.runs, folds(results))


def folds(results: Results) -> dict[str, int]:
    """The number of folds of each task that has them."""
    return {task.label: task.folds for task in results.tasks_of(SvmTask) if task.folds}


# ---- feasibility: which runs solved their problem, and what that took


@dataclass(frozen=True)
class Solved:
    """The runs of a study with their outcome, and what the solved ones needed."""

    runs: pd.DataFrame  # of ``summary.with_outcome``
    costs: dict[str, Measure]  # what a run needs, in the order of the columns
    table: pd.DataFrame  # of ``summary.solved_table``


@once
def solved(results: Results) -> Solved:
    """The outcome of the runs of a study of feasibility methods."""
    runs = summary.with_outcome(results.runs, results.study.tasks)
    named = measures(results)
    needed = {
        name: named[name] for name in ("n_iter", "matvecs", *counters(results), "cpu_s", "wall_s")
    }
    # A counter of iterations says what the column of iterations says.
    titles = {measure.title: name for name, measure in reversed(needed.items())}
    needed = {name: measure for name, measure in needed.items() if titles[measure.title] == name}
    table = summary.solved_table(runs, needed, rank_times=times_compare(results))
    return Solved(runs, needed, table)
