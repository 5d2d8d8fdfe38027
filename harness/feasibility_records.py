"""Records of feasibility runs: one Parquet file with one row for each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from marginbench.harness.records import RecordError, Status, Store, file_name_of

SCHEMA_VERSION = 1

_STAGE = pa.struct(
    [
        ("iteration", pa.int64()),
        ("seconds", pa.float64()),  # of iterations; without a kernel matrix that is shared
        ("matvecs", pa.int64()),
        ("phi_lo", pa.float64()),  # images: the least of all classes
        ("phi_up", pa.float64()),  # images: the largest of all classes
        ("test_error", pa.float64()),  # fraction; null for generated problems
    ]
)

SCHEMA = pa.schema(
    [
        ("schema_version", pa.int16()),
        ("key", pa.string()),  # SHA-256 of all that determines the run
        ("study", pa.string()),
        ("part", pa.string()),  # label of the cell or the images
        ("problem", pa.string()),  # JSON object: all that the part says of it
        ("method", pa.string()),  # the method's label
        ("method_class", pa.string()),
        ("params", pa.string()),  # JSON object: every parameter of the method
        ("seed", pa.int64()),  # number of the instance
        ("budget", pa.string()),  # JSON object
        ("status", pa.string()),
        ("reason", pa.string()),
        ("traceback", pa.string()),
        ("started_at", pa.string()),  # ISO 8601, UTC
        ("found", pa.string()),  # "separable", "inseparable" or "budget": proven, and checked
        ("n_iter", pa.int64()),
        ("matvecs", pa.int64()),
        ("inner_products", pa.int64()),
        ("kernel_evals", pa.int64()),
        ("kernel_evals_computed", pa.int64()),
        ("solve_s", pa.float64()),  # wall-clock seconds of the iterations
        ("cpu_s", pa.float64()),  # CPU seconds of the process meanwhile
        ("data_s", pa.float64()),
        ("compile_s", pa.float64()),
        ("tuning_s", pa.float64()),
        ("peak_memory_mb", pa.float64()),
        ("phi_lo", pa.float64()),  # recomputed by the checker
        ("phi_up", pa.float64()),
        ("gamma", pa.float64()),  # images: the width that was chosen
        ("validation", pa.string()),  # JSON object: width -> validation error
        ("train_error", pa.float64()),
        ("test_error", pa.float64()),
        ("jobs", pa.int64()),
        ("threads", pa.int64()),
        ("environment", pa.string()),  # JSON object
        ("trace", pa.list_(_STAGE)),
    ]
)


@dataclass(frozen=True)
class Stage:
    """A run after some iterations; units in the schema above."""

    iteration: int
    seconds: float
    matvecs: int
    phi_lo: float
    phi_up: float
    test_error: float | None = None


@dataclass(frozen=True)
class FeasibilityOutcome:
    """What a run that came back by itself found; columns of a record with the same names."""

    status: Status
    reason: str
    found: str
    n_iter: int
    matvecs: int
    solve_s: float
    cpu_s: float
    data_s: float
    inner_products: int = 0
    kernel_evals: int = 0
    kernel_evals_computed: int = 0
    compile_s: float | None = None
    tuning_s: float | None = None
    phi_lo: float | None = None
    phi_up: float | None = None
    gamma: float | None = None
    validation: dict[str, float] = field(default_factory=dict)
    train_error: float | None = None
    test_error: float | None = None
    trace: tuple[Stage, ...] = ()


@dataclass
class FeasibilityRecord:
    """One run. Field by field the columns of :data:`SCHEMA`, ``None`` for null."""

    key: str
    study: str
    part: str
    problem: str
    method: str
    method_class: str
    params: str
    seed: int
    budget: str
    status: Status = "failed"
    reason: str = ""
    traceback: str = ""
    started_at: str = ""
    found: str = ""
    n_iter: int | None = None
    matvecs: int | None = None
    inner_products: int | None = None
    kernel_evals: int | None = None
    kernel_evals_computed: int | None = None
    solve_s: float | None = None
    cpu_s: float | None = None
    data_s: float | None = None
    compile_s: float | None = None
    tuning_s: float | None = None
    peak_memory_mb: float | None = None
    phi_lo: float | None = None
    phi_up: float | None = None
    gamma: float | None = None
    validation: str = "{}"
    train_error: float | None = None
    test_error: float | None = None
    jobs: int = 1
    threads: int = 1
    environment: str = "{}"
    trace: list[Stage] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION

    def take(self, outcome: FeasibilityOutcome) -> None:
        """Fill in what the run found."""
        for item in fields(outcome):
            value = getattr(outcome, item.name)
            if item.name == "validation":
                value = json.dumps(value)
            setattr(self, item.name, list(value) if item.name == "trace" else value)

    @property
    def file_name(self) -> str:
        return file_name_of(self.key, self.part, self.method, self.seed)


class FeasibilityStore(Store[FeasibilityRecord]):
    """Records of runs of feasibility methods."""

    schema = SCHEMA

    def _record(self, path: Path, row: dict[str, Any]) -> FeasibilityRecord:
        known = {item.name for item in fields(FeasibilityRecord)}
        if row.get("schema_version") != SCHEMA_VERSION or set(row) != known:
            raise RecordError(f"{path}: not a record of a feasibility run of this release")
        row["trace"] = [Stage(**stage) for stage in row["trace"]]
        return FeasibilityRecord(**row)
