"""The work of studies of feasibility methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..jobs import Send, Work
from ..results.feasibility import FeasibilityRecord, Stage
from ..results.records import parsed_columns


class _Judged(Work):
    """Work whose result is the columns of a record."""

    checkpoint: ClassVar[Any] = Stage

    def parsed(self, value: Any) -> dict[str, Any]:
        return parsed_columns(FeasibilityRecord, value)


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
        from .separation import separate

        return separate(self, send)


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
        from .separation import classify

        return classify(self, send)
