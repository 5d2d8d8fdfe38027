"""Checks of feasibility methods on columns: their certificates, counts, limits and refusals."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from ...data_loaders.feasibility import lap, ldfp
from ...solvers.feasibility.certificates import check_certificate
from ...solvers.feasibility.problem import FeasibilityProblem, as_problem
from ...solvers.feasibility.result import FeasibilityResult
from .subject import (
    MendError,
    NotApplicableError,
    Subject,
    check_refused,
    check_same,
    constructor,
    draw,
)

__all__ = ["constructor"]

Array = npt.NDArray[Any]

# Loose enough for every method to end.
_TOL = 0.05
_SECONDS = 20.0
_WRONG: dict[str, tuple[Any, ...]] = {
    "tol": (-1.0, math.nan),
    "max_iter": (0, -1, 1.5),
    "history": (0.5, math.nan),
    "stop": ("never",),
}


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


def solve(subject: Subject) -> None:
    """solve returns a FeasibilityResult with a known status."""
    result = _solved(subject, _separable())
    if not isinstance(result, FeasibilityResult):
        raise MendError(
            f"solve returns {type(result).__name__}; return a marginbench.FeasibilityResult"
        )


def certificates(subject: Subject) -> None:
    """What it says of a problem is proven by what it returns."""
    # The first answer must not be the second one's.
    answers = {"separable": ("separable",), "inseparable": ("inseparable", "margin_at_most_tol")}
    for words, A in (("separable", _separable()), ("inseparable", _inseparable())):
        result = _solved(subject, A)
        verdict = check_certificate(_problem(subject, A), result)
        if not verdict.valid:
            raise MendError(f"on {words} columns: {'; '.join(verdict.reasons)}")
        if result.status not in answers[words]:
            raise MendError(
                f"on {words} columns with tol={_TOL:g} it ends with the status {result.status!r}: "
                f"{result.message}"
            )


def limits(subject: Subject) -> None:
    """A run ends at max_iter, and has valid bounds there."""
    if "max_iter" not in subject.defaults:
        raise NotApplicableError("it has no max_iter: only its own rule and max_seconds end a run")
    A = np.asarray(lap(6, 60, seed=1).A)
    result = _solved(subject, A, max_iter=3, tol=0.0)
    if result.n_iter > 3:
        raise MendError(f"with max_iter=3 it does {result.n_iter} iterations")
    verdict = check_certificate(_problem(subject, A), result)
    if not verdict.valid:
        raise MendError(f"ended by max_iter=3: {'; '.join(verdict.reasons)}")


def bad_data(subject: Subject) -> None:
    """Columns that state no problem raise ValueError."""
    A = _separable()
    spoilt, infinite = A.copy(), A.copy()
    spoilt[2, 3], infinite[2, 3] = math.nan, math.inf
    check_refused(
        (
            (words, partial(subject.make(tol=_TOL).solve, columns, max_seconds=_SECONDS))
            for words, columns in (("NaN", spoilt), ("infinity", infinite), ("a vector", A[0]))
        ),
        "raise ValueError, as FeasibilityProblem.linear(A) does",
    )


def bad_parameters(subject: Subject) -> None:
    """Values out of range raise ValueError."""
    problem = _problem(subject, _separable())

    def solve(name: str, value: Any) -> None:
        method = subject.make(tol=_TOL)
        setattr(method, name, value)
        method.solve(problem, max_seconds=_SECONDS)

    check_refused(
        (
            (f"{name}={value!r}", partial(solve, name, value))
            for name in subject.defaults
            for value in _WRONG.get(name, ())
        ),
        "raise ValueError in solve",
    )


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
        counts.append(result.counters.as_dict())
        for name, count in counts[-1].items():
            if not isinstance(count, Integral) or count < 0:
                raise MendError(f"{name} is {count!r:.40}, not a count")
        if result.n_iter and not counts[-1]["matvecs"]:
            raise MendError(
                f"{result.n_iter} iterations have no matrix-vector product; count each A'y and "
                "each A x in counters.matvecs"
            )
    if any(after < before for before, after in zip(*map(dict.values, counts), strict=True)):
        raise MendError("20 iterations count less than 2")


def side_effects(subject: Subject) -> None:
    """Solving changes neither the columns nor the parameters."""
    A = np.ascontiguousarray(_separable())
    original, problem = A.copy(), _problem(subject, A)
    method = subject.make(tol=_TOL)
    before = {name: repr(getattr(method, name, None)) for name in subject.defaults}
    method.solve(problem, max_seconds=_SECONDS)
    if not np.array_equal(np.asarray(problem.data), original) or not np.array_equal(A, original):
        raise MendError("solve changes the columns; work on copies")
    if before != {name: repr(getattr(method, name, None)) for name in subject.defaults}:
        raise MendError("solve changes parameters; keep what it computes in local variables")
