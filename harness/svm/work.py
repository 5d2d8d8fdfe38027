"""What workers do for studies of SVM solvers, and what travels with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marginbench.harness.jobs import Send
from marginbench.harness.storage import reporting_unwritten


@dataclass(frozen=True)
class Problem:
    """One optimisation problem, complete."""

    dataset: str
    dataset_params: dict[str, Any]
    kernel: dict[str, Any]
    C: float
    fit_intercept: bool


@dataclass(frozen=True)
class ReferenceWork:
    """Compute the reference optimum of a task, or read it from the cache.

    ``cache_mb`` bounds the kernel rows that are kept meanwhile; it does not change the result.
    """

    problem: Problem
    tol: float
    cache_mb: float = 200.0

    @reporting_unwritten
    def run(self, send: Send) -> ReferenceInfo:
        from marginbench.harness.svm.reference import reference_optimum

        return reference_optimum(self, send)


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
class FitWork:
    """Run one solver on one task with one seed."""

    problem: Problem
    solver: str
    params: dict[str, Any]
    checkpoint_factor: float
    epoch_checkpoints: bool = False

    @reporting_unwritten
    def run(self, send: Send) -> dict[str, Any]:
        from marginbench.harness.svm.measurement import measure

        return measure(self, send)
