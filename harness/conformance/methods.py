"""Checks of feasibility methods on columns: their certificates, counts, limits and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...data_loaders.feasibility import lap, ldfp
from ...solvers.feasibility.certificates import check_certificate
from ...solvers.feasibility.problem import FeasibilityProblem, as_problem
from ...solvers.feasibility.result import FeasibilityResult
from ..evaluation.judging import check_count
from .subject import (
    NotApplicableError,
    Subject,
    check_same,
    constructor,
    draw,
    need,
)

__all__ = ["constructor"]

Array = npt.NDArray[Any]

# Loose enough for every method to end.
_TOL = 0.05
_SECONDS = 20.0


def _separable() -> Array:
    return np.asarray(ldfp(6, 40, kappa=5.0, seed=0).A)


def _inseparable() -> Array:
    """Unit columns, some of which are opposite to others: no y is on one side of all."""
    half = np.random.default_rng(0).standard_normal((6, 20))
    half /= np.linalg.norm(half, axis=0)
    return np.hstack([half, -half])


def _problem(subject: Subject, A: Array) -> FeasibilityProblem:
    return as_problem(A, getattr(subject.cls, "kind", "linear"), subject.cls.__name__)


def _solved(subject: Subject, A: Array, **params: Any) -> Any:
    method = subject.make(**{"tol": _TOL, **params})
    return method.solve(_problem(subject, A), max_seconds=_SECONDS)


def _check_certificate(subject: Subject, A: Array, result: Any, words: str) -> None:
    verdict = check_certificate(_problem(subject, A), result)
    need(verdict.valid, f"{words}: {'; '.join(verdict.reasons)}")


def solve(subject: Subject) -> None:
    """solve returns a FeasibilityResult with a known status."""
    result = _solved(subject, _separable())
    words = f"solve returns {type(result).__name__}; return a marginbench.FeasibilityResult"
    need(isinstance(result, FeasibilityResult), words)


def certificates(subject: Subject) -> None:
    """What it says of a problem is proven by what it returns."""
    # The first answer must not be the second one's.
    for columns, A, answers in (
        ("separable", _separable(), ("separable",)),
        ("inseparable", _inseparable(), ("inseparable", "margin_at_most_tol")),
    ):
        result, words = _solved(subject, A), f"on {columns} columns with tol={_TOL:g}"
        _check_certificate(subject, A, result, words)
        ended = f"{words} it ends with the status {result.status!r}: {result.message}"
        need(result.status in answers, ended)


def limits(subject: Subject) -> None:
    """A run ends at max_iter, and has valid bounds there."""
    if "max_iter" not in subject.defaults:
        raise NotApplicableError("it has no max_iter: only its own rule and max_seconds end a run")
    A = np.asarray(lap(6, 60, seed=1).A)
    result = _solved(subject, A, max_iter=3, tol=0.0)
    need(result.n_iter <= 3, f"with max_iter=3 it does {result.n_iter} iterations")
    _check_certificate(subject, A, result, "ended by max_iter=3")


def determinism(subject: Subject) -> None:
    """The same problem twice gives the same points, counts and status."""

    def outcome() -> dict[str, Any]:
        found = _solved(subject, _inseparable())
        values = {name: getattr(found, name) for name in ("status", "n_iter")}
        points = {name: np.asarray(getattr(found, name)).tobytes() for name in "xy"}
        return {**points, **values, "counters": found.counters.as_dict()}

    first = outcome()
    _solved(subject, _separable())
    draw()
    remedy = "keep nothing between them, and begin the counters at 0"
    check_same(first, outcome(), "two runs on one problem differ in", remedy)


def counters(subject: Subject) -> None:
    """There are counts, whole numbers, that rise with the iterations."""
    counts = []
    for limit in (2, 20):
        result = _solved(subject, _inseparable(), max_iter=limit, tol=0.0)
        counts.append([check_count(*item) for item in result.counters.as_dict().items()])
        words = f"{result.n_iter} iterations have no matrix-vector product; count them in matvecs"
        need(result.counters.matvecs or not result.n_iter, words)
    falls = any(after < before for before, after in zip(*counts, strict=True))
    need(not falls, "20 iterations count less than 2")


def side_effects(subject: Subject) -> None:
    """Solving changes neither the columns nor the parameters."""
    A = np.ascontiguousarray(_separable())
    original, problem = A.copy(), _problem(subject, A)
    method = subject.make(tol=_TOL)
    before = repr(method.get_params())
    method.solve(problem, max_seconds=_SECONDS)
    same = np.array_equal(np.asarray(problem.data), original) and np.array_equal(A, original)
    need(same, "solve changes the columns; work on copies")
    same = repr(method.get_params()) == before
    need(same, "solve changes parameters; keep what it computes in local variables")
