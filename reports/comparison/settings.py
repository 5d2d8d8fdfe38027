"""What besides the numbers differs between two sides: machine, software, code and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ...harness.planning.fingerprint import content_version, read_sources
from ..described import SvmTask
from ..frames import json_object, records
from ..results import Results
from ..statistics import integrity, objective

#: Settings that name the code, which is what is compared; all others may change times.
_CODE = frozenset({"marginbench", "commit", "dirty"})
_NONE = "not recorded"
_SOURCE = "source "


@dataclass(frozen=True)
class Difference:
    """A setting that differs.

    Attributes
    ----------
    solver : str
        Whose it is; empty for a setting of the environment.
    field : str
        "processor", "libraries.numba", "params.tol", "source solvers/smo/smo.py".
    before, after : str
        The values of A and of B.
    disturbs : bool
        Whether times are no evidence because of it.
    """

    solver: str
    field: str
    before: str
    after: str
    disturbs: bool = False


def environment_differences(before: pd.DataFrame, after: pd.DataFrame) -> list[Difference]:
    """The settings of the environments that differ, those that change times first.

    None where a side does not say what its environment was: see :func:`times_advice`.
    """
    sides = [_settings(runs) for runs in (before, after)]
    if not all(sides):
        return []
    found = []
    for name in sorted({*sides[0], *sides[1]}):
        a, b = (side.get(name, _NONE) for side in sides)
        if a != b:
            found.append(Difference("", name, a, b, disturbs=name not in _CODE))
    return sorted(found, key=lambda item: not item.disturbs)


def _settings(runs: pd.DataFrame) -> dict[str, str]:
    """The distinct values of each setting, as text."""
    found: dict[str, dict[str, None]] = {}
    for row in records(integrity.environments(runs)):
        settings = row["environment"] | {"jobs": row["jobs"], "threads": row["threads"]}
        for name, value in settings.items():
            found.setdefault(name, {})[value] = None
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def times_advice(before: pd.DataFrame, after: pd.DataFrame, differing: Iterable[Difference]) -> str:
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


def cautions(before: Results, after: Results) -> list[str]:
    """What limits each side by itself, as its report says; what limits both is said once."""
    sides = [_cautions(side) for side in (before, after)]
    both = [f"A and B: {sentence}" for sentence in sides[0] if sentence in sides[1]]
    alone = [
        f"{name}: {sentence}"
        for name, mine, other in zip("AB", sides, reversed(sides), strict=True)
        for sentence in mine
        if sentence not in other
    ]
    return [*both, *alone]


def _cautions(results: Results) -> list[str]:
    runs, traces = results.runs, results.traces
    if "reference_primal" in runs:
        traces = objective.trace_suboptimality(traces, runs)
    folded = [
        task.label
        for task in results.study.tasks
        if isinstance(task, SvmTask) and task.folds is not None
    ]
    return integrity.cautions(runs, traces, integrity.environments(runs), folded)


def code_differences(
    before: pd.DataFrame, after: pd.DataFrame, folders: tuple[Path, Path]
) -> list[Difference]:
    """The classes, parameters, limits and sources of solvers that differ, solver by solver."""
    found: list[Difference] = []
    for solver in dict.fromkeys([*before["solver"], *after["solver"]]):
        sides = [
            _code(runs[(runs["solver"] == solver) & (runs["key"] != "")], folder)
            for runs, folder in zip((before, after), folders, strict=True)
        ]
        if not all(sides):
            continue
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            a, b = (side.get(name, _NONE) for side in sides)
            if a != b:
                found.append(Difference(str(solver), name, a, b))
    return found


def merged(differing: Iterable[Difference]) -> list[Difference]:
    """One entry for all solvers that differ in the same way."""
    alike: dict[tuple[str, str, str, bool], list[str]] = {}
    for item in differing:
        alike.setdefault((item.field, item.before, item.after, item.disturbs), []).append(
            item.solver
        )
    return [Difference(", ".join(solvers), *what) for what, solvers in alike.items()]


def without_sources(differing: Iterable[Difference]) -> list[Difference]:
    """The same with the source files of each solver in one entry, which tells their number."""
    differing = list(differing)
    counts = Counter(item.solver for item in differing if _is_source(item))
    numbers = [Difference(solver, "source files", "", str(n)) for solver, n in counts.items()]
    return [*(item for item in differing if not _is_source(item)), *numbers]


def _is_source(item: Difference) -> bool:
    return item.field.startswith(_SOURCE)


def _code(runs: pd.DataFrame, folder: Path) -> dict[str, str]:
    """What the records of a solver say of its code; several values where they disagree."""
    found: dict[str, dict[str, None]] = {}
    columns = ["solver_class", "version", "params", "budget", "key_parts"]
    known = runs[runs["solver_class"] != ""]
    for row in records(known.drop_duplicates(columns)):
        said = {"class": row["solver_class"]}
        if row["version"]:
            said["version"] = content_version(row["version"])
        said |= integrity.flatten(json_object(row["params"]), "params.")
        said |= integrity.flatten(json_object(row["budget"]), "budget.")
        source = json_object(row["key_parts"]).get("source")
        files = read_sources(folder, source) if isinstance(source, str) else None
        said |= {f"{_SOURCE}{name}": digest[:10] for name, digest in (files or {}).items()}
        for name, value in said.items():
            found.setdefault(name, {})[value] = None
    return {name: ", ".join(sorted(values)) for name, values in found.items()}
