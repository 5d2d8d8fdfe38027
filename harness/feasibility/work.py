"""What workers do for studies of feasibility methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marginbench.harness.jobs import Send
from marginbench.harness.storage import reporting_unwritten


@dataclass(frozen=True)
class CellWork:
    """Run a method on one generated problem."""

    generator: str
    m: int
    n: int
    kappa: float
    seed: int
    solver: str
    params: dict[str, Any]
    max_seconds: float

    def run(self, send: Send) -> dict[str, Any]:
        from marginbench.harness.feasibility.cells import separate

        return separate(self, send)


@dataclass(frozen=True)
class ImagesWork:
    """Train a kernel method on each class against the rest."""

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

    @reporting_unwritten
    def run(self, send: Send) -> dict[str, Any]:
        from marginbench.harness.feasibility.images import classify

        return classify(self, send)
