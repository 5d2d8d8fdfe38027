"""Load a results folder of any kind of study into one object that every later layer takes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..harness.planning.manifest import restored
from ..harness.planning.plan import kind_named
from ..harness.results.description import read_description
from ..harness.results.journal import runs_table
from ..harness.results.measures import counter_measures
from ..harness.results.records import EXPECTED_STATUSES, RecordBase, schema_of
from ..harness.study.model import StudyBase
from ..harness.study.select import select
from ..harness.words import plural
from ..solvers.numeric.counters import (
    FeasibilityCounters,
    computed_counters,
    evaluation_counters,
)
from .described import PlannedRun, Study, read_study
from .errors import ReportError
from .frames import RUN

Array = npt.NDArray[np.float64]
_Task = TypeVar("_Task")

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

    ``runs`` has a row for each planned run, in the order of the study's tasks and solvers, then by
    seed: the columns of the record (null numbers are NaN), a column for each counter (NaN where it
    was not counted), ``ok`` (ended as planned and has a result), the sums of counters, and the
    traits of the run that measures may need. A run without a readable record has the status
    ``missing`` or ``damaged`` and says why in ``reason``.

    ``traces`` has a row for each checkpoint of these runs. A run that ended as planned without a
    trace has its final state as its only checkpoint.
    """

    folder: Path
    kind: str
    study: Study
    runs: pd.DataFrame
    traces: pd.DataFrame
    #: Sentences on what of the study this is, where it is a part of what is recorded.
    notes: tuple[str, ...] = ()
    #: The statistics computed so far: see :func:`.analysis.once`.
    answers: dict[Hashable, Any] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def tasks_of(self, described: type[_Task]) -> list[_Task]:
        """The study's tasks of one type of descriptions."""
        return [task for task in self.study.tasks if isinstance(task, described)]


def load_results(folder: Path, *, write: bool = False) -> Results:
    """Read the study and the records of its planned runs; other records are left aside.

    With ``write``, ``runs.parquet`` is written, from which they are read the next time. It is a
    ReportError if the folder has no ``study.json`` that this release can read.
    """
    study = read_study(folder)
    record_type = kind_named(study.kind).record
    table, damaged = runs_table(folder, record_type, write=write)
    solvers = {solver.label: solver for solver in study.solvers}
    recorded = table.drop_columns(["trace"]).to_pylist()
    recorded = [row | dict(row.pop("counters") or ()) for row in recorded]
    places = {row["key"]: index for index, row in enumerate(recorded)}
    rows: list[dict[str, Any]] = []
    tasks = {task.label: index for index, task in enumerate(study.tasks)}
    order_of = {solver: index for index, solver in enumerate(solvers)}
    for planned in sorted(
        study.planned, key=lambda run: (tasks[run.task], order_of[run.solver], run.seed)
    ):
        index = places.get(planned.key)
        row = _without_record(planned, damaged) if index is None else recorded[index]
        row |= solvers[planned.solver].traits_in(row)
        row["ok"] = row["status"] in OK_STATUSES
        rows.append(row)
    flags = ("ok", *(study.solvers[0].traits_in({}) if study.solvers else ()))
    runs = _runs_frame(rows, record_type, flags)
    order = [places.get(row["key"], -1) for row in rows]
    traces = _traces(table, order, runs, flags)
    # Arrow keeps what it no longer needs, which was most of it: the frames are copies.
    del table
    pa.default_memory_pool().release_unused()
    return Results(folder, study.kind, study, runs, traces)


def stored_study(folder: Path, kind: str) -> StudyBase:
    """The study of a results folder, as ``run`` takes it."""
    stored = read_description(folder)
    if stored is None or "study" not in stored:
        raise ReportError(
            f"{folder}: written by an early release, which did not store the study; run the study "
            "again"
        )
    return restored(kind_named(kind).study, stored["study"], folder).part


def part_of(
    results: Results, runs: Set[tuple[str, str, int]], notes: Iterable[str] = ()
) -> Results:
    """Only some of the runs (task, solver, seed), as in a study without the others."""
    study = results.study
    planned = tuple(run for run in study.planned if (run.task, run.solver, run.seed) in runs)
    tasks, solvers = {run.task for run in planned}, {run.solver for run in planned}
    part = study.model_copy(
        update={
            "tasks": tuple(item for item in study.tasks if item.label in tasks),
            "solvers": tuple(item for item in study.solvers if item.label in solvers),
            "planned": planned,
        }
    )

    def rows(frame: pd.DataFrame) -> pd.DataFrame:
        chosen = pd.MultiIndex.from_frame(frame[RUN]).isin(list(runs))
        return frame[chosen].reset_index(drop=True)

    shown = rows(results.runs), rows(results.traces)
    return replace(results, study=part, runs=shown[0], traces=shown[1], notes=tuple(notes))


def narrowed(results: Results, where: str) -> Results:
    """Only the runs for which an expression holds, as ``run --where`` chooses them."""
    chosen = select(stored_study(results.folder, results.kind), where=where)
    runs = {
        (task.label, entry.label, seed)
        for task in chosen.tasks
        for entry in chosen.solvers
        for seed in chosen.seeds_of(task, entry)
    }
    shown = sum((run.task, run.solver, run.seed) in runs for run in results.study.planned)
    if not shown:
        raise ReportError(f"--where {where!r}: no run of these results is chosen")
    of = plural(len(results.study.planned), "planned run")
    return part_of(results, runs, [f"Only runs with {where} are shown: {shown} of {of}."])


def _without_record(planned: PlannedRun, damaged: Mapping[str, str]) -> dict[str, Any]:
    row = {name: getattr(planned, name) for name in _IDENTITY}
    if planned.key in damaged:
        return row | {"status": "damaged", "reason": damaged[planned.key]}
    return row | {"status": "missing", "reason": "no record in the journal"}


def _traces(
    table: pa.Table, order: Sequence[int], runs: pd.DataFrame, flags: tuple[str, ...]
) -> pd.DataFrame:
    """A row for each checkpoint of each run."""
    places = pa.array([index for index in order if index >= 0], pa.int64())
    stored = table["trace"].take(places).combine_chunks()
    runs = runs[np.array(order, int) >= 0].reset_index(drop=True)
    fields = pa.Table.from_struct_array(stored.flatten())
    counted = _counters(fields["counters"].combine_chunks())
    numbers = fields.drop_columns("counters").to_pandas().astype(np.float64)
    names = [name for name in {**counter_measures(), **counted} if name not in numbers]
    counters = pd.DataFrame(counted, index=numbers.index).reindex(columns=names)
    lengths = stored.value_lengths().to_numpy(zero_copy_only=False)
    run = np.repeat(np.arange(len(runs)), lengths)
    states = pd.concat([numbers, counters.astype(np.float64)], axis="columns").set_axis(run)
    # A run that ended as planned without a trace shows its final state.
    last = runs[runs["ok"] & (lengths == 0)].reindex(columns=states.columns).astype(np.float64)
    if len(last):
        states = pd.concat([states, last]).sort_index(kind="stable")
    about = runs.loc[states.index, ["task", "solver", "seed", "status", *flags]]
    about = about.assign(checkpoint=states.groupby(level=0).cumcount())
    return _with_sums(pd.concat([about, states], axis="columns").reset_index(drop=True))


def _counters(stored: pa.MapArray) -> dict[str, Array]:
    """The counts of each counter, NaN where it was not counted."""
    counts = np.repeat(np.arange(len(stored)), np.diff(stored.offsets.to_numpy()))
    by_name: dict[str, Array] = {}
    start, end = stored.offsets[0].as_py(), stored.offsets[-1].as_py()
    keys = stored.keys.slice(start, end - start).dictionary_encode()
    values = stored.items.slice(start, end - start).to_numpy().astype(np.float64)
    for code, name in enumerate(keys.dictionary.to_pylist()):
        chosen = keys.indices.to_numpy() == code
        by_name[name] = np.full(len(stored), np.nan)
        by_name[name][counts[chosen]] = values[chosen]
    return by_name


def _runs_frame(
    rows: list[dict[str, Any]], record_type: type[RecordBase], flags: tuple[str, ...]
) -> pd.DataFrame:
    schema = [item for item in schema_of(record_type) if item.name not in ("trace", "counters")]
    texts = [item.name for item in schema if item.type == pa.string()]
    numbers = [item.name for item in schema if item.type in (pa.int64(), pa.float64())]
    numbers = [name for name in numbers if name not in _IDENTITY]
    others = [item.name for item in schema if item.name not in (*texts, *numbers)]
    present = {name: None for row in rows for name in row}
    columns = [*flags, *texts, *numbers, *others]
    counters = [name for name in {**counter_measures(), **present} if name not in columns]
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
