"""Compare two results folders, or two solvers of one: sides, measures, bounds and settings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ...data_loaders import suggest
from ...harness.planning.fingerprint import content_version
from ...harness.results.measures import Measure, counter_measures
from ...harness.results.stores import displayed, local_folder
from .. import analysis
from ..described import CellTask
from ..errors import ReportError
from ..frames import json_object, records
from ..measures import COSTS, ERROR_TARGET, OBJECTIVE_TARGET, declared, derived_measures
from ..results import SUMS, Results, load_results
from ..statistics import integrity, summary, targets
from .result import Compared, Comparison, Difference, Side, compared

#: Times and memory of two sessions on one machine differ by this factor in all runs at once, which
#: seeds cannot show: a smaller change is not reported.
SESSION = 1.1
#: Checkpoints of a study that does not say how far apart they are.
_CHECKPOINT_FACTOR = 1.19
#: Nothing smaller is compared of a suboptimality, relative to the optimum: of sums in double
#: precision that is rounding, and of kernel entries in single precision even more is.
_LEAST = 1e-9

_GAP = Measure("Duality gap", "duality gap", "scientific", better="")
#: Measures in the order of tables, all others before the costs in time: first what a solver
#: achieves, then what it costs. What is accepted by default, a ratio, or for test errors a
#: difference in points; and the short name for ``--bound``.
_MEASURES: Mapping[str, tuple[float, str]] = MappingProxyType(
    {
        "test_error": (0.005, "error"),
        "suboptimality": (2.0, ""),
        "gap": (2.0, ""),
        "n_support": (1.1, "sv"),
        "evals_to_error": (1.2, ""),
        "evals_to_objective": (1.2, ""),
        "evaluations": (1.05, "evals"),
        "evaluations_computed": (1.05, "computed"),
        "n_iter": (1.05, "iterations"),
        "": (1.05, ""),  # counters
        "seconds_to_error": (1.3, ""),
        "seconds_to_objective": (1.3, ""),
        "cpu_s": (1.2, "cpu"),
        "wall_s": (1.3, "wall"),
        # Of the whole worker: compiling and the runs before leave their traces in it.
        "peak_memory_mb": (math.inf, "memory"),
    }
)
_PLACES = {name: place for place, name in enumerate(_MEASURES)}
_LEFT_OUT = frozenset({"train_error", "gamma", "late_spread", "iterations"})
#: Settings that name the code, which is what is compared; all others may change times.
_CODE = frozenset({"marginbench", "commit", "dirty"})
_NONE = "not recorded"


def compare(
    a: Path | str,
    b: Path | str | None = None,
    *,
    solver: str | None = None,
    against: str | None = None,
    bounds: Iterable[str] | str = (),
) -> Comparison:
    """Compare the runs of two results folders, or of two solvers in one, on the same problems.

    Parameters
    ----------
    a, b : Path or str
        The baseline and what is compared with it; without ``b`` two solvers of ``a``.
    solver : str, optional
        Only this solver.
    against : str, optional
        The solver that is its baseline; by default the same one.
    bounds : str or iterable of str, optional
        Changes that are accepted, such as "cpu=1.2" or "error=0.5pt".

    Returns
    -------
    Comparison

    Raises
    ------
    ReportError
        If a folder holds no results, a solver or bound is unknown, or the folders are of different
        kinds of studies.
    """
    accepted = bounds_of(bounds)
    before, after = sides_of(
        local_folder(a), None if b is None else local_folder(b), solver, against
    )
    results = [side.results for side in (before, after) if side.results is not None]
    environment, times = _environments(results)
    ranked = before.solver == after.solver
    measures = _measures(results, accepted, times, ranked=ranked)
    before, after = (
        replace(side, values=_values(each, measures))
        for side, each in zip((before, after), results, strict=True)
    )
    study = results[0].study
    return Comparison(
        before,
        after,
        measures,
        *compared(before, after, measures),
        environment=environment,
        code=_code_differences(results) if ranked else [],
        times=times,
        cautions=_cautions(results),
        title=study.title or study.name,
    )


def sides_of(
    before: Path, after: Path | None, solver: str | None, against: str | None
) -> tuple[Side, Side]:
    """Load the two sides, without their values."""
    if against is not None and solver is None:
        raise ReportError(f"--against {against!r}: give the solver to compare with it: --solver")
    if after is None and (solver is None or against in (None, solver)):
        raise ReportError(
            f"{before}: one folder has nothing to compare it with; give another folder, or two of "
            "its solvers: --solver NAME --against NAME"
        )
    first = load_results(before)
    second = first if after is None else load_results(after)
    if first.kind != second.kind:
        raise ReportError(
            f"{before} is a study of the kind {first.kind!r}, {second.folder} of the kind "
            f"{second.kind!r}; compare two of one kind"
        )
    return _side("A", first, against or solver, solver), _side("B", second, solver, solver)


def _side(name: str, results: Results, solver: str | None, label: str | None) -> Side:
    """A results folder as a side; of one of its solvers, if given, under a label."""
    words, solvers = displayed(results.folder), results.study.solvers
    if solver is not None:
        labels = [item.label for item in solvers]
        if solver not in labels:
            raise ReportError(f"{results.folder}: no solver {solver!r}{suggest(solver, labels)}")
        words, solvers = f"{solver} in {words}", (solvers[labels.index(solver)],)
        runs, traces = (
            frame[frame["solver"] == solver].assign(solver=label).reset_index(drop=True)
            for frame in (results.runs, results.traces)
        )
        results = replace(results, runs=runs, traces=traces)
    return Side(
        name,
        words,
        results.runs,
        pd.DataFrame(),
        frozenset(label or each.label for each in solvers if each.deterministic),
        solver or "",
        analysis.folds(results),
        results,
    )


def bounds_of(texts: Iterable[str] | str) -> dict[str, float]:
    """The bounds of measures of studies."""
    names = {*filter(None, _MEASURES), *counter_measures()}
    aliases = {alias: name for name, (_, alias) in _MEASURES.items() if alias}
    return parsed_bounds(texts, names, aliases, "cpu=1.2 or error=0.5pt")


def parsed_bounds(
    texts: Iterable[str] | str,
    names: Iterable[str],
    aliases: Mapping[str, str],
    example: str,
) -> dict[str, float]:
    """Bounds from texts such as ``cpu=1.2``, ``error=0.5pt`` and ``memory=off``, by measure."""
    bounds: dict[str, float] = {}
    texts = [texts] if isinstance(texts, str) else texts
    for text in (part.strip() for item in texts for part in item.split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        measure = aliases.get(name, name)
        if measure not in names:
            near = suggest(name, sorted({*names, *aliases}))
            raise ReportError(
                f"--bound {text!r}: no measure {name!r}{near}; give NAME=VALUE such as {example}"
            )
        unit, scale, low, high, wanted = ("", 1.0, 1.0, 1e300, "a ratio from 1 on, such as 1.05")
        if measure == "test_error":
            wanted = "points of test error from 0pt to 100pt, such as error=0.5pt"
            unit, scale, low, high = ("pt", 100.0, 0.0, 100.0)
        try:
            number = math.inf if value == "off" else float(value.removesuffix(unit))
        except ValueError:
            number = math.nan
        if value != "off" and not (value.endswith(unit) and low <= number <= high):
            raise ReportError(f"--bound {text!r}: {value!r} is no bound; give {wanted}, or off")
        bounds[measure] = number / scale
    return bounds


def _measures(
    results: Sequence[Results], bounds: Mapping[str, float], times: str, *, ranked: bool
) -> dict[str, Compared]:
    """The measures that runs of either side may have, by name, in the order of tables."""
    kind = results[0].kind
    used = {name: item for each in results for name, item in analysis.counters(each).items()}
    titles = dict(zip(SUMS, ("Evaluations requested", "Evaluations computed"), strict=True))
    for item in derived_measures(kind):
        short = "CPU time" if item.measure.format == "seconds" else "Evaluations"
        titles[item.name] = f"{short} {item.group[:1].lower()}{item.group[1:]}"
    named = declared(kind, used)
    named |= {name: replace(named[name], title=titles[name]) for name in titles}
    if kind == "svm":
        named["gap"] = _GAP
    # Counters that nothing counted, or that are all of a sum.
    sums = [[part for part in parts if part in used] for parts in SUMS.values()]
    left_out = _LEFT_OUT | {parts[0] for parts in sums if len(parts) == 1}
    left_out |= counter_measures().keys() - used.keys()
    names = [name for name in named if name not in left_out]
    stored: list[Any] = [each.study.budget.get("checkpoint_factor") for each in results]
    factor = max(float(each or _CHECKPOINT_FACTOR) for each in stored)
    chosen: dict[str, Compared] = {}
    for name in sorted(names, key=lambda name: _PLACES.get(name, _PLACES[""])):
        measure, default = named[name], _MEASURES.get(name, _MEASURES[""])[0]
        of_machine, to_target = measure.format in ("seconds", "megabytes"), "_to_" in name
        advice = times if of_machine else ""
        # Methods of feasibility all end with the same certificate.
        if not advice and not ranked and kind == "svm" and not measure.better:
            advice = "solvers end at different accuracies"
        chosen[name] = Compared(
            name,
            measure,
            bounds.get(name, default),
            # The cost of a target is that of a checkpoint, which a factor lies before.
            band=(SESSION if of_machine else 1.0) * (factor if to_target else 1.0),
            advice=advice,
            sampled=of_machine,
            of_reference=name == "suboptimality" or to_target,
        )
    return chosen


def _values(results: Results, measures: Mapping[str, Compared]) -> pd.DataFrame:
    """The values of the runs that have a result, as :class:`Side` has them.

    Suboptimality and gap are floored at what the certificate of the reference optimum resolves, and
    at what double precision does. A run of a feasibility method that did not solve its generated
    problem never reached its end: its costs are infinite.
    """
    runs = results.runs[results.runs["ok"]]
    if "suboptimality" in runs:
        floored = summary.floor_suboptimality(runs)
        # fmax: without a certificate the gap itself; an unknown gap stays unknown.
        lowest = np.fmax(runs["reference_gap"], _LEAST * runs["reference_primal"])
        gap = pd.Series(np.fmax(runs["gap"], lowest), index=runs.index)
        runs = floored.assign(
            gap=gap.where(runs["gap"].notna()),
            suboptimality=floored["suboptimality"].clip(lower=_LEAST),
        )
    if "found" in runs:
        cells = {task.label for task in results.study.tasks if isinstance(task, CellTask)}
        solved = summary.with_outcome(runs, results.study.tasks)["solved"]
        formats = ("count", "integer", "seconds")
        costly = [
            name
            for name, item in measures.items()
            if name in runs and item.measure.format in formats
        ]
        never = runs["task"].isin(cells) & ~solved
        runs = runs.assign(**{name: runs[name].mask(never, np.inf) for name in costly})
    parts = [summary.run_values(runs, name) for name in measures if name in runs]
    if derived := [item for item in derived_measures(results.kind) if item.name in measures]:
        traces, goals = analysis.traces(results), (ERROR_TARGET, OBJECTIVE_TARGET)
        costs = targets.costs_to_targets(results.runs, traces, goals, COSTS)
        for item in derived:
            values = item.values(results.runs, traces, costs)
            parts.append(values.assign(measure=item.name))
    table = pd.concat(parts, ignore_index=True)
    return table[summary.VALUE_COLUMNS].drop(columns="first").dropna(subset="value")


def _environments(results: Sequence[Results]) -> tuple[list[Difference], str]:
    """What differs between the environments, those that change times first.

    And why times and memory are advice only, in a few words; empty if they may be judged.
    """
    distinct = [
        _distinct(
            row["environment"] | {"jobs": row["jobs"], "threads": row["threads"]}
            for row in records(analysis.environments(each))
        )
        for each in results
    ]
    differing = differences(distinct[0], distinct[1], _CODE) if all(distinct) else []
    differing.sort(key=lambda item: (not item.disturbs, item.field))
    if fields := [item.field for item in differing if item.disturbs]:
        return differing, f"the sides differ in {', '.join(fields)}"
    for name, recorded, each in zip("AB", distinct, results, strict=True):
        if not recorded:
            return differing, f"the environment of {name} is not recorded"
        if not analysis.times_compare(each):
            return differing, f"the runs of {name} were disturbed or are of several environments"
    return differing, ""


def differences(
    before: Mapping[str, str], after: Mapping[str, str], harmless: Collection[str], solver: str = ""
) -> list[Difference]:
    """The settings that differ; all but the harmless ones disturb times."""
    return [
        Difference(solver, name, a, b, disturbs=name not in harmless)
        for name in dict.fromkeys([*before, *after])
        if (a := before.get(name, _NONE)) != (b := after.get(name, _NONE))
    ]


def _distinct(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The values of each name, as one text; several where rows disagree."""
    texts = pd.DataFrame(list(rows), dtype=object)
    return {str(name): ", ".join(sorted(set(texts[name].dropna()))) for name in texts}


def _cautions(results: Sequence[Results]) -> list[str]:
    """The cautions of each side's report; those that both sides share are given once."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, each in zip("AB", results, strict=True):
        for words in analysis.cautions(each):
            names[words].append(name)
    return [f"{' and '.join(sides)}: {words}" for words, sides in names.items()]


def _code_differences(results: Sequence[Results]) -> list[Difference]:
    """The classes, versions, parameters and limits of solvers that differ, solver by solver."""
    items: list[Difference] = []
    for solver in dict.fromkeys(str(name) for each in results for name in each.runs["solver"]):
        a, b = (_code(each.runs[each.runs["solver"] == solver]) for each in results)
        if a and b:
            items += differences(a, b, {*a, *b}, solver)
    return items


def _code(runs: pd.DataFrame) -> dict[str, str]:
    """What the records of a solver say of its code."""
    runs = runs[(runs["key"] != "") & (runs["solver_class"] != "")]
    columns = ["solver_class", "version", "params", "budget"]
    return _distinct(
        {"class": row["solver_class"]}
        | ({"version": content_version(row["version"])} if row["version"] else {})
        | integrity.flatten(json_object(row["params"]), "params.")
        | integrity.flatten(json_object(row["budget"]), "budget.")
        for row in records(runs.drop_duplicates(columns))
    )
