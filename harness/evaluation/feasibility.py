"""What workers do for studies of feasibility methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..jobs import Send, Work
from ..results.feasibility import FeasibilityRecord, Stage
from ..results.records import CheckpointBase, parsed_columns


class _Judged(Work):
    """Work whose result is the columns of a record."""

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(FeasibilityRecord, value)

    def parsed_checkpoint(self, columns: dict[str, Any]) -> CheckpointBase:
        return Stage(**columns)


@dataclass(frozen=True)
class CellWork(_Judged):
    """Run a method on one generated problem, and check its certificate.

    ``tol`` is what the cell asks for; None: what the method says.
    """

    generator: str
    m: int
    n: int
    kappa: float
    seed: int
    solver: str
    params: dict[str, Any]
    max_seconds: float
    tol: float | None = None

    def run(self, send: Send) -> dict[str, Any]:
        from .cells import judge, separate

        return judge(self, separate(self, send), send)


@dataclass(frozen=True)
class CellResult:
    """What a method returned, in plain form; see :class:`marginbench.FeasibilityResult`.

    ``history`` has iteration, seconds, matvecs, phi_lo and phi_up of each point.
    """

    status: str
    y: Any
    x: Any
    phi_lo: float
    phi_up: float
    n_iter: int
    converged: bool
    tol: float
    message: str
    counters: dict[str, int]
    history: list[list[float]]
    wall_s: float
    cpu_s: float
    data_s: float
    compile_s: float


@dataclass(frozen=True)
class ImagesWork(_Judged):
    """Train a kernel method on each class against the rest, and score it."""

    dataset: str
    dataset_params: dict[str, Any]
    n_train: int
    n_validation: int
    unit_norm: bool
    gammas: tuple[float, ...]
    tuning_iterations: int
    stages: tuple[int, ...]
    seed: int
    solver: str
    params: dict[str, Any]
    folder: str | None = None
    fingerprint: str = ""

    def run(self, send: Send) -> dict[str, Any]:
        from .images import classify, judge

        return judge(self, classify(self, send), send)


@dataclass(frozen=True)
class Votes:
    """Coefficients of the support vectors, shape (..., n_classes, n_support), and which they are.

    ``support`` has positions in the training points, shape (n_support,).
    """

    support: Any
    coef: Any


@dataclass(frozen=True)
class ImagesResult:
    """What was trained, in plain form.

    Attributes
    ----------
    gamma : float
        The width that was chosen.
    widths : list of Votes
        The predictors that it was chosen from, in the order of the study's widths.
    staged : Votes
        The predictors at each stage and at the end.
    stages : list of list
        Seconds, matvecs, phi_lo and phi_up of each stage.
    dtype : str
        Type of the kernel entries.
    """

    gamma: float
    widths: list[Votes]
    staged: Votes
    stages: list[list[float]]
    dtype: str
    separated: int
    converged: bool
    n_iter: int
    counters: dict[str, int]
    wall_s: float
    cpu_s: float
    data_s: float
    tuning_s: float
    tuning_cpu_s: float
