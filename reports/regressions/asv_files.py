"""Read the files in which asv keeps its results, and check them while reading.

``<machine>/<commit>-<environment>.json`` holds the values of one commit, ``benchmarks.json`` what
the benchmarks are. Values are in the order of ``itertools.product`` of the parameters; null is a
failure and NaN a benchmark that was skipped.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ...harness.words import visible
from ..errors import ReportError

#: The measure that says whether a cell failed; its other values are then left out.
FAILED = "failed"


class Cell(NamedTuple):
    """One combination of parameters of a suite, such as a solver on a task.

    Attributes
    ----------
    suite : str
        Module and class, such as ``work.Work``.
    name : str
        The parameters, such as ``SMO rbf dense bias``.
    """

    suite: str
    name: str

    @property
    def group(self) -> str:
        """The first word of the name: the solver, where a suite is about solvers."""
        return self.name.partition(" ")[0] or self.suite


class Key(NamedTuple):
    """What one value is of.

    Attributes
    ----------
    cell : Cell
    measure : str
        The method without ``track_``, such as ``evaluations``, or whole, such as ``time_fit``.
    """

    cell: Cell
    measure: str


class Benchmark(NamedTuple):
    """One method of a suite, which has a value for each cell.

    Attributes
    ----------
    suite, measure : str
        As in :class:`Cell` and :class:`Key`.
    """

    suite: str
    measure: str


@dataclass(frozen=True)
class Value:
    """One value.

    Attributes
    ----------
    number : float or None
        None: the benchmark failed.
    samples : tuple of float
        Independent timings: one for each turn that a commit had while the two of a comparison took
        turns. What one run of asv repeats is no sample: it all depends on that run's process and
        moment.
    """

    number: float | None
    samples: tuple[float, ...] = ()


class Lane(NamedTuple):
    """Where values may be compared: one machine with one environment.

    Attributes
    ----------
    machine, environment : str
    """

    machine: str
    environment: str


@dataclass(frozen=True)
class Snapshot:
    """All values of one commit on one lane.

    Attributes
    ----------
    commit : str
        The full hash.
    date : int
        Of the commit, in milliseconds since 1970, as asv records it.
    lane : Lane
    machine : mapping of str to str
        What asv recorded of it: cpu, os, ram and so on.
    values : mapping of Key to Value
        Without those that were skipped.
    versions : mapping of Benchmark to str
        Of the code of all benchmarks that were run.
    """

    commit: str
    date: int
    lane: Lane
    machine: Mapping[str, str]
    values: Mapping[Key, Value]
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


#: The version of asv's files that is read.
FORMAT = 2
#: A larger file is none of asv's.
LARGEST_BYTES = 64 * 2**20
# Combinations of parameters of one benchmark.
_MOST_CELLS = 100_000
# Any two numbers up to the one, and from the other on, have a ratio.
_LARGEST_NUMBER, _SMALLEST_NUMBER = 1e150, 1e-150
_MACHINE = "machine.json"
_HASH = re.compile(r"[0-9a-f]{7,64}")
_NAME = re.compile(r"[\w.]+")


def read_results(folder: Path) -> list[Snapshot]:
    """All snapshots of a results folder, in the order of lanes, dates and hashes.

    Parameters
    ----------
    folder : Path
        asv's ``results_dir``, with a folder for each machine.

    Returns
    -------
    list of Snapshot
        Without those in which nothing was measured.

    Raises
    ------
    ReportError
        If the folder holds no results, or a file in it is not one of asv's.
    """
    if not folder.is_dir():
        raise ReportError(f"{folder}: no folder of asv's results; 'asv run' makes one")
    files = sorted(path for path in folder.glob("*/*.json") if path.name != _MACHINE)
    found = [snapshot for path in files if (snapshot := read_snapshot(path)).values]
    if not found:
        raise ReportError(f"{folder}: holds no results of asv; 'asv run' writes them there")
    for (lane, commit), times in Counter((each.lane, each.commit) for each in found).items():
        if times > 1:
            raise ReportError(
                f"{folder}: {times} files have results of commit {commit[:10]} on "
                f"{' with '.join(lane)}; remove all but one"
            )
    return sorted(found, key=lambda each: (each.lane, each.date, each.commit))


def read_snapshot(path: Path) -> Snapshot:
    """One file of results.

    Raises
    ------
    ReportError
        If it is not such a file; the message says what is wrong with it.
    """
    content = _object(path)
    machine = _texts(path, content, "params")
    results = content.get("results")
    if not isinstance(results, dict):
        raise _damaged(path, "no results")
    columns = content.get("result_columns")
    if not isinstance(columns, list) or not {"result", "params"} <= set(map(str, columns)):
        raise _damaged(path, "no result_columns with result and params")
    values: dict[Key, Value] = {}
    versions: dict[Benchmark, str] = {}
    for name, row in results.items():
        if not _NAME.fullmatch(name) or not isinstance(row, list) or len(row) > len(columns):
            raise _damaged(path, f"{visible(name)!r} is no benchmark with its values")
        fields = dict(zip(map(str, columns), row, strict=False))
        values.update(_values(path, name, fields))
        versions[_benchmark(name)] = str(fields.get("version") or "")
    return Snapshot(
        commit=_commit(path, content),
        date=_date(path, content),
        lane=Lane(machine.get("machine") or path.parent.name, _environment(path, content)),
        machine=machine,
        values=values,
        versions=versions,
    )


def _object(path: Path) -> dict[str, Any]:
    """A file of JSON of the version that asv writes."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise _damaged(path, f"larger than {LARGEST_BYTES // 2**20} MiB")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{path}: cannot be read ({error})") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "no JSON") from error
    if not isinstance(content, dict):
        raise _damaged(path, "no JSON object")
    if content.get("version") != FORMAT:
        raise ReportError(
            f"{path}: is of version {visible(str(content.get('version')))[:20]} of asv's files; "
            f"only version {FORMAT} (asv 0.6) is read; 'asv update' converts older ones"
        )
    return content


def _damaged(path: Path, what: str) -> ReportError:
    return ReportError(f"{path}: not a file of asv's results ({what}); restore or remove it")


def _texts(path: Path, content: Mapping[str, Any], name: str) -> dict[str, str]:
    found = content.get(name)
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise _damaged(path, f"no {name}")
    return {key: visible(value) for key, value in found.items()}


def _commit(path: Path, content: Mapping[str, Any]) -> str:
    found = content.get("commit_hash")
    if not isinstance(found, str) or not _HASH.fullmatch(found):
        raise _damaged(path, "no commit_hash")
    return found


def _date(path: Path, content: Mapping[str, Any]) -> int:
    found = content.get("date")
    # asv writes milliseconds; this is the year 10000.
    if (
        not isinstance(found, int)
        or isinstance(found, bool)
        or not 0 <= found < 253_402_300_800_000
    ):
        raise _damaged(path, "no date")
    return found


def _environment(path: Path, content: Mapping[str, Any]) -> str:
    found = content.get("env_name")
    if not isinstance(found, str):
        raise _damaged(path, "no env_name")
    return visible(found)


def _values(path: Path, name: str, fields: Mapping[str, Any]) -> Iterator[tuple[Key, Value]]:
    """The values of a benchmark, one for each combination of its parameters."""
    params = fields.get("params", [])
    if not isinstance(params, list) or not all(isinstance(each, list) for each in params):
        raise _damaged(path, f"the parameters of {name}")
    if math.prod(map(len, params)) > _MOST_CELLS:
        raise _damaged(path, f"{name} has more than {_MOST_CELLS:,} combinations of parameters")
    cells = [_cell(each) for each in itertools.product(*params)]
    numbers = _column(path, name, fields.get("result"), len(cells))
    suite, measure = _benchmark(name)
    for place, cell in enumerate(cells):
        number = _number(path, name, numbers[place])
        if number is not None and math.isnan(number):
            continue
        yield (
            Key(Cell(suite, cell), measure),
            Value(number),
        )


def _benchmark(name: str) -> Benchmark:
    suite, _, method = name.rpartition(".")
    return Benchmark(suite, method.removeprefix("track_"))


def _cell(params: Sequence[Any]) -> str:
    return visible(" ".join(_parameter(str(each)) for each in params))


@cache
def _parameter(text: str) -> str:
    """asv keeps parameters as they are written in Python; texts read better without quotes."""
    try:
        value = ast.literal_eval(text[:1000])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _column(path: Path, name: str, found: object, size: int) -> list[Any]:
    """A value for each cell; asv writes null for as many nulls."""
    if found is None:
        return [None] * size
    if not isinstance(found, list) or len(found) != size:
        raise _damaged(path, f"{name} has not {size} values")
    return found


def _number(path: Path, name: str, found: object) -> float | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _damaged(path, f"{name} has a value that is no number")
    try:
        number = float(found)
    except OverflowError:
        number = math.inf
    # What cannot be compared is as good as none: a value that is infinite or has no ratios.
    if abs(number) > _LARGEST_NUMBER:
        return None
    return 0.0 if abs(number) < _SMALLEST_NUMBER else number
