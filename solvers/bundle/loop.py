"""The bundle method: a regularised risk minimised by planes below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..interface.convergence import warn_unconverged
from ..interface.inputs import canonical, check_finite
from ..interface.problem import SolveStatus
from ..numeric.counters import Counters
from ..numeric.validation import (
    check_one_of,
    check_positive,
    check_whole,
)
from .inner import Inner, LineSearch, PlanesByLP, PlanesByQP
from .losses import Loss, PointwiseLoss
from .names import make_loss, make_regularizer
from .regularizers import L2, Legendre, Regularizer
from .risk import Risk
from .search import PrimalSearch
from .trace import BundleTrace

#: Called after each iteration with its number and a function that gives the weights and the
#: intercept of the best iterate; returns whether to stop.
Pause = Callable[[int, Callable[[], tuple[np.ndarray, Any]]], bool]
# The inner problem is solved to this part of the gap that is asked for.
_INNER_SHARE = 0.1
# A plane that raises the lower bound by less than this part of the gap was taken at a bad place.
_STALLED = 1e-2


@dataclass(frozen=True)
class BundleResult:
    """The best iterate of a bundle method.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_features,) or (n_features, n_outputs)
    intercept : float, or ndarray of float64, shape (n_outputs,)
        0 without an offset.
    objective : float
        Its regularised risk.
    lower_bound : float
        Of the optimum.
    trace : BundleTrace
    n_iter : int
        Iterations, each with one pass over the points for the plane and one for the scores.
    status : {"converged", "budget", "stopped"}
    """

    weights: np.ndarray
    intercept: Any
    objective: float
    lower_bound: float
    trace: BundleTrace
    n_iter: int
    status: SolveStatus

    def shortfall(self, tol: float) -> str:
        """What a run that ended at its limit achieved; empty where ``tol=0`` asks for the limit.

        Parameters
        ----------
        tol : float
            The part of the objective at the start that the gap was to reach.
        """
        if self.status != "budget" or not tol:
            return ""
        part = (self.objective - self.lower_bound) / self.trace.objective[0]
        return f"the gap is {part:.2g} of the objective at the start, tol={tol!r}"


def make_inner(
    name: str,
    regularizer: Regularizer,
    dimension: int,
    lam: float,
    floor: float,
    max_idle: int | None,
) -> Inner:
    """The inner solver of this name."""
    check_one_of("inner", name, ("auto", "qp", "line_search", "lp"))
    name = regularizer.inner[0] if name == "auto" else name
    if name not in regularizer.inner:
        raise ValueError(
            f"inner={name!r} cannot take the {type(regularizer).__name__} regulariser: set "
            f"inner={' or '.join(map(repr, regularizer.inner))}"
        )
    if name == "line_search" and isinstance(regularizer, Legendre):
        return LineSearch(regularizer, dimension, lam, floor)
    if name == "lp":
        return PlanesByLP(dimension, lam, floor)
    return PlanesByQP(dimension, lam, floor, max_idle)


def minimize_bundle(
    risk: Risk,
    regularizer: Regularizer,
    lam: float,
    inner: Inner,
    *,
    tol: float,
    max_iter: int,
    counters: Counters,
    make_search: Callable[..., PrimalSearch] | None = None,
    pause: Pause | None = None,
) -> BundleResult:
    """The outer loop (BMRM07 Algorithm 1)."""
    w = inner.start()
    best = w
    objective = risk.evaluate(w) + lam * regularizer.value(w)
    lowest, lower, minimizer = objective, inner.lower_bound, risk.minimizer
    objectives, bounds = [objective], [lower]
    gap = tol * objective
    n_iter, status = 0, "budget"

    search = make_search(risk, lam, w, objective) if make_search is not None else None
    stalled = False

    def snapshot() -> tuple[np.ndarray, Any]:
        return risk.split(best, minimizer)

    while n_iter < max_iter and lowest - lower > gap:
        before = inner.inner_products
        w = inner.add(*risk.plane(w), _INNER_SHARE * gap)
        counters.inner_products += inner.inner_products - before
        stalled = inner.lower_bound - lower <= _STALLED * (lowest - lower)
        lower = max(lower, inner.lower_bound)
        n_iter += 1
        if search is None:
            objective = risk.evaluate(w) + lam * regularizer.value(w)
            found, minimum = w, risk.minimizer
        else:
            w = search.step(w, stalled=stalled)
            found, objective, minimum = search.w, search.objective, search.minimizer
        if objective < lowest:
            best, lowest, minimizer = found, objective, minimum
        objectives.append(objective)
        bounds.append(lower)
        if pause is not None and pause(n_iter, snapshot):
            status = "stopped"
            break
    if status != "stopped" and lowest - lower <= gap:
        status = "converged"
    weights, intercept = snapshot()
    trace = BundleTrace(np.array(objectives), np.array(bounds))
    return BundleResult(weights, intercept, lowest, lower, trace, n_iter, status)  # type: ignore[arg-type]


def minimize_risk(
    X: Any,
    y: Any,
    loss: str | Loss = "hinge",
    *,
    lam: float,
    regularizer: str | Regularizer = "l2",
    inner: str = "auto",
    offset: str | None = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_idle: int | None = 10,
    primal_search: bool | str = "auto",
) -> BundleResult:
    """Minimise ``lam Omega(w) + R(Xw, y)`` by a bundle method.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (n, n_features)
    y : array-like, shape (n,)
        In the form that the loss expects: labels -1 and +1, numbers, or classes 0, 1, ...
    loss : str or Loss, default="hinge"
        The risk R, a mean over the points or over pairs of them.
    lam : float > 0
        Weight of the regulariser.
    regularizer : {"l2", "entropic", "simplex_entropy", "l1"} or Regularizer, default="l2"
        Omega.
    inner : {"auto", "qp", "line_search", "lp"}, default="auto"
        How the planes give the next w.
    offset : {"eliminated", "feature"} or None, default=None
        An offset of the scores, unregularised and minimised out exactly for each w (pointwise
        losses), or the weight of a constant feature, regularised.
    sample_weight : array-like, shape (n,), optional
        Factors >= 0 of the points; 1 by default.
    tol : float >= 0, default=1e-3
        Stop when the gap is at most this part of the objective at the start.
    max_iter : int >= 1, default=1000
        Most iterations.
    max_idle : int >= 1 or None, default=10
        ``inner="qp"``: planes that were not needed in so many iterations in a row are removed.
    primal_search : bool or "auto", default="auto"
        Move the best point along the line to each iterate, and take planes near it; L2 alone. Then
        the trace's objectives are those of the best point. "auto": for pointwise losses with
        ``inner="qp"``.

    Returns
    -------
    BundleResult

    Raises
    ------
    ValueError
        For parameters out of range or data that the loss cannot take.
    """
    loss, regularizer = make_loss(loss), make_regularizer(regularizer)
    check_bundle_parameters(tol, max_iter, max_idle)
    search = uses_search(primal_search, loss, regularizer, inner)
    check_positive("lam", lam)
    if offset is not None:
        check_one_of("offset", offset, ("eliminated", "feature"))
    y = np.asarray(y)
    X = canonical(sparse.csr_matrix(X)) if sparse.issparse(X) else np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    check_finite(X)
    if X.ndim != 2 or y.shape != (X.shape[0],) or not len(y):
        raise ValueError(f"X and y must have as many rows, at least 1: got {X.shape}, {y.shape}")
    y = y if loss.targets == "classes" else y.astype(np.float64)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != y.shape or not (
        np.isfinite(weights).all() and weights.min() >= 0 < weights.max()
    ):
        raise ValueError(f"sample_weight must hold {len(y)} finite numbers >= 0, not all 0")
    counters = Counters()
    risk = Risk(X, y, loss, weights, offset, counters)
    solver = make_inner(inner, regularizer, risk.dimension, lam, loss.lower_bound, max_idle)
    found = minimize_bundle(
        risk,
        regularizer,
        lam,
        solver,
        tol=tol,
        max_iter=max_iter,
        counters=counters,
        make_search=PrimalSearch if search else None,
    )
    if missing := found.shortfall(tol):
        warn_unconverged("minimize_risk", f"max_iter={max_iter!r}", missing, stacklevel=3)
    return found


def check_bundle_parameters(tol: Any, max_iter: Any, max_idle: Any) -> None:
    """Raise ValueError for parameters of the loop that are out of range."""
    check_positive("tol", tol, zero=True)
    check_whole("max_iter", max_iter, at_least=1)
    if max_idle is not None:
        check_whole("max_idle", max_idle, at_least=1)


def uses_search(primal_search: Any, loss: Loss, regularizer: Regularizer, inner: str) -> bool:
    """Whether to use the primal search; "auto" takes it where it has been found to be faster."""
    if isinstance(primal_search, str) and primal_search == "auto":
        planes = inner in ("auto", "qp")
        return isinstance(regularizer, L2) and isinstance(loss, PointwiseLoss) and planes
    if not isinstance(primal_search, bool | np.bool_):
        raise ValueError(f"primal_search must be True, False or 'auto', got {primal_search!r}")
    if primal_search and not isinstance(regularizer, L2):
        raise ValueError(
            f"primal_search=True takes the L2 regulariser alone, got {type(regularizer).__name__}"
        )
    return bool(primal_search)
