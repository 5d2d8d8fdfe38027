"""Load a results folder of any kind of study into one object that every later layer takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..harness.errors import RecordError
from ..harness.planning.plan import kind_named
from ..harness.results.measures import counter_measures
from ..harness.results.records import EXPECTED_STATUSES, CheckpointBase, RecordBase, schema_of
from ..harness.results.store import RecordStore
from ..harness.words import REASON_LIMIT, visible, visible_lines
from ..solvers.numeric.counters import (
    FeasibilityCounters,
    computed_counters,
    evaluation_counters,
)
from .described import PlannedRun, Study, read_study

Array = npt.NDArray[np.float64]

#: Statuses of runs that ended as planned and so have a result ("skipped" ones have none).
OK_STATUSES: frozenset[str] = frozenset(EXPECTED_STATUSES - {"skipped"})
#: The sums of counters that stand for all that a run evaluated, and the counters in each.
SUMS: dict[str, tuple[str, ...]] = {
    "evaluations": evaluation_counters(FeasibilityCounters),
    "evaluations_computed": computed_counters(FeasibilityCounters),
}

_IDENTITY = ("key", "task", "solver", "seed")


@dataclass(frozen=True)
class Results:
    """A study with all that is stored of its planned runs.

    Attributes
    ----------
    folder : Path
        The results folder.
    kind : str
        Name of the kind of study.
    study : Study
        What was planned.
    runs : DataFrame
        One row per planned run, in the order of the study's tasks and solvers, then by seed. The
        columns of the record without the trace (null numbers are NaN), one column for each counter
        (NaN where it was not counted), and ``ok`` (ended as planned and has a result),
        ``evaluations`` and ``evaluations_computed`` (all that was evaluated: kernel entries, inner
        products and stored matrix entries, one as one), and the traits of the run that measures
        may need. A run without a readable record has the status ``missing`` or ``damaged`` and
        says why in ``reason``.
    traces : DataFrame
        One row per checkpoint of these runs: task, solver, seed, status, ok, the traits, the
        number of the checkpoint, its fields and counters, and the sums of evaluations. A run that
        ended as planned without a trace has its final state as its only checkpoint.
    """

    folder: Path
    kind: str
    study: Study
    runs: pd.DataFrame
    traces: pd.DataFrame


def load_results(folder: Path) -> Results:
    """Read the study and the records of its planned runs.

    Records that the study does not plan (another selection, an older source) are left aside.

    Parameters
    ----------
    folder : Path
        The results folder: ``study.json`` and ``runs/``.

    Returns
    -------
    Results

    Raises
    ------
    ReportError
        If the folder has no ``study.json`` that this release can read.
    """
    study = read_study(folder)
    record_type = kind_named(study.kind).record
    store = RecordStore(folder / "runs")
    solvers = {solver.label: solver for solver in study.solvers}
    rows: list[dict[str, Any]] = []
    traces = _TraceColumns(record_type)
    for planned in _in_study_order(study):
        record = _read_planned(store, planned, record_type)
        row = _run_row(planned, record)
        traits = solvers[planned.solver].traits_in(row)
        row |= traits
        row["ok"] = row["status"] in OK_STATUSES
        rows.append(row)
        if isinstance(record, RecordBase):
            traces.add(row, _states(record, row["ok"]))
    flags = ("ok", *(study.solvers[0].traits_in({}) if study.solvers else ()))
    return Results(
        folder=folder,
        kind=study.kind,
        study=study,
        runs=_runs_frame(rows, record_type, flags),
        traces=traces.frame(flags),
    )


def _in_study_order(study: Study) -> list[PlannedRun]:
    tasks = {task.label: place for place, task in enumerate(study.tasks)}
    solvers = {solver.label: place for place, solver in enumerate(study.solvers)}
    return sorted(study.planned, key=lambda run: (tasks[run.task], solvers[run.solver], run.seed))


@dataclass(frozen=True)
class _NoRecord:
    """Why a planned run has no record to show."""

    status: Literal["missing", "damaged"]
    reason: str


def _read_planned(
    store: RecordStore, planned: PlannedRun, record_type: type[RecordBase]
) -> RecordBase | _NoRecord:
    name = f"runs/{planned.file}"
    try:
        record = store.load(planned.file)
    except RecordError as error:
        return _NoRecord("damaged", f"runs/{str(error).removeprefix(f'{store.folder}/')}")
    if record is None:
        return _NoRecord("missing", f"no record: {name} does not exist")
    if not isinstance(record, record_type):
        return _NoRecord("damaged", f"{name}: is of a study of the kind {record.kind!r}")
    for item in _IDENTITY:
        found, expected = getattr(record, item), getattr(planned, item)
        if found != expected:
            return _NoRecord("damaged", f"{name}: has {item} {found!r}, not {expected!r}")
    return record


def _run_row(planned: PlannedRun, record: RecordBase | _NoRecord) -> dict[str, Any]:
    if isinstance(record, RecordBase):
        row = record.row()
        # Records of earlier releases may hold whatever a solver said, in any length.
        return row | {
            "reason": visible(row["reason"], REASON_LIMIT),
            "traceback": visible_lines(row["traceback"]),
        }
    row = {name: getattr(planned, name) for name in _IDENTITY}
    return row | {"status": record.status, "reason": visible(record.reason, REASON_LIMIT)}


def _states(record: RecordBase, ok: bool) -> list[CheckpointBase]:
    """The checkpoints of a run, or its final state where it ended as planned without any."""
    if record.trace or not ok:
        return record.trace
    names = [item.name for item in fields(record.checkpoint)]
    return [record.checkpoint(**{name: getattr(record, name) for name in names})]


class _TraceColumns:
    """The checkpoints of all runs, column by column: a dict for each would take the memory of ten.

    Parameters
    ----------
    record_type : type of RecordBase
    """

    def __init__(self, record_type: type[RecordBase]) -> None:
        known = [item.name for item in fields(record_type.checkpoint) if item.name != "counters"]
        self._runs: list[dict[str, Any]] = []
        self._lengths: list[int] = []
        self._columns: dict[str, list[Array]] = {name: [] for name in known}
        self._counts: list[dict[str, Array]] = []

    def add(self, row: dict[str, Any], states: Sequence[CheckpointBase]) -> None:
        """Take the checkpoints of a run, whose row is given."""
        self._runs.append(row)
        self._lengths.append(len(states))
        for name, parts in self._columns.items():
            # None becomes NaN.
            parts.append(np.array([getattr(state, name) for state in states], np.float64))
        counters = [state.counters or {} for state in states]
        names = dict.fromkeys(name for counted in counters for name in counted)
        self._counts.append(
            {name: np.array([c.get(name) for c in counters], np.float64) for name in names}
        )

    def frame(self, flags: tuple[str, ...]) -> pd.DataFrame:
        """A row for each checkpoint; ``flags`` are the traits of runs."""
        runs = pd.DataFrame(self._runs, columns=["task", "solver", "seed", "status", *flags])
        frame = runs.loc[runs.index.repeat(self._lengths)].reset_index(drop=True)
        columns = {"checkpoint": _joined([np.arange(n) for n in self._lengths], np.int64)}
        columns |= {name: _joined(parts) for name, parts in self._columns.items()}
        counters = {
            **counter_measures(),
            **{name: None for found in self._counts for name in found},
        }
        columns |= {name: self._counter(name) for name in counters if name not in columns}
        return _with_sums(frame.assign(**columns).astype(dict.fromkeys(flags, "bool")))

    def _counter(self, name: str) -> Array:
        """Its counts, NaN where it was not counted."""
        parts = zip(self._counts, self._lengths, strict=True)
        return _joined([found.get(name, np.full(n, np.nan)) for found, n in parts])


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: type = np.float64) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _runs_frame(
    rows: list[dict[str, Any]], record_type: type[RecordBase], flags: tuple[str, ...]
) -> pd.DataFrame:
    schema = [item for item in schema_of(record_type) if item.name not in ("trace", "counters")]
    texts = [item.name for item in schema if item.type == pa.string()]
    numbers = [item.name for item in schema if item.type in (pa.int64(), pa.float64())]
    numbers = [name for name in numbers if name not in _IDENTITY]
    others = [item.name for item in schema if item.name not in (*texts, *numbers)]
    found = {name: None for row in rows for name in row}
    columns = [*flags, *texts, *numbers, *others]
    counters = [name for name in {**counter_measures(), **found} if name not in columns]
    frame = pd.DataFrame(rows, columns=[*columns, *counters])
    frame = frame.astype(dict.fromkeys([*numbers, *counters], np.float64))
    frame = frame.astype(dict.fromkeys(flags, "bool"))
    frame[texts] = frame[texts].astype(object).fillna("")
    return _with_sums(frame)


def _with_sums(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the sums of counters; without any known count the sum is unknown as well."""
    sums = {
        name: frame[list(parts)].sum(axis="columns", min_count=1) for name, parts in SUMS.items()
    }
    return frame.assign(**sums)
