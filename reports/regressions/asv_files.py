"""asv's results as snapshots: the values of one commit on one machine.

asv itself reads its files. null and infinite are failures, NaN is a benchmark that was skipped.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ...harness.words import visible
from ..errors import ReportError

#: The measure that says whether a cell failed; its other values are then left out.
FAILED = "failed"
#: Of the values of a snapshot. A cell is a suite, which is a module and a class, with one
#: combination of its parameters: "work.Work SMO rbf dense". A measure is a method without
#: ``track_``, such as "evaluations", or whole: "time_fit". Seeds are independent timings: the turns
#: that a commit had while the two of a comparison took turns. What one run of asv repeats is none:
#: it all depends on that run's process and moment. A value is NaN if the benchmark failed.
COLUMNS = ["cell", "measure", "seed", "value"]


def task_and_solver(cell: str) -> tuple[str, str]:
    """A cell as a solver, the first parameter, on a task; without parameters it is its suite."""
    suite, _, name = cell.partition(" ")
    solver, _, rest = name.partition(" ")
    return f"{suite} {rest}".rstrip(), solver or suite


def cell_of(task: str, solver: str) -> str:
    """The cell of a task and a solver."""
    suite, _, rest = task.partition(" ")
    return suite if solver == suite else f"{suite} {solver} {rest}".rstrip()


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
    values: pd.DataFrame  # with the columns COLUMNS, by cell
    # Of the code of all benchmarks that were run: suite and measure, "work.Work.evaluations".
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> set[str]:
        """All cells."""
        return set(self.values["cell"])

    @property
    def failed(self) -> set[str]:
        """The cells that say so themselves, or of which asv got no value."""
        values = self.values["value"]
        failed = values.isna() | ((self.values["measure"] == FAILED) & (values > 0))
        return set(self.values.loc[failed, "cell"])

    @property
    def unmeasured(self) -> list[str]:
        """The suites of several cells of which asv got no value, so that nothing compares."""
        suites = self.values.groupby(self.values["cell"].str.split(" ").str[0])
        missing = suites["value"].count() == 0
        return [*missing.index[missing & (suites["cell"].nunique() > 1)]]


def read_results(folder: Path) -> list[Snapshot]:
    """All snapshots with values of asv's ``results_dir``, in the order of lanes, dates and hashes.

    A ReportError if the folder holds no results, or a file in it is not one of asv's.
    """
    if not folder.is_dir():
        raise ReportError(f"{folder}: no folder of asv's results; 'asv run' makes one")
    files = sorted(path for path in folder.glob("*/*.json") if path.name != "machine.json")
    snapshots = [each for path in files if len((each := _snapshot(path)).values)]
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
        names = results.get_all_result_keys()
        values = {key: value for name in names for key, value in _values(results, name)}
        by_cell = sorted(values.items(), key=lambda each: each[0][0])
        return Snapshot(
            commit=str(results.commit_hash),
            date=int(results.date),
            lane=Lane(visible(results.params["machine"]), visible(results.env_name)),
            machine={key: visible(value) for key, value in results.params.items()},
            values=pd.DataFrame([(*key, 0, value) for key, value in by_cell], columns=COLUMNS),
            versions={
                benchmark(name): str(version or "")
                for name, version in results.benchmark_version.items()
            },
        )
    except (UserError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        reason = visible(str(error).partition("\n")[0])
        raise ReportError(
            f"{path}: not a file of asv's results ({reason}); restore or remove it"
        ) from error


def _values(results: Any, name: str) -> Iterator[tuple[tuple[str, str], float]]:
    """The values of a benchmark, one for each combination of its parameters."""
    suite, _, measure = benchmark(name).rpartition(".")
    params = results.get_result_params(name)
    cells = itertools.product(*params)
    for words, value in zip(cells, results.get_result_value(name, params), strict=True):
        # asv keeps parameters as they are written in Python; texts read better without quotes.
        cell = visible(" ".join([suite, *(str(each).strip("'\"") for each in words)]))
        if value is None or math.isinf(value):
            yield (cell, measure), math.nan
        elif not math.isnan(value):
            yield (cell, measure), float(value)


def benchmark(name: str) -> str:
    """A benchmark of asv as suite and measure."""
    suite, _, method = name.rpartition(".")
    return f"{suite}.{method.removeprefix('track_')}"
