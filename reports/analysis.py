"""The statistics of one study's results, each computed once, when something first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from ..harness.planning.plan import kind_named
from ..harness.results.measures import Measure, counter_measures, measures_of
from . import wording
from .derived import ERROR_TARGET, Derived, derived_measures
from .described import SvmTask
from .drawing.canvas import SolverStyle, solver_styles
from .naming import slugs
from .results import SUMS, Results
from .statistics import (
    errors,
    integrity,
    leading,
    objective,
    outcomes,
    summary,
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
_COUNTERS_IN_TABLE = 70
# More kinds of evaluations than this are too many words for an axis.
_MOST_IN_WORDS = 2

#: Of more solvers than this only so many are in colour.
MOST_COLORED = 8

T = TypeVar("T")
_P = ParamSpec("_P")
_Task = TypeVar("_Task")


class Analysis:
    """What page, figures and terminal are made from.

    Parameters
    ----------
    results : Results
        Of :func:`marginbench.reports.results.load_results`.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        self.study, self.kind = results.study, results.kind
        self.runs = results.runs
        self._answers: dict[Hashable, Any] = {}

    def ask(
        self,
        statistic: Callable[Concatenate[Analysis, _P], T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> T:
        """The value of a function of this object and further arguments, computed only once."""
        question = (statistic, args, *kwargs.items())
        if question not in self._answers:
            self._answers[question] = statistic(self, *args, **kwargs)
        found: T = self._answers[question]
        return found

    def tasks_of(self, described: type[_Task]) -> list[_Task]:
        """The study's tasks of one type of descriptions."""
        return [task for task in self.study.tasks if isinstance(task, described)]

    @property
    def words(self) -> wording.KindWords:
        """What tasks, solvers and seeds are called in studies of this kind."""
        return wording.kind_words(self.kind)

    @cached_property
    def styles(self) -> dict[str, SolverStyle]:
        """How each solver looks in every panel: up to eight are in colour, others are grey."""
        return solver_styles([solver.label for solver in self.study.solvers], self._colored[0])

    @property
    def coloring(self) -> str:
        """Which solvers are in colour, in a sentence; empty where all are."""
        return self._colored[1]

    @cached_property
    def _colored(self) -> tuple[list[str], str]:
        """The solvers in colour, and the rule that they were chosen by."""
        labels = [solver.label for solver in self.study.solvers]
        if len(labels) <= MOST_COLORED:
            return labels, ""
        cost = "evaluations" if self.counters else "cpu_s"
        comparable = cost != "cpu_s" or integrity.times_compare(self.runs, self.environments)
        if "reference_test_error" not in self.runs or not comparable:
            names = f"the first {MOST_COLORED} {self.words.solver}s of the study"
            return labels[:MOST_COLORED], f"In colour are {names}; the others are grey."
        costs = leading.costs(self.runs, self.traces, ERROR_TARGET, cost)
        rule = (
            f"In colour are the {MOST_COLORED} solvers that need the fewest "
            f"{self.measures[cost].words} to stay within {ERROR_TARGET.words}, by their "
            "mean rank over the tasks; the others are grey."
        )
        return leading.best_ranked(costs, labels, MOST_COLORED), rule

    @cached_property
    def slugs(self) -> dict[str, str]:
        """What the tasks are called in anchors and files, by label."""
        return slugs(task.label for task in self.study.tasks)

    @cached_property
    def counts(self) -> pd.DataFrame:
        """How many runs ended how: :func:`.outcomes.run_counts`."""
        return outcomes.run_counts(self.runs)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Runs that did not end as planned: :func:`.outcomes.failures`."""
        return outcomes.failures(self.runs)

    @cached_property
    def skipped(self) -> pd.DataFrame:
        """Runs that were not tried: :func:`.outcomes.skipped`."""
        return outcomes.skipped(self.runs)

    @cached_property
    def environments(self) -> pd.DataFrame:
        """Where the runs took place: :func:`.integrity.environments`."""
        return integrity.environments(self.runs)

    @cached_property
    def cautions(self) -> list[str]:
        """What limits the comparison: :func:`.integrity.cautions`."""
        folded = [task.label for task in self.tasks_of(SvmTask) if task.folds is not None]
        found = integrity.cautions(self.runs, self._raw_traces, self.environments, folded)
        return [*wording.part_of_study(self.study, self.words), *found]

    @cached_property
    def _raw_traces(self) -> pd.DataFrame:
        traces = self.results.traces
        if "reference_primal" not in self.runs:
            return traces
        return objective.trace_suboptimality(traces, self.runs)

    @cached_property
    def traces(self) -> pd.DataFrame:
        """The checkpoints; where there are reference optima with floored suboptimality."""
        raw = self._raw_traces
        return objective.floor_suboptimality(raw) if "suboptimality" in raw else raw

    @cached_property
    def counters(self) -> dict[str, Measure]:
        """The counters of which some run of the study has a positive count, by name."""
        return {
            name: measure
            for name, measure in counter_measures().items()
            if (self.runs[name] > 0).any()
        }

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """Every measure of the study by name: of its records, sums of counters, and derived."""
        record: Any = kind_named(self.kind).record
        found = measures_of(record.checkpoint) | measures_of(record)
        found |= {name: self._sum(name, parts) for name, parts in SUMS.items()}
        for item in self._derived:
            found[item.name] = replace(item.measure, title=item.title_among(found))
        return found

    def _sum(self, name: str, parts: tuple[str, ...]) -> Measure:
        """The measure that a sum of counters is: of the counter itself if there is only one."""
        known = [self.counters[part] for part in parts if part in self.counters]
        known = known or [counter_measures()[parts[0]]]
        title, place, meaning = _SUMS_IN_TABLE[name]
        title = known[0].title if len(known) == 1 else title
        words = " or ".join(measure.words for measure in known)
        if len(known) > _MOST_IN_WORDS:
            words = "evaluations of all kinds"
        asked = name == "evaluations"
        return replace(
            known[0],
            title=title,
            words=words,
            short=title.lower() if asked else "",
            table=place,
            meaning=meaning,
            weight=2 if asked else 0,
        )

    @cached_property
    def shown(self) -> dict[str, Measure]:
        """The measures of the table of results by name, in the order of its columns.

        Beside the measures that have a place in it, the counters that no column shows already;
        without derived measures that no run has a value for.
        """
        found = dict(self.measures)
        valued = set(self.derived_values.dropna(subset="value")["measure"])
        for item in self._derived:
            if item.name not in valued:
                del found[item.name]
        sums = [{name for name in parts if name in self.counters} for parts in SUMS.values()]
        if sums[0] == sums[1]:
            del found["evaluations_computed"]
        titles = {measure.title for name, measure in found.items() if name not in self.counters}
        for name, measure in self.counters.items():
            if {name} not in sums and measure.title not in titles:
                found[name] = replace(measure, table=_COUNTERS_IN_TABLE)
        placed = {name: measure for name, measure in found.items() if measure.table}
        return dict(sorted(placed.items(), key=lambda item: item[1].table))

    @property
    def _derived(self) -> tuple[Derived, ...]:
        return derived_measures(self.kind)

    @cached_property
    def derived_values(self) -> pd.DataFrame:
        """The values of the derived measures, as :func:`.summary.run_values` gives others."""
        parts = [
            item.values(self.runs, self.traces).assign(measure=item.name) for item in self._derived
        ]
        if not parts:
            return pd.DataFrame(columns=summary.VALUE_COLUMNS)
        return pd.concat(parts, ignore_index=True)[summary.VALUE_COLUMNS]

    @cached_property
    def table(self) -> pd.DataFrame:
        """Medians and ranges of the measures shown: :func:`.summary.results_table`.

        The ranges of test errors are intervals, and those that are not separable from the best
        are marked: :func:`.errors.intervals`.
        """
        finals = self.runs[self.runs["ok"]]
        if "suboptimality" in finals:
            finals = objective.floor_suboptimality(finals)
        columns = [name for name in self.shown if name in finals]
        values = [summary.run_values(finals, name) for name in columns]
        table = pd.concat([*values, self.derived_values], ignore_index=True)
        found = summary.results_table(
            self.runs,
            table,
            self.shown,
            rank_times=integrity.times_compare(self.runs, self.environments),
        )
        return errors.with_intervals(found, self.errors) if "mistakes" in self.runs else found

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The intervals of the test errors: :func:`.errors.intervals`."""
        folds = {task.label: task.folds for task in self.tasks_of(SvmTask) if task.folds}
        return errors.intervals(self.runs, folds)
