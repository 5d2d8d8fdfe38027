"""Run records: what is stored of one run, and the store that keeps them.

A record is one Parquet file with one row. The columns below are its whole schema; a study's
results are the folder of its records, readable with ``pandas.read_parquet(folder)``.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from marginbench.data_loaders.atomic import replacing
from marginbench.data_loaders.errors import first_line

SCHEMA_VERSION = 3

Status = Literal[
    "converged", "budget", "timeout", "memory", "crashed", "failed", "diverged", "wrong", "skipped"
]
STATUSES: tuple[Status, ...] = get_args(Status)
#: Statuses of runs that went as planned; every other one makes the command exit with 1.
EXPECTED_STATUSES: frozenset[Status] = frozenset({"converged", "budget", "skipped"})

_CHECKPOINT = pa.struct(
    [
        ("n_iter", pa.int64()),  # iterations done
        ("kernel_evals", pa.int64()),  # null: the solver is not instrumented
        ("kernel_evals_computed", pa.int64()),
        ("inner_products", pa.int64()),  # of methods without a kernel
        ("wall_s", pa.float64()),  # seconds inside the solver, evaluation excluded
        ("cpu_s", pa.float64()),
        ("n_support", pa.int64()),
        ("train_error", pa.float64()),  # fractions in [0, 1]
        ("test_error", pa.float64()),
        ("primal", pa.float64()),  # C units: 1/2 ||w||^2 + C sum hinge; null without a w
        ("dual", pa.float64()),  # C units; null without a feasible dual point
    ]
)

SCHEMA = pa.schema(
    [
        # what was run
        ("schema_version", pa.int16()),
        ("key", pa.string()),  # SHA-256 of all that determines the run
        ("study", pa.string()),
        ("task", pa.string()),  # the task's label, unique in the study
        ("dataset", pa.string()),
        ("dataset_params", pa.string()),  # JSON object
        ("fingerprint", pa.string()),
        ("kernel", pa.string()),  # JSON object: name and parameters
        ("C", pa.float64()),
        ("fit_intercept", pa.bool_()),
        ("solver", pa.string()),  # the solver's label, unique in the study
        ("solver_class", pa.string()),  # "module:Class" or "file.py:Class"
        ("params", pa.string()),  # JSON object: every parameter of the estimator
        ("seed", pa.int64()),
        ("budget", pa.string()),  # JSON object: timeout [s], memory [MB], ...
        # how it ended
        ("status", pa.string()),
        ("reason", pa.string()),  # one line; empty when there is nothing to say
        ("traceback", pa.string()),
        ("started_at", pa.string()),  # ISO 8601, UTC
        # sizes
        ("n_train", pa.int64()),
        ("n_test", pa.int64()),
        ("n_features", pa.int64()),
        # costs
        ("n_iter", pa.int64()),
        ("kernel_evals", pa.int64()),
        ("kernel_evals_computed", pa.int64()),
        ("inner_products", pa.int64()),
        ("wall_s", pa.float64()),
        ("cpu_s", pa.float64()),
        ("compile_s", pa.float64()),
        ("evaluation_s", pa.float64()),
        ("data_s", pa.float64()),
        ("peak_memory_mb", pa.float64()),
        # scores, recomputed by the harness from the returned model
        ("n_support", pa.int64()),
        ("train_error", pa.float64()),
        ("test_error", pa.float64()),
        ("primal", pa.float64()),
        ("dual", pa.float64()),
        ("gap", pa.float64()),  # primal - dual, C units
        ("suboptimality", pa.float64()),  # (primal - reference) / reference; null if not a primal
        # the task's frozen reference optimum
        ("reference_primal", pa.float64()),
        ("reference_gap", pa.float64()),  # certified: optimum in [primal - gap, primal]
        ("reference_test_error", pa.float64()),
        ("reference_nu", pa.float64()),  # mean hinge loss / ||w||
        ("reference_alpha_sum", pa.float64()),  # sum of the dual variables
        ("reference_n_free", pa.int64()),  # dual variables strictly between 0 and C
        ("reference_hash", pa.string()),
        # setting
        ("jobs", pa.int64()),
        ("threads", pa.int64()),
        ("environment", pa.string()),  # JSON object
        ("trace", pa.list_(_CHECKPOINT)),
        # JSON array: what a solver that keeps a ``trace_`` noted at the end of each epoch
        ("epochs", pa.string()),
    ]
)


_JSON_COLUMNS = ("dataset_params", "kernel", "params", "budget", "environment")
_COUNT_COLUMNS = (
    *("n_iter", "kernel_evals", "kernel_evals_computed", "inner_products", "n_support", "seed"),
)


class RecordError(Exception):
    """A record file that cannot be read; the message names the file and why."""


@dataclass(frozen=True)
class Checkpoint:
    """What was recorded at one moment of a run; units in the schema above."""

    n_iter: int
    kernel_evals: int | None
    kernel_evals_computed: int | None
    wall_s: float
    cpu_s: float
    n_support: int
    train_error: float
    test_error: float
    primal: float | None
    dual: float | None
    inner_products: int | None = None


@dataclass
class Record:
    """The outcome of one run. Field by field the columns of :data:`SCHEMA`, ``None`` for null."""

    key: str
    study: str
    task: str
    dataset: str
    solver: str
    solver_class: str
    seed: int
    status: Status
    dataset_params: str = "{}"
    fingerprint: str | None = None
    kernel: str = "{}"
    C: float | None = None
    fit_intercept: bool = False
    params: str = "{}"
    budget: str = "{}"
    reason: str = ""
    traceback: str = ""
    started_at: str = ""
    n_train: int | None = None
    n_test: int | None = None
    n_features: int | None = None
    n_iter: int | None = None
    kernel_evals: int | None = None
    kernel_evals_computed: int | None = None
    inner_products: int | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    compile_s: float | None = None
    evaluation_s: float | None = None
    data_s: float | None = None
    peak_memory_mb: float | None = None
    n_support: int | None = None
    train_error: float | None = None
    test_error: float | None = None
    primal: float | None = None
    dual: float | None = None
    gap: float | None = None
    suboptimality: float | None = None
    reference_primal: float | None = None
    reference_gap: float | None = None
    reference_test_error: float | None = None
    reference_nu: float | None = None
    reference_alpha_sum: float | None = None
    reference_n_free: int | None = None
    reference_hash: str | None = None
    jobs: int = 1
    threads: int = 1
    environment: str = "{}"
    schema_version: int = SCHEMA_VERSION
    trace: list[Checkpoint] = field(default_factory=list)
    epochs: str = "[]"

    @property
    def file_name(self) -> str:
        return file_name_of(self.key, self.task, self.solver, self.seed)


def file_name_of(key: str, part: str, method: str, seed: int) -> str:
    """A record's file name, readable and unique: the key alone decides identity."""
    words = re.sub(r"[^A-Za-z0-9.=]+", "_", f"{part}-{method}-s{seed}")
    return f"{words[:80]}-{key[:16]}.parquet"


class Recorded(Protocol):
    """What a store keeps: a dataclass with a name for its file and the key of its run."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def file_name(self) -> str: ...

    @property
    def key(self) -> str: ...


R = TypeVar("R", bound=Recorded)


class Store(ABC, Generic[R]):
    """Records of one study: a folder with one Parquet file per run.

    Parameters
    ----------
    folder : Path
        Created when the first record is written.
    """

    schema: ClassVar[pa.Schema]

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def _record(self, path: Path, row: dict[str, Any]) -> R:
        """The record that this row of a file is; RecordError if it is none."""

    def write(self, record: R) -> Path:
        """Write one record atomically: a reader sees all of it or nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist([_encodable(asdict(record))], schema=self.schema)
        path = self.folder / record.file_name
        with replacing(path) as sink:
            pq.write_table(table, sink, compression="zstd")
        return path

    def paths(self) -> list[Path]:
        """The record files, sorted by name."""
        return sorted(self.folder.glob("*.parquet"))

    def read(self, path: Path) -> R:
        """Read one record.

        Raises
        ------
        RecordError
            If the file is truncated, empty, or of a schema that cannot be read.
        """
        try:
            row: dict[str, Any] = pq.ParquetFile(path).read().to_pylist()[0]
        except (OSError, pa.ArrowException, IndexError) as error:
            raise RecordError(f"{path}: not a readable record ({first_line(error)})") from None
        return self._record(path, row)

    def scan(self) -> Iterator[R | RecordError]:
        """Every record of the folder; a damaged file comes as the error that it raised."""
        for path in self.paths():
            try:
                yield self.read(path)
            except RecordError as error:
                yield error

    def recorded(self, file_name: str, key: str, say: Callable[[str], None]) -> R | None:
        """The record of the run with this key, if there is a readable one.

        A damaged file is moved aside, and ``say`` is told.
        """
        path = self.folder / file_name
        if not path.is_file():
            return None
        try:
            record = self.read(path)
        except RecordError as error:
            aside = path.with_name(path.name + ".damaged")
            os.replace(path, aside)
            say(f"{error}; moved to {aside.name}, the run is done again")
            return None
        return record if record.key == key else None


class RecordStore(Store[Record]):
    """Records of runs of solvers.

    Version 1 of the schema, which knew no methods without a kernel, and version 2, which knew no
    traces of the solvers' own, are brought up to this one.
    """

    schema = SCHEMA

    def _record(self, path: Path, row: dict[str, Any]) -> Record:
        _upgrade(row)
        if row.get("schema_version") != SCHEMA_VERSION:
            raise RecordError(
                f"{path}: schema version {row.get('schema_version')}, this release reads "
                f"{SCHEMA_VERSION}"
            )
        known = {item.name for item in fields(Record)}
        unknown = sorted(set(row) ^ known)
        if unknown:
            raise RecordError(f"{path}: columns differ from the schema: {', '.join(unknown)}")
        problem = _problem(row)
        if problem:
            raise RecordError(f"{path}: not a record of a run ({problem})")
        row["trace"] = [Checkpoint(**checkpoint) for checkpoint in row["trace"]]
        return Record(**row)


def _upgrade(row: dict[str, Any]) -> None:
    """Turn a row of an older version of the schema into one of this version."""
    if row.get("schema_version") == 1:
        for place in (row, *filter(None, row.get("trace") or [])):
            counted = place.get("kernel_evals") is not None
            place["inner_products"] = 0 if counted else None
        row["schema_version"] = 2
    if row.get("schema_version") == 2:
        row |= {"epochs": "[]", "reference_alpha_sum": None, "reference_n_free": None}
        row["schema_version"] = 3


def _encodable(row: dict[str, Any]) -> dict[str, Any]:
    """The row with texts that UTF-8 can hold: a solver's error message may hold anything."""
    for name, value in row.items():
        if isinstance(value, str):
            row[name] = value.encode("utf-8", "backslashreplace").decode()
    return row


def _problem(row: dict[str, Any]) -> str:
    """What no run can have written; empty if there is nothing."""
    if row["status"] not in STATUSES:
        return f"its status is {row['status']!r}"
    if row["trace"] is None or None in row["trace"]:
        return "its trace is missing"
    for name in _JSON_COLUMNS:
        try:
            described = json.loads(row[name])
        except (TypeError, ValueError):
            described = None
        if not isinstance(described, dict):
            return f"its {name} is not a JSON object"
    if not _is_list_of_objects(row["epochs"]):
        return "its epochs are not a JSON array of objects"
    for name in _COUNT_COLUMNS:
        if row[name] is not None and row[name] < 0:
            return f"its {name} is {row[name]}"
    for name in ("train_error", "test_error"):
        if row[name] is not None and not 0 <= row[name] <= 1:
            return f"its {name} is {row[name]}"
    return ""


def _is_list_of_objects(text: Any) -> bool:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return False
    return isinstance(found, list) and all(isinstance(item, dict) for item in found)
