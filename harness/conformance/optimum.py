"""Checks of the objective, against an optimum that is computed here and certifies itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import SVC

from ...solvers.interface.base import Solver
from ...solvers.models.objectives import dual_value, primal_value
from ..errors import EvaluationError
from ..evaluation.models import Evaluation
from .findings import MendError, NotApplicableError
from .subject import Points, Subject, Watch, overlapping

Array = npt.NDArray[Any]

# How close the reference must be to the optimum, relative to it.
_REFERENCE_GAP = 1e-6
_SWEEPS = 20_000
# Suboptimality allowed to a run that ends at its limit, relative to the optimum.
_UNFINISHED = 0.05
_TOL = 1e-5
_EPOCHS = 500
# Rounding of float32 entries, in units of the mean loss.
_NOISE = 1e-6


@dataclass(frozen=True)
class Optimum:
    """A certified optimum: the true one lies in [dual, primal], in C units."""

    primal: float
    dual: float
    squared_norm: float
    mean_hinge: float

    @property
    def nu(self) -> float:
        """The slack of the problem of constrained slack that has the same solution."""
        return self.mean_hinge / math.sqrt(self.squared_norm)


def certified_optimum(K: Array, y: Array, C: float, *, bias: bool) -> Optimum:
    """The optimum of a small problem, found without the solvers of marginbench.

    Parameters
    ----------
    K : ndarray of float64, shape (n, n)
    y : ndarray, shape (n,)
        Labels, -1 or +1.
    C : float
    bias : bool

    Raises
    ------
    RuntimeError
        If no optimum of the accuracy that the checks need was found.
    """
    coef, intercept = (_by_libsvm if bias else _by_ascent)(K, y, C)
    responses = K @ coef
    squared_norm, margins = float(coef @ responses), y * (responses + intercept)
    primal = primal_value(squared_norm, margins, C)
    dual = dual_value(coef * y, squared_norm)
    if not primal - dual <= _REFERENCE_GAP * primal:
        raise RuntimeError(f"the reference optimum of the check has a gap of {primal - dual:.3g}")
    return Optimum(primal, dual, squared_norm, float(np.maximum(0, 1 - margins).mean()))


def _by_ascent(K: Array, y: Array, C: float) -> tuple[Array, float]:
    """Cyclic dual coordinate ascent."""
    Q, alpha = K * np.outer(y, y), np.zeros(len(y))
    gradient = np.ones(len(y))  # of the dual: 1 - Q alpha
    for _ in range(_SWEEPS):
        moved = 0.0
        for i in range(len(y)):
            step = min(max(alpha[i] + gradient[i] / Q[i, i], 0.0), C) - alpha[i]
            if step:
                alpha[i] += step
                gradient -= step * Q[i]
                moved = max(moved, abs(step))
        if moved <= 1e-12 * C:
            break
    return alpha * y, 0.0


def _by_libsvm(K: Array, y: Array, C: float) -> tuple[Array, float]:
    svc = SVC(kernel="precomputed", C=C, tol=1e-9, random_state=0).fit(K, y)
    coef = np.zeros(len(y))
    coef[svc.support_] = svc.dual_coef_[0]
    return coef, float(svc.intercept_[0])


def objective(subject: Subject) -> None:
    """The returned model comes close to the optimum of the problem that the class states."""
    if subject.cls.scalarization is None:
        raise NotApplicableError("it minimises no SVM objective (scalarization = None)")
    points = overlapping()
    for bias in subject.biases:
        for C in (1.0, 10.0):
            _compare_with_optimum(subject, points, C, bias=bias)


def _compare_with_optimum(subject: Subject, points: Points, C: float, *, bias: bool) -> None:
    best = certified_optimum(_gram(subject, points.X), points.y, C, bias=bias)
    nu = {"nu": best.nu} if subject.cls.scalarization == "S" else {}
    n = len(points.y)
    solver = subject.limited(
        _EPOCHS, n, C=C, fit_intercept=bias, tol=_TOL, dtype="float64", **nu
    ).fit(*points)
    found = _evaluated(subject, solver, points, C, bias=bias).primal
    if found is None:
        raise NotApplicableError("its model has no w whose objective could be computed")
    at = f"with C={C:g}{', with bias' if bias else ''}"
    excess = found - best.dual
    if solver.status_ == "converged" and "tol" in subject.defaults:
        if excess > n * C * (2 * _TOL + _NOISE) + (best.primal - best.dual):
            raise MendError(
                f"{at} it says converged at tol={_TOL:g}, but its objective is {found:.6g} and the "
                f"optimum {best.primal:.6g}; check the objective, or how the stopping rule "
                "measures tol (in units of the mean loss)"
            )
    elif excess > _UNFINISHED * best.primal:
        raise MendError(
            f"{at} the objective after {solver.n_iter_} iterations is {found:.6g}, the optimum "
            f"{best.primal:.6g}; check how C enters, or set scalarization = None"
        )


def certificate(subject: Subject) -> None:
    """Coefficients promised to be a dual point are one, at each checkpoint and at the end."""
    if subject.cls.certificate is None:
        raise NotApplicableError("it promises no dual point (certificate = None)")
    points = overlapping()
    for bias in subject.biases:
        for C in (0.1, 10.0):
            _check_dual_points(subject, points, C, bias=bias)


def _check_dual_points(subject: Subject, points: Points, C: float, *, bias: bool) -> None:
    watch = Watch()
    solver = subject.make(C=C, fit_intercept=bias, dtype="float64").fit(*points, monitor=watch)
    evaluator = subject.evaluator(points, C, bias=bias)
    for seen in watch.seen[:: max(1, len(watch.seen) // 20)]:
        if evaluator.evaluate(seen.model).dual is None:
            raise MendError(
                f"with C={C:g} a checkpoint is no dual point (0 <= y_i coef_i <= C"
                f"{', sum coef_i = 0' if bias else ''}); clip each step, or set certificate = None"
            )
    final = _evaluated(subject, solver, points, C, bias=bias)
    if final.gap is None:
        raise MendError(
            f"with C={C:g} the coefficients are no dual point (0 <= y_i coef_i <= C"
            f"{', sum coef_i = 0' if bias else ''}); clip each step, or set certificate = None"
        )
    tol = float(solver.get_params().get("tol", 1e-3))
    if solver.status_ == "converged" and final.gap > len(points.y) * C * (tol + _NOISE):
        raise MendError(
            f"with C={C:g} it says converged, but the duality gap is "
            f"{final.gap / (len(points.y) * C):.3g} and tol={tol:g}, in units of the mean loss"
        )


def _evaluated(
    subject: Subject, solver: Solver, points: Points, C: float, *, bias: bool
) -> Evaluation:
    try:
        return subject.evaluator(points, C, bias=bias).evaluate(solver.model_)
    except EvaluationError as error:
        raise MendError(f"{error}; return a model such as problem.expansion(coef)") from None


def _gram(subject: Subject, X: Array) -> Array:
    kernel = subject.kernel_on(X)
    points = kernel.prepare(X, np.dtype(np.float64))
    return np.asarray(kernel.block(points, points), dtype=np.float64)
