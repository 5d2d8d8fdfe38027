"""OCAS: the linear SVM by optimised cutting planes."""

from __future__ import annotations

from functools import partial

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters
from ..interface.problem import Problem, Solution
from ..numeric.validation import check_one_of, check_positive
from ..registration import register
from .estimators import recording, solution_of
from .inner import PlanesByQP
from .loop import check_bundle_parameters, minimize_bundle
from .losses import Hinge
from .products import check_norms
from .regularizers import L2
from .risk import Risk
from .search import ExactSearch


@register("svm")
@hyperparameters
class OCAS(WeightedSolver, SoftMarginParameters):
    """Linear soft-margin SVM by optimised cutting planes, without or with bias.

    Minimises ``1/2 ||w||^2 + C sum_i weights_i hinge_i``. Each iteration adds a plane below the
    risk and takes the minimum w_t of the bound by all planes; the best point w_b moves to the exact
    minimum of the objective on the line to w_t, and the next plane touches the risk at
    ``(1 - mu) w_b + mu w_t`` ([FS08]_, [FS09]_). The objective of w_b never rises.

    Differences from the paper: the breakpoints of the line search are selected and not sorted; an
    unregularised bias is minimised out for each w, and then the line search follows tangents (the
    authors regularise the bias: ``offset="feature"``); the gap that stops the run is in units of
    the objective at w = 0 and not of the best one. :class:`BundleClassifier` with
    ``primal_search=True`` is a variant for other losses, too: its line search is approximate, it
    takes planes at w_t where the bound hardly rises, and removes planes that are long not needed.

    Parameters
    ----------
    C
        Weight of the summed hinge loss.
    fit_intercept : bool
        Whether to fit a bias.
    offset : {"eliminated", "feature"}
        How: unregularised, minimised out exactly for each w, or as the weight of a constant feature
        1, regularised like the others.
    mu : float in (0, 1]
        How far from the best point, on the way to w_t, the next plane is taken. The authors take
        0.1; with 1 it is taken at w_t.
    max_idle : int >= 1 or None
        Planes that were not needed in so many iterations in a row are removed; None keeps all.
    tol : float >= 0
        Stop when the gap between the best objective and its lower bound is at most this part of the
        objective at w = 0. The authors stop at 0.01 of the best objective.
    max_iter : int >= 1
        Stop after this many iterations, each one pass over the points.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (1, n_features)
    intercept_ : ndarray of float64, shape (1,)
    trace_ : BundleTrace
        The best objective and its lower bound in every iteration, over C times the sum of the
        weights.

    Notes
    -----
    Kernel evaluations: none. An iteration costs n inner products for the scores of w_t, one for the
    plane and one with each plane kept. The line search takes expected time O(n), O(n log n) at
    worst; with an eliminated offset, some ten passes over the scores. Memory: a vector of
    n_features for each plane kept, and some of n. Returns w_b.

    References
    ----------
    .. [FS08] Franc, Sonnenburg: Optimized cutting plane algorithm for support vector machines.
       ICML 2008. BibTeX key ``franc2008optimized``.
    .. [FS09] Franc, Sonnenburg: Optimized cutting plane algorithm for large-scale risk
       minimization. JMLR 10, 2009. BibTeX key ``franc2009optimized``.
    """

    supports_bias = True
    scalarization = "C"
    deterministic = True
    kernel = "linear"

    fit_intercept: bool = False
    offset: str = "eliminated"
    mu: float = 0.1
    max_idle: int | None = None
    tol: float = 1e-3
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_one_of("offset", self.offset, ("eliminated", "feature"))
        check_positive("mu", self.mu)
        if self.mu > 1:
            raise ValueError(f"mu must be a number > 0 and <= 1, got {self.mu!r}")
        check_bundle_parameters(self.tol, self.max_iter, self.max_idle)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        check_norms(problem.X)
        offset = self.offset if self.fit_intercept else None
        weights = problem.weights
        lam = 1.0 / (float(self.C) * float(weights.sum()))
        risk = Risk(problem.X, problem.y, Hinge(), weights, offset, problem.counters)
        found = minimize_bundle(
            risk,
            L2(),
            lam,
            PlanesByQP(risk.dimension, lam, Hinge.lower_bound, self.max_idle),
            tol=self.tol,
            max_iter=self.max_iter,
            counters=problem.counters,
            make_search=partial(ExactSearch, share=float(self.mu)),
            pause=recording(problem, monitor),
        )
        self.trace_ = found.trace
        return solution_of(found, self.tol)
