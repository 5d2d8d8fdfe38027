"""Load a results folder into one typed object that every later layer takes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from marginbench.harness.records import (
    EXPECTED_STATUSES,
    Checkpoint,
    Record,
    RecordError,
    RecordStore,
)
from marginbench.reports import ReportError

#: Statuses of runs that ended as planned and so have a result ("skipped" ones have none).
OK_STATUSES: frozenset[str] = frozenset(EXPECTED_STATUSES - {"skipped"})

_IDENTITY = ("key", "task", "solver", "seed")
_TEXT_COLUMNS = [
    *("study", "dataset", "dataset_params", "fingerprint", "kernel", "solver_class", "params"),
    *("budget", "reason", "traceback", "started_at", "reference_hash", "environment", "epochs"),
]
_NUMBER_COLUMNS = [
    *("C", "n_train", "n_test", "n_features", "n_iter", "n_support", "peak_memory_mb"),
    *("kernel_evals", "kernel_evals_computed", "inner_products", "wall_s", "cpu_s", "compile_s"),
    *("evaluation_s", "data_s", "train_error", "test_error", "primal", "dual", "gap"),
    *("suboptimality", "reference_primal", "reference_gap", "reference_test_error", "reference_nu"),
    *("reference_alpha_sum", "reference_n_free", "jobs", "threads"),
]
_CHECKPOINT_COLUMNS = [item.name for item in fields(Checkpoint)]
_TRACE_COLUMNS = [
    *("task", "solver", "seed", "status", "ok", "minimises", "checkpoint"),
    *_CHECKPOINT_COLUMNS,
    *("reference_primal", "reference_gap"),
]


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TaskDescription(_Described):
    """A task as the study file of the results folder describes it."""

    label: str
    dataset: str
    dataset_params: dict[str, Any] = Field(default_factory=dict)
    kernel: dict[str, Any]
    C: float
    fit_intercept: bool = False
    reference: bool = True
    citation: str = ""
    licence: str = ""


class SolverDescription(_Described):
    """A solver configuration as the study file of the results folder describes it."""

    label: str
    class_: str = Field(alias="class")
    params: dict[str, Any] = Field(default_factory=dict)
    scalarization: str | None = None
    certificate: str | None = None
    instrumented: bool = True
    summary: str = ""


class PlannedRun(_Described):
    """One run that the study asks for, and the file that holds its record."""

    key: str
    file: str
    task: str
    solver: str
    seed: int


class StudyDescription(_Described):
    """The resolved study, read from ``study.json``."""

    schema_version: Literal[1]
    marginbench: str = ""
    name: str
    title: str = ""
    description: str = ""
    seeds: list[int] = Field(default_factory=list)
    budget: dict[str, Any] = Field(default_factory=dict)
    jobs: int = 1
    command: str = ""
    tasks: list[TaskDescription]
    solvers: list[SolverDescription]
    planned: list[PlannedRun]


@dataclass(frozen=True)
class StudyResults:
    """A study with all that is stored of its planned runs.

    Attributes
    ----------
    folder : Path
        The results folder.
    study : StudyDescription
        What was planned.
    runs : DataFrame
        One row per planned run, in the order of the study's tasks and solvers, then by seed. The
        columns of the record schema without the trace (null numbers are NaN), and ``ok`` (ended
        as planned and has a result), ``minimises`` (the solver minimises the SVM objective) and
        ``instrumented`` (the solver counts its evaluations). An inner product of a method without
        a kernel counts as one evaluation: ``kernel_evals`` and ``kernel_evals_computed`` hold the
        sums. A run without a readable record has the status ``missing`` or ``damaged`` and says
        why in ``reason``.
    traces : DataFrame
        One row per checkpoint of these runs: task, solver, seed, status, ok, minimises, the
        number of the checkpoint, the fields of :class:`marginbench.harness.records.Checkpoint`,
        and the reference optimum of the task. A run that ended as planned without a trace has its
        final state as its only checkpoint.
    """

    folder: Path
    study: StudyDescription
    runs: pd.DataFrame
    traces: pd.DataFrame

    @property
    def counts_inner_products(self) -> bool:
        """Whether a method without a kernel is among the runs."""
        return bool((self.runs["inner_products"] > 0).any())

    @property
    def evaluations(self) -> str:
        """What the column ``kernel_evals`` counts, in words."""
        products = " or inner products" if self.counts_inner_products else ""
        return f"kernel evaluations{products}"


def load_results(folder: Path) -> StudyResults:
    """Read the study and the records of its planned runs.

    Records that the study does not plan (another selection, an older source) are left aside.

    Parameters
    ----------
    folder : Path
        The results folder: ``study.json`` and ``runs/``.

    Returns
    -------
    StudyResults

    Raises
    ------
    ReportError
        If the folder has no readable ``study.json`` of this release's schema.
    """
    study = _read_study(folder)
    store = RecordStore(folder / "runs")
    solvers = {solver.label: solver for solver in study.solvers}
    rows: list[dict[str, Any]] = []
    checkpoints: list[dict[str, Any]] = []
    for planned in _in_study_order(study):
        record = _read_planned(store, planned)
        row = _run_row(planned, record)
        solver = solvers[planned.solver]
        row["ok"] = row["status"] in OK_STATUSES
        row["minimises"] = solver.scalarization is not None
        row["instrumented"] = solver.instrumented
        rows.append(row)
        if isinstance(record, Record):
            checkpoints.extend(_trace_rows(row, record))
    return StudyResults(folder, study, _runs_frame(rows), _traces_frame(checkpoints))


def _read_study(folder: Path) -> StudyDescription:
    path = folder / "study.json"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise ReportError(
            f"{folder}: not a results folder (it has no study.json); give the folder that "
            "`marginbench run` wrote"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{path}: cannot be read ({error})") from None
    try:
        study = StudyDescription.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = first["msg"] + (f" at {where}" if where else "")
        raise ReportError(f"{path}: not a study of this release ({problem})") from None
    _check_labels(path, study)
    return study


def _check_labels(path: Path, study: StudyDescription) -> None:
    tasks = {task.label for task in study.tasks}
    solvers = {solver.label for solver in study.solvers}
    for planned in study.planned:
        for kind, label, known in (
            ("task", planned.task, tasks),
            ("solver", planned.solver, solvers),
        ):
            if label not in known:
                raise ReportError(f"{path}: a planned run names the unknown {kind} {label!r}")


def _in_study_order(study: StudyDescription) -> list[PlannedRun]:
    tasks = {task.label: place for place, task in enumerate(study.tasks)}
    solvers = {solver.label: place for place, solver in enumerate(study.solvers)}
    return sorted(study.planned, key=lambda run: (tasks[run.task], solvers[run.solver], run.seed))


@dataclass(frozen=True)
class _NoRecord:
    """Why a planned run has no record to show."""

    status: Literal["missing", "damaged"]
    reason: str


def _read_planned(store: RecordStore, planned: PlannedRun) -> Record | _NoRecord:
    path = store.folder / planned.file
    name = f"runs/{planned.file}"
    if not path.is_file():
        return _NoRecord("missing", f"no record: {name} does not exist")
    try:
        record = store.read(path)
    except RecordError as error:
        return _NoRecord("damaged", f"{name}: {str(error).removeprefix(f'{path}: ')}")
    for item in _IDENTITY:
        found, expected = getattr(record, item), getattr(planned, item)
        if found != expected:
            return _NoRecord("damaged", f"{name}: has {item} {found!r}, not {expected!r}")
    return record


def _run_row(planned: PlannedRun, record: Record | _NoRecord) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(planned, name) for name in _IDENTITY}
    if isinstance(record, _NoRecord):
        return row | {"status": record.status, "reason": record.reason}
    stored = ("status", *_TEXT_COLUMNS, *_NUMBER_COLUMNS)
    return row | {name: getattr(record, name) for name in stored}


def _trace_rows(row: dict[str, Any], record: Record) -> list[dict[str, Any]]:
    trace = [asdict(checkpoint) for checkpoint in record.trace]
    if not trace and row["ok"]:
        trace = [{name: getattr(record, name) for name in _CHECKPOINT_COLUMNS}]
    shared = {
        name: row[name]
        for name in (
            *("task", "solver", "seed", "status", "ok", "minimises"),
            *("reference_primal", "reference_gap"),
        )
    }
    return [shared | {"checkpoint": place} | state for place, state in enumerate(trace)]


def _runs_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    columns = [*_IDENTITY, "status", "ok", "minimises", "instrumented"]
    frame = pd.DataFrame(rows, columns=[*columns, *_TEXT_COLUMNS, *_NUMBER_COLUMNS])
    frame[_NUMBER_COLUMNS] = frame[_NUMBER_COLUMNS].astype(np.float64)
    frame[_TEXT_COLUMNS] = frame[_TEXT_COLUMNS].astype(object).fillna("")
    return _with_bools(_with_inner_products(frame), "ok", "minimises", "instrumented")


def _traces_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=_TRACE_COLUMNS)
    numbers = [*_CHECKPOINT_COLUMNS, "reference_primal", "reference_gap"]
    frame[numbers] = frame[numbers].astype(np.float64)
    return _with_bools(_with_inner_products(frame), "ok", "minimises")


def _with_inner_products(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with inner products counted as evaluations; unknown counts stay unknown."""
    counts, products = ["kernel_evals", "kernel_evals_computed"], frame["inner_products"].fillna(0)
    return frame.assign(**{name: frame[name] + products for name in counts})


def _with_bools(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The columns as bool also in an empty frame, so that they can be used as masks."""
    return frame.astype(dict.fromkeys(columns, "bool"))


def json_object(text: str) -> dict[str, Any]:
    """The JSON object that a record holds as text; empty when it is not one."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
