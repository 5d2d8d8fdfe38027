"""Checks of what a run is measured by: counts, objective and certificate, checkpoints, limits."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from ...solvers.interface.base import Solver
from ...solvers.models import LinearModel
from ...solvers.models.objectives import dual_value, primal_value
from ..errors import EvaluationError
from ..evaluation.judging import Served
from ..evaluation.models import Evaluation
from .findings import MendError, NotApplicableError
from .subject import GAMMA, LIMITS, Fitted, Points, Subject, Watch, overlapping

# Counts: against a kernel that counts its own entries, and against the oracles.


class _CountingKernel:
    """A Gaussian kernel, as a function, that counts the entries it computes."""

    def __init__(self) -> None:
        self.entries = 0

    def __call__(self, A: Any, B: Any) -> Any:
        self.entries += len(A) * len(B)
        return np.exp(-GAMMA * np.square(A[:, None] - B).sum(axis=2))


def counters(subject: Subject) -> None:
    """What the solver counts is what was asked for and what was computed."""
    cls = subject.cls
    if not cls.instrumented:
        raise NotApplicableError("the class says that it counts nothing (instrumented = False)")
    seen = "kernel" in subject.defaults and cls.supports_callable_kernel
    if seen:
        for given in ({"cache_size": 0.0}, {"cache_size": 1.0}):
            _compare_with_kernel(subject, given)
    # A method that needs no entries counts none; but only a kernel that counts can tell.
    _compare_with_oracles(subject, may_be_zero=seen)


def _compare_with_kernel(subject: Subject, given: dict[str, float]) -> None:
    kernel = _CountingKernel()
    solver = subject.make(kernel=kernel, dtype="float64", **given)
    _, counts = _fitted(solver)
    if counts["kernel_evals_computed"] != kernel.entries:
        raise MendError(
            f"{kernel.entries} kernel entries were computed, but kernel_evals_computed is "
            f"{counts['kernel_evals_computed']}; take every entry from problem.oracle, and leave "
            "counting to it"
        )


def _compare_with_oracles(subject: Subject, *, may_be_zero: bool) -> None:
    served, solver = Served(), subject.make()
    _, counts = _fitted(solver)
    for name, least in served.since().items():
        if counts[name] < least:
            raise MendError(
                f"{name} is {counts[name]}, but the oracle has handed out {least}; never change "
                "the counters of the oracle"
            )
    if not may_be_zero and not sum(counts.values()):
        what = "inner_products" if isinstance(solver.model_, LinearModel) else "kernel_evals"
        raise MendError(
            f"it counts nothing; take kernel entries from problem.oracle, count other work in "
            f"problem.counters.{what}, or set instrumented = False"
        )


def _fitted(solver: Solver) -> tuple[Solver, dict[str, int]]:
    """The fitted solver and its counts, none of which may have fallen on the way."""
    watch = Watch()
    solver.fit(*overlapping(), monitor=watch)
    counts = [seen.counts for seen in watch.seen]
    if solver.counters_ is None:
        raise MendError("counters_ is None although instrumented is True; do not replace it")
    counts.append(solver.counters_.as_dict())
    for before, after in pairwise(counts):
        fallen = [name for name, count in after.items() if count < before[name]]
        if fallen:
            raise MendError(f"{fallen[0]} falls during the run; counts may only rise")
    return solver, counts[-1]


# The objective, against an optimum that is computed here and certifies itself.


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
    """The optimum of a small problem, found without the solvers of marginbench."""
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
    primal = _evaluated(subject, solver.model_, points, C, bias=bias).primal
    if primal is None:
        raise NotApplicableError("its model has no w whose objective could be computed")
    at = f"with C={C:g}{', with bias' if bias else ''}"
    excess = primal - best.dual
    if solver.status_ == "converged" and "tol" in subject.defaults:
        if excess > n * C * (2 * _TOL + _NOISE) + (best.primal - best.dual):
            raise MendError(
                f"{at} it says converged at tol={_TOL:g}, but its objective is {primal:.6g} and "
                f"the optimum {best.primal:.6g}; check the objective, or how the stopping rule "
                "measures tol (in units of the mean loss)"
            )
    elif excess > _UNFINISHED * best.primal:
        raise MendError(
            f"{at} the objective after {solver.n_iter_} iterations is {primal:.6g}, the optimum "
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
    sampled = watch.seen[:: max(1, len(watch.seen) // 20)]
    models: list[tuple[str, Any]] = [("a checkpoint is", seen.model) for seen in sampled]
    gap = math.inf
    for words, model in [*models, ("the coefficients are", solver.model_)]:
        own = _evaluated(subject, model, points, C, bias=bias).gap
        if own is None:
            raise MendError(
                f"with C={C:g} {words} no dual point (0 <= y_i coef_i <= C"
                f"{', sum coef_i = 0' if bias else ''}); clip each step, or set certificate = None"
            )
        gap = own
    tol = float(solver.get_params().get("tol", 1e-3))
    if solver.status_ == "converged" and gap > len(points.y) * C * (tol + _NOISE):
        raise MendError(
            f"with C={C:g} it says converged, but the duality gap is "
            f"{gap / (len(points.y) * C):.3g} and tol={tol:g}, in units of the mean loss"
        )


def _evaluated(subject: Subject, model: Any, points: Points, C: float, *, bias: bool) -> Evaluation:
    try:
        return subject.evaluator(points, C, bias=bias).evaluate(model)
    except EvaluationError as error:
        raise MendError(f"{error}; return a model such as problem.expansion(coef)") from None


def _gram(subject: Subject, X: Array) -> Array:
    kernel = subject.kernel_on(X)
    points = kernel.prepare(X, np.dtype(np.float64))
    return np.asarray(kernel.block(points, points), dtype=np.float64)


# A run that is watched: checkpoints, requests to stop, limits.


_NO_CHECKPOINTS = (
    "it records no checkpoints (monitor.due, monitor.record): reports show only the end of a run"
)
# Checkpoints of a run that are looked at.
_MOST = 30
# A tolerance that no run reaches in a few iterations; some methods take none of 0.
_TINY = 1e-12


def monitor(subject: Subject) -> None:
    """A fit that is watched is the fit that is not."""
    points = overlapping()
    alone = Fitted.of(subject.make().fit(*points))
    alone.compare(
        Fitted.of(subject.make().fit(*points, monitor=Watch())),
        "with a monitor the fit differs in",
        "what it is asked and told must change nothing, and snapshot() may only read",
    )


def checkpoints(subject: Subject) -> None:
    """Each checkpoint is a valid model of its own, and iterations and counts only rise."""
    points, watch = overlapping(), Watch()
    bias = not subject.cls.supports_no_bias
    solver = subject.make().fit(*points, monitor=watch)
    if not watch.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    iterations = [seen.n_iter for seen in watch.seen] + [solver.n_iter_]
    if any(after < before for before, after in pairwise(iterations)):
        raise MendError("the iterations given to monitor.record fall; count them from the start")
    evaluator = subject.evaluator(points, bias=bias)
    for seen in watch.seen[:: max(1, len(watch.seen) // _MOST)]:
        if seen.model.digest != seen.digest:
            raise MendError(
                f"the model of the checkpoint at iteration {seen.n_iter} changed later; snapshot() "
                "must copy what the solver goes on changing"
            )
        try:
            finite = evaluator.evaluate(seen.model).finite
        except EvaluationError as error:
            raise MendError(f"the checkpoint at iteration {seen.n_iter}: {error}") from None
        if not finite:
            raise MendError(f"the model at iteration {seen.n_iter} is not finite")


def stopping(subject: Subject) -> None:
    """A request to stop is obeyed at once, with the model of that moment."""
    points, whole = overlapping(), Watch()
    subject.make().fit(*points, monitor=whole)
    if not whole.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    for wanted in {1, max(1, len(whole.seen) // 2)}:
        watch = Watch(stop_after=wanted)
        solver = subject.make().fit(*points, monitor=watch)
        if len(watch.seen) > wanted or solver.n_iter_ > watch.seen[-1].n_iter:
            raise MendError(
                "it goes on after monitor.record has returned True; return a Solution with the "
                "status 'stopped' there"
            )
        if solver.status_ != "stopped":
            raise MendError(
                f"stopped by the monitor, it says {solver.status_!r:.40}; the status is 'stopped'"
            )
        if Fitted.of(solver).model != watch.seen[-1].digest:
            raise MendError(
                "stopped by the monitor, it returns another model than that of the checkpoint"
            )


def limits(subject: Subject) -> None:
    """A run ends near its limit of iterations, and says if it falls short of its tolerance."""
    limited = [name for name in LIMITS if name in subject.defaults]
    if not limited:
        raise NotApplicableError(
            "it has neither max_epochs nor max_iter: only its own rule and the timeout end a run"
        )
    X, y = overlapping()
    for name in limited:
        # So small a tolerance leaves the end to the limit.
        solver = subject.make(**{name: 2}, tol=_TINY).fit(X, y)
        allowed = 2 * len(y) if name == "max_epochs" else 2 + len(y)
        if solver.n_iter_ > allowed:
            raise MendError(
                f"with {name}=2 it does {solver.n_iter_} iterations on {len(y)} points; at most "
                f"{allowed} are allowed"
            )
        _check_shortfall(subject, name)


def _check_shortfall(subject: Subject, name: str) -> None:
    """A method with a stopping rule says what it fell short of."""
    if "tol" not in subject.defaults:
        return
    X, y = overlapping()
    if subject.make().fit(X, y).status_ != "converged":
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        solver = subject.make(**{name: 1}, tol=_TINY).fit(X, y)
    warned = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    if solver.status_ == "budget" and not warned:
        raise MendError(
            f"with {name}=1 it ends before it converges and nobody is told; give the Solution a "
            "shortfall, such as 'the duality gap is 0.2, tol=0.001'"
        )
