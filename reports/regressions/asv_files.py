"""asv's results as snapshots: the values of one commit on one machine.

asv itself reads its files. null is a failure and NaN a benchmark that was skipped.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ...harness.words import visible
from ..errors import ReportError

#: The measure that says whether a cell failed; its other values are then left out.
FAILED = "failed"


class Cell(NamedTuple):
    """One combination of parameters of a suite, such as a solver on a task."""

    suite: str  # module and class, such as ``work.Work``
    name: str  # the parameters, such as ``SMO rbf dense bias``

    @property
    def group(self) -> str:
        """The first word of the name: the solver, where a suite is about solvers."""
        return self.name.partition(" ")[0] or self.suite


class Key(NamedTuple):
    """What one value is of."""

    cell: Cell
    measure: str  # the method without ``track_``, such as ``evaluations``, or whole: ``time_fit``


class Benchmark(NamedTuple):
    """One method of a suite, which has a value for each cell; named as in Cell and Key."""

    suite: str
    measure: str


@dataclass(frozen=True)
class Value:
    """One value; the number is None if the benchmark failed.

    Samples are independent timings: one for each turn that a commit had while the two of a
    comparison took turns. What one run of asv repeats is no sample: it all depends on that run's
    process and moment.
    """

    number: float | None
    samples: tuple[float, ...] = ()


class Lane(NamedTuple):
    """Where values may be compared: one machine with one environment."""

    machine: str
    environment: str


@dataclass(frozen=True)
class Snapshot:
    """All values of one commit on one lane, without those that were skipped."""

    commit: str  # the full hash
    date: int  # of the commit, in milliseconds since 1970, as asv records it
    lane: Lane
    machine: Mapping[str, str]  # what asv recorded of it: cpu, os, ram and so on
    values: Mapping[Key, Value]
    # Of the code of all benchmarks that were run.
    versions: Mapping[Benchmark, str] = field(default_factory=dict)

    def failed_cells(self) -> frozenset[Cell]:
        """The cells that say so themselves, or of which asv got no value."""
        return frozenset(
            key.cell
            for key, value in self.values.items()
            if value.number is None or (key.measure == FAILED and value.number > 0)
        )

    def unmeasured(self) -> tuple[str, ...]:
        """The suites of several cells of which asv got no value, so that nothing compares."""
        cells: dict[str, set[Cell]] = {}
        for key in self.values:
            cells.setdefault(key.cell.suite, set()).add(key.cell)
        measured = {
            key.cell.suite for key, value in self.values.items() if value.number is not None
        }
        return tuple(sorted(suite for suite in cells.keys() - measured if len(cells[suite]) > 1))

    def cells(self) -> frozenset[Cell]:
        """All cells."""
        return frozenset(key.cell for key in self.values)


# Any two numbers up to the one, and from the other on, have a ratio.
_LARGEST_NUMBER, _SMALLEST_NUMBER = 1e150, 1e-150


def read_results(folder: Path) -> list[Snapshot]:
    """All snapshots with values of asv's ``results_dir``, in the order of lanes, dates and hashes.

    A ReportError if the folder holds no results, or a file in it is not one of asv's.
    """
    if not folder.is_dir():
        raise ReportError(f"{folder}: no folder of asv's results; 'asv run' makes one")
    files = sorted(path for path in folder.glob("*/*.json") if path.name != "machine.json")
    snapshots = [snapshot for path in files if (snapshot := _snapshot(path)).values]
    if not snapshots:
        raise ReportError(f"{folder}: holds no results of asv; 'asv run' writes them there")
    for (lane, commit), times in Counter((each.lane, each.commit) for each in snapshots).items():
        if times > 1:
            raise ReportError(
                f"{folder}: {times} files have results of commit {commit[:10]} on "
                f"{' with '.join(lane)}; remove all but one"
            )
    return sorted(snapshots, key=lambda each: (each.lane, each.date, each.commit))


def _snapshot(path: Path) -> Snapshot:
    """One file of results."""
    try:
        from asv.results import Results
        from asv.util import UserError
    except ImportError as error:
        raise ReportError("asv is not installed; pip install 'marginbench[regressions]'") from error
    try:
        results = Results.load(str(path))
        values: dict[Key, Value] = {}
        for name in results.get_all_result_keys():
            values.update(_values(results, name))
        return Snapshot(
            commit=str(results.commit_hash),
            date=int(results.date),
            lane=Lane(visible(results.params["machine"]), visible(results.env_name)),
            machine={key: visible(value) for key, value in results.params.items()},
            values=values,
            versions={
                _benchmark(name): str(version or "")
                for name, version in results.benchmark_version.items()
            },
        )
    except (UserError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        reason = visible(str(error).partition("\n")[0])
        raise ReportError(
            f"{path}: not a file of asv's results ({reason}); restore or remove it"
        ) from error


def _values(results: Any, name: str) -> dict[Key, Value]:
    """The values of a benchmark, one for each combination of its parameters."""
    suite, measure = _benchmark(name)
    params = results.get_result_params(name)
    cells = [
        " ".join(_parameter(str(each)) for each in item) for item in itertools.product(*params)
    ]
    numbers = results.get_result_value(name, params)
    pairs = zip(cells, map(_number, numbers), strict=True)
    return {
        Key(Cell(suite, visible(cell)), measure): Value(number)
        for cell, number in pairs
        if number is None or not math.isnan(number)
    }


def _benchmark(name: str) -> Benchmark:
    suite, _, method = name.rpartition(".")
    return Benchmark(suite, method.removeprefix("track_"))


@cache
def _parameter(text: str) -> str:
    """asv keeps parameters as they are written in Python; texts read better without quotes."""
    try:
        value = ast.literal_eval(text[:1000])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _number(value: float | None) -> float | None:
    """What cannot be compared is as good as none: a value that is infinite or has no ratios."""
    if value is None or abs(value) > _LARGEST_NUMBER:
        return None
    return 0.0 if abs(value) < _SMALLEST_NUMBER else float(value)
