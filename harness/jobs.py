"""What travels between the parent and the workers: jobs one way, messages and results the other.

This module imports nothing heavy: a worker reads it before it limits its threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from marginbench.harness.records import Checkpoint

#: What a worker is doing. Only "solve" is the solver's own time.
Phase = Literal["start", "data", "compile", "solve", "evaluate", "idle"]


@dataclass(frozen=True)
class DatasetJob:
    """Load a dataset and describe it."""

    dataset: str
    params: dict[str, Any]


@dataclass(frozen=True)
class DatasetInfo:
    """What planning needs to know of a dataset."""

    fingerprint: str
    n_train: int
    n_test: int
    n_features: int
    sparse: bool
    n_classes: int
    citation: str
    licence: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DescribeJob:
    """Import a solver's class and describe it."""

    solver: str


@dataclass(frozen=True)
class SolverInfo:
    """What planning needs to know of a solver's class.

    Attributes
    ----------
    shown : str
        "module:Class" or "file.py:Class".
    source_hash : str
        Hash of its source and of all that it imports of the project.
    defaults : dict
        Every parameter of the estimator with its default.
    required : tuple of str
        Parameters without a default.
    """

    shown: str
    source_hash: str
    summary: str
    defaults: dict[str, Any]
    required: tuple[str, ...]
    supports_bias: bool
    supports_no_bias: bool
    supports_sparse: bool
    scalarization: str | None
    certificate: str | None
    instrumented: bool


@dataclass(frozen=True)
class TaskJob:
    """One optimisation problem, complete."""

    dataset: str
    dataset_params: dict[str, Any]
    kernel: dict[str, Any]
    C: float
    fit_intercept: bool


@dataclass(frozen=True)
class ReferenceJob:
    """Compute the reference optimum of a task, or read it from the cache.

    ``cache_mb`` bounds the kernel rows that are kept meanwhile; it does not change the result.
    """

    task: TaskJob
    tol: float
    cache_mb: float = 200.0


@dataclass(frozen=True)
class ReferenceInfo:
    """The certified optimum of a task, without its coefficients; C units.

    The true optimum lies in [primal - gap, primal]. ``alpha_sum`` is the sum of the dual variables,
    ``n_free`` how many of them are strictly between 0 and C.
    """

    primal: float
    dual: float
    gap: float
    test_error: float
    n_support: int
    nu: float | None
    hash: str
    note: str = ""
    alpha_sum: float | None = None
    n_free: int | None = None


@dataclass(frozen=True)
class RunJob:
    """Run one solver on one task with one seed."""

    task: TaskJob
    solver: str
    params: dict[str, Any]
    checkpoint_factor: float
    epoch_checkpoints: bool = False


@dataclass(frozen=True)
class RunResult:
    """How a run ended that came back by itself; the columns of a record with the same names."""

    status: Literal["converged", "budget", "diverged", "wrong"]
    reason: str
    n_iter: int | None = None
    kernel_evals: int | None = None
    kernel_evals_computed: int | None = None
    inner_products: int | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    compile_s: float | None = None
    evaluation_s: float | None = None
    data_s: float | None = None
    n_support: int | None = None
    train_error: float | None = None
    test_error: float | None = None
    primal: float | None = None
    dual: float | None = None
    gap: float | None = None
    epochs: str = "[]"


@dataclass(frozen=True)
class SeparationJob:
    """Run a feasibility method on one generated problem; ``method`` is "module:Class"."""

    generator: str
    m: int
    n: int
    kappa: float
    seed: int
    method: str
    params: dict[str, Any]
    max_seconds: float


@dataclass(frozen=True)
class ImagesJob:
    """Train a kernel method on each class against the rest; ``method`` is "module:Class"."""

    dataset: str
    dataset_params: dict[str, Any]
    n_train: int
    n_validation: int
    unit_norm: bool
    gammas: tuple[float, ...]
    tuning_iterations: int
    stages: tuple[int, ...]
    seed: int
    method: str
    params: dict[str, Any]


Work = DatasetJob | DescribeJob | ReferenceJob | RunJob | SeparationJob | ImagesJob


@dataclass(frozen=True)
class Limits:
    """What the parent enforces from outside while a job runs.

    Attributes
    ----------
    seconds : mapping
        Longest time in each phase. In "solve" the time of all its stretches counts together, in
        the other phases each stretch by itself.
    memory : float
        Megabytes resident, child processes included.
    """

    seconds: Mapping[Phase, float]
    memory: float


@dataclass(frozen=True)
class Job:
    """Work with its limits.

    Attributes
    ----------
    tag : str
        The caller's name for it.
    foreign : bool
        The work runs code from outside the project. Its worker serves no other job: what such
        code leaves behind in its process (settings, threads, patched modules) must not reach the
        runs of others.
    """

    tag: str
    work: Work
    limits: Limits
    threads: int = 1
    foreign: bool = False


@dataclass(frozen=True)
class PhaseMessage:
    """The worker enters a phase; ``solve_s`` seconds of solving are behind it."""

    phase: Phase
    solve_s: float = 0.0


@dataclass(frozen=True)
class CheckpointMessage:
    checkpoint: Checkpoint


@dataclass(frozen=True)
class ResultMessage:
    """The job is done. ``error`` holds a one-line reason if it raised."""

    value: Any = None
    error: str = ""
    kind: Literal["", "memory", "data", "user", "failed"] = ""
    traceback: str = ""
    peak_memory_mb: float | None = None


Message = PhaseMessage | CheckpointMessage | ResultMessage


@dataclass
class Outcome:
    """How a job ended, however it ended.

    Attributes
    ----------
    status : str
        "done" (``value`` holds the result), "failed" (it raised), "data" (the data could not be
        loaded), "user" (a mistake of the user), or "timeout", "memory", "crashed".
    reason : str
        One line.
    phase : str
        Where it ended.
    trace : list of Checkpoint
        What it reported before it ended.
    solve_s, data_s, compile_s, evaluation_s : float
        Seconds in each phase as the parent saw them.
    """

    status: Literal["done", "failed", "data", "user", "timeout", "memory", "crashed"]
    value: Any = None
    reason: str = ""
    traceback: str = ""
    phase: Phase = "start"
    trace: list[Checkpoint] = field(default_factory=list)
    solve_s: float = 0.0
    data_s: float = 0.0
    compile_s: float = 0.0
    evaluation_s: float = 0.0
    peak_memory_mb: float | None = None


@dataclass(frozen=True)
class Started:
    """A job has been given to a worker."""

    job: Job


@dataclass(frozen=True)
class Ended:
    """A job has ended."""

    job: Job
    outcome: Outcome


@dataclass(frozen=True)
class Waiting:
    """Nothing has happened for a moment; progress displays may refresh."""


Event = Started | Ended | Waiting


class Executor(Protocol):
    """Runs jobs somewhere; each ends with an outcome, whatever happens to it."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs; the next one is drawn only when there is room for it."""
        ...

    def close(self) -> None:
        """Stop what runs and release everything."""
        ...
