"""The measures that comparisons are about, their bounds, and the values of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ...data_loaders import suggest
from ...harness.planning.plan import kind_named
from ...harness.results.measures import Measure, counter_measures, measures_of
from ..derived import derived_measures
from ..described import CellTask
from ..errors import ReportError
from ..results import SUMS, Results
from ..statistics import certificates, objective, summary

#: Times and memory of two sessions on one machine differ by this factor in all runs at once, which
#: seeds cannot show: less is not told.
SESSION = 1.1
#: Checkpoints of a study that does not say how far apart they are.
_CHECKPOINT_FACTOR = 1.19

_SUM_TITLES = {"evaluations": "Evaluations asked", "evaluations_computed": "Evaluations computed"}
_GAP = Measure("Duality gap", "duality gap", "scientific", better="")
# First what a solver achieves, then what it costs.
_ORDER = (
    *("test_error", "suboptimality", "gap", "n_support", "evals_to_error", "evals_to_objective"),
    *("evaluations", "evaluations_computed", "n_iter"),
)
_LAST = ("seconds_to_error", "seconds_to_objective", "cpu_s", "wall_s", "peak_memory_mb")
_LEFT_OUT = frozenset({"train_error", "gamma", "late_spread", "iterations"})

#: What is accepted by default: a ratio, or for test errors a difference in points.
_BOUNDS: Mapping[str, float] = MappingProxyType(
    {
        "test_error": 0.005,
        "suboptimality": 2.0,
        "gap": 2.0,
        "n_support": 1.1,
        "evals_to_error": 1.2,
        "evals_to_objective": 1.2,
        "seconds_to_error": 1.3,
        "seconds_to_objective": 1.3,
        "cpu_s": 1.2,
        "wall_s": 1.3,
        # Of the whole worker: compiling and the runs before leave their traces in it.
        "peak_memory_mb": np.inf,
    }
)
_COUNT_BOUND = 1.05
#: Short names of measures for ``--bound``.
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "error": "test_error",
        "sv": "n_support",
        "evals": "evaluations",
        "computed": "evaluations_computed",
        "iterations": "n_iter",
        "cpu": "cpu_s",
        "wall": "wall_s",
        "memory": "peak_memory_mb",
    }
)


@dataclass(frozen=True)
class Compared:
    """A measure as comparisons take it. Less is better of all of them.

    Attributes
    ----------
    name : str
    measure : Measure
        Its title and its format.
    bound : float
        The change that is accepted: a ratio, of test errors a difference. Infinite: any.
    band : float
        The ratio that the measurement itself does not tell.
    """

    name: str
    measure: Measure
    bound: float
    band: float = 1.0

    @property
    def is_error(self) -> bool:
        """Whether it is a difference of errors on the same test points."""
        return self.name == "test_error"

    @property
    def of_machine(self) -> bool:
        """Whether the machine and what else it did is a part of it."""
        return self.measure.format in ("seconds", "megabytes")

    @property
    def is_total(self) -> bool:
        """Whether solvers spend it to reach different accuracies, so that it does not rank them."""
        return self.measure.better == ""

    @property
    def of_reference(self) -> bool:
        """Whether it depends on the reference optimum of the task."""
        return self.name == "suboptimality" or "_to_" in self.name


def parsed_bounds(given: Iterable[str] | str) -> dict[str, float]:
    """Bounds from texts such as ``cpu=1.2`` and ``error=0.5pt``, by the name of the measure.

    Raises
    ------
    ReportError
        If one is none; the message says what is.
    """
    found: dict[str, float] = {}
    given = [given] if isinstance(given, str) else given
    for text in (part for item in given for part in item.split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        measure = ALIASES.get(name, name)
        known = {*_BOUNDS, *counter_measures(), *SUMS, "n_iter"}
        if measure not in known:
            near = suggest(name, sorted({*known, *ALIASES}))
            raise ReportError(
                f"--bound {text.strip()!r}: no measure {name!r}{near}; give NAME=VALUE such as "
                "cpu=1.2 or error=0.5pt"
            )
        is_error = measure == "test_error"
        number = parse_bound(text.strip(), value, in_points=is_error)
        found[measure] = number / 100 if is_error else number
    return found


def parse_bound(text: str, value: str, *, in_points: bool) -> float:
    """The value of a bound: a ratio, of test errors points; infinite for ``off``.

    Raises
    ------
    ReportError
        If it is none; the message says what is.
    """
    if value == "off":
        return math.inf
    try:
        number = float(value.removesuffix("pt").strip())
    except ValueError:
        number = math.nan
    if value.endswith("pt") is in_points and (
        0 <= number <= 100 if in_points else 1 <= number < math.inf
    ):
        return number
    wanted = (
        "points of test error from 0pt to 100pt, such as error=0.5pt"
        if in_points
        else "a ratio from 1 on, such as 1.05 (5 % more)"
    )
    raise ReportError(f"--bound {text!r}: {value!r} is no bound; give {wanted}, or off")


def compared_measures(
    kind: str, before: Results, after: Results, bounds: Mapping[str, float]
) -> dict[str, Compared]:
    """The measures that runs of either side may have, by name, in the order of tables."""
    record: Any = kind_named(kind).record
    found = measures_of(record.checkpoint) | measures_of(record)
    for name, parts in SUMS.items():
        title = _SUM_TITLES[name]
        words = title[:1].lower() + title[1:]
        found[name] = replace(found[parts[0]], title=title, words=words)
    if kind == "svm":
        found["gap"] = _GAP
    for item in derived_measures(kind):
        short = "CPU time" if item.measure.format == "seconds" else "Evaluations"
        words = f"{short} {item.group[:1].lower()}{item.group[1:]}"
        found[item.name] = replace(item.measure, title=words)
    factor = max(_checkpoint_factor(side) for side in (before, after))
    names = [name for name in (*_ORDER, *found, *_LAST) if name in found]
    ordered = [name for name in dict.fromkeys(names) if name not in {*_LAST, *_LEFT_OUT}]
    return {
        name: Compared(
            name,
            found[name],
            bounds.get(name, _BOUNDS.get(name, _COUNT_BOUND)),
            _band(name, found[name], factor),
        )
        for name in (*ordered, *(name for name in _LAST if name in found))
    }


def _checkpoint_factor(results: Results) -> float:
    value = results.study.budget.get("checkpoint_factor", _CHECKPOINT_FACTOR)
    return float(value) if isinstance(value, int | float) else _CHECKPOINT_FACTOR


def _band(name: str, measure: Measure, factor: float) -> float:
    session = SESSION if measure.format in ("seconds", "megabytes") else 1.0
    # The cost of a target is that of a checkpoint, which a factor lies before.
    return session * (factor if "_to_" in name else 1.0)


def values_of(results: Results, measures: Mapping[str, Compared]) -> pd.DataFrame:
    """The values of the runs that have a result.

    Suboptimality and gap are floored at what the certificate of the reference optimum resolves. A
    run of a feasibility method that did not solve its generated problem never reached its end: its
    costs are infinite.

    Returns
    -------
    DataFrame
        Columns task, solver, seed, measure, value and upper_bound (the value is only known to be at
        most this).
    """
    runs = results.runs[results.runs["ok"]]
    traces = results.traces
    if "suboptimality" in runs:
        traces = objective.trace_suboptimality(traces, results.runs)
        floored = objective.floor_suboptimality(runs)
        # fmax: without a certificate the gap itself; an unknown gap stays unknown.
        gap = pd.Series(np.fmax(runs["gap"], runs["reference_gap"]), index=runs.index)
        runs = floored.assign(gap=gap.where(runs["gap"].notna()))
    if "found" in runs:
        runs = _without_unsolved(runs, results, measures)
    parts = [summary.run_values(runs, name) for name in measures if name in runs]
    ended = runs[["task", "solver", "seed"]]
    for item in derived_measures(results.kind):
        if item.name in measures:
            values = item.values(results.runs, traces).assign(measure=item.name)
            parts.append(values.merge(ended))
    found = pd.concat(parts, ignore_index=True)
    return found[summary.VALUE_COLUMNS].drop(columns="first").dropna(subset="value")


def _without_unsolved(
    runs: pd.DataFrame, results: Results, measures: Mapping[str, Compared]
) -> pd.DataFrame:
    cells = {task.label for task in results.study.tasks if isinstance(task, CellTask)}
    solved = certificates.with_outcome(runs, results.study.tasks)["solved"]
    never = runs["task"].isin(cells) & ~solved
    costs = [
        name
        for name, item in measures.items()
        if name in runs and item.measure.format in ("count", "integer", "seconds")
    ]
    return runs.assign(**{name: runs[name].where(~never, np.inf) for name in costs})
