"""Compare two results folders, or two solvers of one: sides, measures, bounds and settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ...data_loaders import suggest
from ...harness.planning.fingerprint import content_version, read_sources
from ...harness.planning.plan import kind_named
from ...harness.results.measures import Measure, counter_measures, measures_of
from ...harness.results.stores import displayed, local_folder
from .. import analysis
from ..described import CellTask
from ..errors import ReportError
from ..frames import is_number, json_object, records
from ..measures import COSTS, ERROR_TARGET, OBJECTIVE_TARGET, derived_measures
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

_SUM_TITLES = {
    "evaluations": "Evaluations requested",
    "evaluations_computed": "Evaluations computed",
}
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
        "peak_memory_mb": math.inf,
    }
)
_COUNT_BOUND = 1.05
#: Short names of measures for ``--bound``.
_ALIASES: Mapping[str, str] = MappingProxyType(
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
#: Settings that name the code, which is what is compared; all others may change times.
_CODE = frozenset({"marginbench", "commit", "dirty"})
_NONE = "not recorded"
#: Before the name of a source file.
SOURCE = "source "


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
    folders = local_folder(a), None if b is None else local_folder(b)
    before, after = sides_of(*folders, solver, against)
    environment = _environment_differences(before.runs, after.runs)
    times = _times_advice(before.runs, after.runs, environment)
    measures = _measures(before, after, accepted, times)
    before, after = (
        replace(side, values=_values(side.results, measures))
        for side in (before, after)
        if side.results is not None
    )
    code = [] if before.solver != after.solver else _code_differences(before, after)
    study = before.results.study if before.results else None
    return Comparison(
        before,
        after,
        measures,
        *compared(before, after, measures),
        environment=environment,
        code=code,
        times=times,
        cautions=_cautions(before, after),
        title=(study.title or study.name) if study else "",
    )


def sides_of(
    before: Path, after: Path | None, solver: str | None, against: str | None
) -> tuple[Side, Side]:
    """Load the two sides, without their values."""
    if after is None and not (solver and against):
        raise ReportError(
            f"{before}: one folder has nothing to compare it with; give another folder, or two of "
            "its solvers: --solver NAME --against NAME"
        )
    if against is not None and solver is None:
        raise ReportError(f"--against {against!r}: give the solver to compare with it: --solver")
    if after is None and solver == against:
        raise ReportError(f"--solver and --against are both {solver!r}; give two solvers")
    first = load_results(before)
    second = first if after is None else load_results(after)
    if first.kind != second.kind:
        raise ReportError(
            f"{before} is a study of the kind {first.kind!r}, {second.folder} of the kind "
            f"{second.kind!r}; compare two of one kind"
        )
    if solver is None:
        return _side("A", first), _side("B", second)
    baseline = against or solver
    return (
        _side("A", _only(first, baseline, solver), baseline),
        _side("B", _only(second, solver, solver), solver),
    )


def _side(name: str, results: Results, solver: str = "") -> Side:
    study, folder = results.study, displayed(results.folder)
    return Side(
        name,
        f"{solver} in {folder}" if solver else folder,
        results.runs,
        pd.DataFrame(),
        frozenset(s.label for s in study.solvers if s.deterministic),
        solver,
        analysis.folds(results),
        results,
    )


def _only(results: Results, solver: str, label: str) -> Results:
    """The results of one solver, under another label."""
    labels = [item.label for item in results.study.solvers]
    if solver not in labels:
        raise ReportError(f"{results.folder}: no solver {solver!r}{suggest(solver, labels)}")
    chosen = [item for item in results.study.solvers if item.label == solver]
    study = results.study.model_copy(
        update={"solvers": tuple(item.model_copy(update={"label": label}) for item in chosen)}
    )
    runs, traces = (
        frame[frame["solver"] == solver].assign(solver=label).reset_index(drop=True)
        for frame in (results.runs, results.traces)
    )
    return replace(results, study=study, runs=runs, traces=traces)


def bounds_of(texts: Iterable[str] | str) -> dict[str, float]:
    """The bounds of measures of studies."""
    names = {*_BOUNDS, *counter_measures(), *SUMS, "n_iter"}
    return parsed_bounds(texts, names, _ALIASES, "cpu=1.2 or error=0.5pt")


def parsed_bounds(
    texts: Iterable[str] | str,
    names: Iterable[str],
    aliases: Mapping[str, str],
    example: str,
) -> dict[str, float]:
    """Bounds from texts such as ``cpu=1.2``, ``error=0.5pt`` and ``memory=off``, by measure."""
    bounds: dict[str, float] = {}
    names = sorted(names)
    texts = [texts] if isinstance(texts, str) else texts
    for text in (part.strip() for item in texts for part in item.split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        measure = aliases.get(name, name)
        if measure not in names:
            near = suggest(name, sorted({*names, *aliases}))
            raise ReportError(
                f"--bound {text!r}: no measure {name!r}{near}; give NAME=VALUE such as {example}"
            )
        in_points = measure == "test_error"
        number = _parsed_bound(text, value, in_points=in_points)
        bounds[measure] = number / 100 if in_points else number
    return bounds


def _parsed_bound(text: str, value: str, *, in_points: bool) -> float:
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


def _measures(
    before: Side, after: Side, bounds: Mapping[str, float], times: str
) -> dict[str, Compared]:
    """The measures that runs of either side may have, by name, in the order of tables."""
    results = [side.results for side in (before, after) if side.results is not None]
    kind = results[0].kind
    record: Any = kind_named(kind).record
    named = measures_of(record.checkpoint) | measures_of(record)
    for name, parts in SUMS.items():
        title = _SUM_TITLES[name]
        named[name] = replace(named[parts[0]], title=title, words=title[:1].lower() + title[1:])
    if kind == "svm":
        named["gap"] = _GAP
    for item in derived_measures(kind):
        short = "CPU time" if item.measure.format == "seconds" else "Evaluations"
        words = f"{short} {item.group[:1].lower()}{item.group[1:]}"
        named[item.name] = replace(item.measure, title=words)
    for name in _repeats([side.runs for side in (before, after)]):
        named.pop(name, None)
    # Methods of feasibility all end with the same certificate.
    ranked = kind != "svm" or before.solver == after.solver
    stored: list[Any] = [each.study.budget.get("checkpoint_factor") for each in results]
    factor = max(float(each) if is_number(each) else _CHECKPOINT_FACTOR for each in stored)
    names = dict.fromkeys(name for name in (*_ORDER, *named) if name not in {*_LAST, *_LEFT_OUT})
    return {
        name: _as_compared(name, named[name], bounds, factor, times, ranked=ranked)
        for name in (*names, *_LAST)
        if name in named
    }


def _as_compared(
    name: str,
    measure: Measure,
    bounds: Mapping[str, float],
    factor: float,
    times: str,
    *,
    ranked: bool,
) -> Compared:
    of_machine = measure.format in ("seconds", "megabytes")
    advice = times if of_machine else ""
    if not advice and not ranked and not measure.better:
        advice = "solvers end at different accuracies"
    # The cost of a target is that of a checkpoint, which a factor lies before.
    band = (SESSION if of_machine else 1.0) * (factor if "_to_" in name else 1.0)
    bound = bounds.get(name, _BOUNDS.get(name, _COUNT_BOUND))
    return Compared(
        name,
        measure,
        bound,
        band,
        advice=advice,
        sampled=of_machine,
        of_reference=name == "suboptimality" or "_to_" in name,
    )


def _repeats(frames: list[pd.DataFrame]) -> set[str]:
    """Counters that nothing counted, or that are all of a sum."""
    names = [name for name in counter_measures() if all(name in frame for frame in frames)]
    return {
        name
        for name in names
        if not any((frame[name] > 0).any() for frame in frames)
        or any(
            name in parts and all(frame[name].equals(frame[total]) for frame in frames)
            for total, parts in SUMS.items()
        )
    }


def _values(results: Results, measures: Mapping[str, Compared]) -> pd.DataFrame:
    """The values of the runs that have a result, as :class:`Side` has them.

    Suboptimality and gap are floored at what the certificate of the reference optimum resolves, and
    at what double precision does. A run of a feasibility method that did not solve its generated
    problem never reached its end: its costs are infinite.
    """
    runs = results.runs[results.runs["ok"]]
    traces = results.traces
    if "suboptimality" in runs:
        traces = summary.trace_suboptimality(traces, results.runs)
        floored = summary.floor_suboptimality(runs)
        # fmax: without a certificate the gap itself; an unknown gap stays unknown.
        lowest = np.fmax(runs["reference_gap"], _LEAST * runs["reference_primal"])
        gap = pd.Series(np.fmax(runs["gap"], lowest), index=runs.index)
        runs = floored.assign(
            gap=gap.where(runs["gap"].notna()),
            suboptimality=floored["suboptimality"].clip(lower=_LEAST),
        )
    if "found" in runs:
        runs = _without_unsolved(runs, results, measures)
    parts = [summary.run_values(runs, name) for name in measures if name in runs]
    ended = runs[["task", "solver", "seed"]]
    derived = [item for item in derived_measures(results.kind) if item.name in measures]
    if derived:
        goals = (ERROR_TARGET, OBJECTIVE_TARGET)
        costs = targets.costs_to_targets(results.runs, traces, goals, COSTS)
        for item in derived:
            values = item.values(results.runs, traces, costs).assign(measure=item.name)
            parts.append(values.merge(ended))
    table = pd.concat(parts, ignore_index=True)
    return table[summary.VALUE_COLUMNS].drop(columns="first").dropna(subset="value")


def _without_unsolved(
    runs: pd.DataFrame, results: Results, measures: Mapping[str, Compared]
) -> pd.DataFrame:
    cells = {task.label for task in results.study.tasks if isinstance(task, CellTask)}
    solved = summary.with_outcome(runs, results.study.tasks)["solved"]
    never = runs["task"].isin(cells) & ~solved
    costs = [
        name
        for name, item in measures.items()
        if name in runs and item.measure.format in ("count", "integer", "seconds")
    ]
    return runs.assign(**{name: runs[name].where(~never, np.inf) for name in costs})


def _environment_differences(before: pd.DataFrame, after: pd.DataFrame) -> list[Difference]:
    """The settings of the environments that differ, those that change times first.

    None where a side does not say what its environment was: see :func:`_times_advice`.
    """
    sides = [_settings(runs) for runs in (before, after)]
    if not all(sides):
        return []
    return sorted(differences(sides[0], sides[1], _CODE), key=lambda item: not item.disturbs)


def differences(
    before: Mapping[str, str], after: Mapping[str, str], harmless: frozenset[str] = frozenset()
) -> list[Difference]:
    """The settings that differ; all but the harmless ones disturb times."""
    return [
        Difference("", name, *pair, disturbs=name not in harmless)
        for name in sorted({*before, *after})
        if (pair := (before.get(name, _NONE), after.get(name, _NONE)))[0] != pair[1]
    ]


def _settings(runs: pd.DataFrame) -> dict[str, str]:
    """The distinct values of each setting, as text."""
    rows = records(integrity.environments(runs))
    return _distinct(
        row["environment"] | {"jobs": row["jobs"], "threads": row["threads"]} for row in rows
    )


def _distinct(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The values of each name, as one text; several where rows disagree."""
    texts: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in row.items():
            texts.setdefault(name, {})[value] = None
    return {name: ", ".join(sorted(values)) for name, values in texts.items()}


def _times_advice(before: pd.DataFrame, after: pd.DataFrame, differing: list[Difference]) -> str:
    """Why times and memory are advice only, in a few words; empty if they may be judged."""
    fields = [item.field for item in differing if item.disturbs]
    if fields:
        return f"the sides differ in {', '.join(fields)}"
    for side, runs in (("A", before), ("B", after)):
        distinct = integrity.environments(runs)
        if distinct.empty:
            return f"the environment of {side} is not recorded"
        if not integrity.times_compare(runs, distinct):
            return f"the runs of {side} were disturbed or are of several environments"
    return ""


def _cautions(before: Side, after: Side) -> list[str]:
    """The cautions of each side's report; those that both sides share are given once."""
    sides = []
    for side in (before, after):
        traces = side.results.traces if side.results else pd.DataFrame()
        if "reference_primal" in side.runs:
            traces = summary.trace_suboptimality(traces, side.runs)
        distinct = integrity.environments(side.runs)
        sides.append(integrity.cautions(side.runs, traces, distinct, list(side.folds)))
    by_sentence: dict[str, list[str]] = {}
    for name, sentences in zip("AB", sides, strict=True):
        for sentence in sentences:
            by_sentence.setdefault(sentence, []).append(name)
    return [f"{' and '.join(names)}: {sentence}" for sentence, names in by_sentence.items()]


def _code_differences(before: Side, after: Side) -> list[Difference]:
    """The classes, parameters, limits and sources of solvers that differ, solver by solver."""
    items: list[Difference] = []
    for solver in dict.fromkeys([*before.runs["solver"], *after.runs["solver"]]):
        a, b = (_code(side, solver) for side in (before, after))
        if a and b:
            names = dict.fromkeys([*a, *b])
            pairs = ((name, a.get(name, _NONE), b.get(name, _NONE)) for name in names)
            items += [Difference(str(solver), *each) for each in pairs if each[1] != each[2]]
    return items


def _code(side: Side, solver: str) -> dict[str, str]:
    """What the records of a solver say of its code."""
    runs, folder = side.runs, side.results.folder if side.results else Path()
    runs = runs[(runs["solver"] == solver) & (runs["key"] != "") & (runs["solver_class"] != "")]
    texts = []
    columns = ["solver_class", "version", "params", "budget", "key_parts"]
    for row in records(runs.drop_duplicates(columns)):
        settings = {"class": row["solver_class"]}
        if row["version"]:
            settings["version"] = content_version(row["version"])
        settings |= integrity.flatten(json_object(row["params"]), "params.")
        settings |= integrity.flatten(json_object(row["budget"]), "budget.")
        source = json_object(row["key_parts"]).get("source")
        files = read_sources(folder, source) if isinstance(source, str) else None
        texts.append(settings | {f"{SOURCE}{name}": s[:10] for name, s in (files or {}).items()})
    return _distinct(texts)


def merged(differing: Iterable[Difference]) -> list[Difference]:
    """One entry for all solvers that differ in the same way."""
    alike: dict[tuple[str, str, str, bool], list[str]] = {}
    for item in differing:
        what = item.field, item.before, item.after, item.disturbs
        alike.setdefault(what, []).append(item.solver)
    return [Difference(", ".join(solvers), *what) for what, solvers in alike.items()]
