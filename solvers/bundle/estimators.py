"""Estimators trained by a bundle method: a classifier of the common interface, and a regressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight

from ..interface.base import WeightedSolver
from ..interface.convergence import warn_unconverged
from ..interface.declaration import hyperparameters
from ..interface.inputs import new_points, training_points
from ..interface.monitor import Monitor
from ..interface.problem import Problem, Solution
from ..kernels.scoring import linear_scores
from ..models import LinearModel
from ..numeric.counters import Counters
from ..numeric.validation import check_flag, check_one_of, check_positive
from ..registration import register
from .loop import (
    BundleResult,
    Pause,
    check_bundle_parameters,
    make_inner,
    minimize_bundle,
    uses_search,
)
from .losses import Loss
from .names import make_loss, make_regularizer
from .products import check_norms
from .regularizers import Regularizer
from .risk import Risk
from .search import PrimalSearch


@hyperparameters
class BundleParameters:
    """The problem that a bundle method solves, and how.

    Parameters
    ----------
    loss : str or Loss
        The convex loss whose weighted mean is R.
    regularizer : str or Regularizer
        "l2" (1/2 ||w||^2), "entropic", "simplex_entropy" (both with weights >= 0), "l1"; or a
        Legendre regulariser of your own.
    C : float > 0
        Weight of the summed loss against the regulariser.
    inner : {"auto", "qp", "line_search", "lp"}
        "qp" keeps all planes and solves a quadratic program over them (L2 alone); "line_search"
        keeps a single mixture of them (all but L1); "lp" is a linear program (L1 alone). "auto"
        takes the first that the regulariser admits.
    fit_intercept : bool
        Whether to fit a bias.
    offset : {"eliminated", "feature"}
        How: unregularised, minimised out exactly for each w (pointwise losses alone), or as the
        weight of a constant feature 1, regularised like the others.
    max_idle : int >= 1 or None
        ``inner="qp"``: planes that were not needed in so many iterations in a row are removed;
        None keeps all, as in [BMRM07]_.
    primal_search : bool or "auto"
        Move the best point to the minimum of J on the line to each iterate, and take the next plane
        near it; L2 alone. "auto": for pointwise losses with ``inner="qp"``; rankings, whose every
        point on the line takes a sort, and iterations of ``inner="line_search"`` go without.
    tol : float >= 0
        Stop when the gap is at most this part of the objective at the start.
    max_iter : int >= 1
        Stop after this many iterations, each one pass over the points.
    """

    loss: str | Loss = "hinge"
    regularizer: str | Regularizer = "l2"
    C: float = 1.0
    inner: str = "auto"
    fit_intercept: bool = False
    offset: str = "eliminated"
    max_idle: int | None = 10
    primal_search: bool | str = "auto"
    tol: float = 1e-3
    max_iter: int = 1000

    def _check_bundle_parameters(self, targets: str, kind: str) -> None:
        """Raise ValueError for a parameter out of range, or a loss of other targets."""
        check_positive("C", self.C)
        check_flag("fit_intercept", self.fit_intercept)
        check_one_of("offset", self.offset, ("eliminated", "feature"))
        check_bundle_parameters(self.tol, self.max_iter, self.max_idle)
        loss = make_loss(self.loss)
        if loss.targets != targets:
            raise ValueError(f"the loss of a {kind} takes {targets}, got {self.loss!r}")
        regularizer = make_regularizer(self.regularizer)
        uses_search(self.primal_search, loss, regularizer, self.inner)
        make_inner(self.inner, regularizer, 1, 1.0, 0.0, None)

    def _train(
        self,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        counters: Counters,
        pause: Pause | None = None,
    ) -> BundleResult:
        """Run the loop, with lambda = 1 / (C sum of the weights)."""
        loss, regularizer = make_loss(self.loss), make_regularizer(self.regularizer)
        lam = 1.0 / (float(self.C) * float(weights.sum()))
        offset = self.offset if self.fit_intercept else None
        risk = Risk(X, y, loss, weights, offset, counters)
        inner = make_inner(
            self.inner, regularizer, risk.dimension, lam, loss.lower_bound, self.max_idle
        )
        search = uses_search(self.primal_search, loss, regularizer, self.inner)
        return minimize_bundle(
            risk,
            regularizer,
            lam,
            inner,
            tol=self.tol,
            max_iter=self.max_iter,
            counters=counters,
            make_search=PrimalSearch if search else None,
            pause=pause,
        )


@register("svm")
@hyperparameters
class BundleClassifier(WeightedSolver, BundleParameters):
    """Linear classifier by a bundle method: any convex risk, any of several regularisers.

    Minimises ``Omega(w) + C W R(w)``, with the risk R a weighted mean of losses (over points, or
    over pairs of points, or of a whole ranking) and W the sum of the weights: for the hinge loss
    ``1/2 ||w||^2 + C sum_i weights_i hinge_i``. It is solved in the form ``J = lambda Omega + R``
    with ``lambda = 1 / (C W)``: each iteration adds the plane that touches R at w, and moves w to
    the minimum of the bound by all planes ([BMRM07]_ Algorithm 1) or by a mixture of them
    (Algorithm 2).

    Differences from [BMRM07]_: the primal search, by default; the best iterate is returned, not the
    last one; the gap that stops the run is that of the best iterate; planes that are long not
    needed may be removed. The update of r in its Algorithm 2 is read with the sign that makes r the
    constant of the mixture.

    Parameters
    ----------
    loss
        "hinge", "squared_hinge" (1/2 max(0, 1 - y f)^2), "logistic"; of a whole ranking "roc_area",
        "precision_at_k", "f1"; or a Loss, such as ``PrecisionAtK(10)`` or one of your own.
    primal_search
        Not in [BMRM07]_: move the best point to the minimum of J on the line to each iterate, and
        take the next plane near it ([FS08]_). Often several times fewer iterations; L2 alone.
        The objectives of ``trace_`` are then those of the best point. "auto" takes it with
        pointwise losses and ``inner="qp"``; set False for the method of [BMRM07]_.
    tol
        Stop when the gap between the best J and its lower bound is at most this part of J at the
        start, which for the hinge loss and L2 is 1.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (1, n_features)
    intercept_ : ndarray of float64, shape (1,)
    trace_ : BundleTrace
        J, its lower bound, gamma_t and epsilon_t of every iteration, in units of J.

    Notes
    -----
    Kernel evaluations: none. An iteration costs n inner products for the scores, one for the plane
    and one with each plane kept ("qp") or two ("line_search"), besides adding up the points with
    loss. The first iteration needs no scores. Memory: some vectors of n_features, and one for each
    plane kept ("qp", "lp"). Sub-optimality as the harness measures it is that of the hinge loss
    with L2. Returns the best w.

    References
    ----------
    .. [BMRM07] Smola, Vishwanathan, Le: Bundle methods for machine learning. NIPS 2007.
       BibTeX key ``smola2007bundle``.
    .. [FS08] Franc, Sonnenburg: Optimized cutting plane algorithm for support vector machines.
       ICML 2008. BibTeX key ``franc2008optimized``.
    """

    supports_bias = True
    scalarization = "C"
    deterministic = True
    kernel = "linear"

    def _check_parameters(self) -> None:
        self._check_bundle_parameters("labels", "classifier")

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        check_norms(problem.X)
        pause = recording(problem, monitor)
        found = self._train(problem.X, problem.y, problem.weights, problem.counters, pause)
        self.trace_ = found.trace
        return solution_of(found, self.tol)


def recording(problem: Problem, monitor: Monitor) -> Pause:
    """What the loop calls after an iteration: checkpoints where they are due."""

    def pause(n_iter: int, best: Callable[[], tuple[np.ndarray, Any]]) -> bool:
        return monitor.due(problem.counters.inner_products) and monitor.record(
            n_iter, lambda: LinearModel(*best())
        )

    return pause


def solution_of(found: BundleResult, tol: float) -> Solution:
    """The best iterate as the solution of a classifier."""
    model = LinearModel(found.weights, float(found.intercept))
    return Solution(model, found.n_iter, found.status, found.shortfall(tol))


@hyperparameters
class BundleRegressor(RegressorMixin, BundleParameters, BaseEstimator):
    """Linear regression by a bundle method: any convex loss, any of several regularisers.

    Minimises ``Omega(w) + C W R(w)`` like :class:`BundleClassifier`, R the weighted mean of a loss
    of the residuals.

    Parameters
    ----------
    loss
        "least_squares" (1/2 r^2), "epsilon_insensitive" (epsilon 0.1), "quantile" (the median); or
        a Loss, such as ``Quantile(0.9)`` or one of your own.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
    intercept_ : float
    n_iter_ : int
    status_ : {"converged", "budget"}
    counters_ : Counters
    trace_ : BundleTrace

    References
    ----------
    .. [BMRM07] Smola, Vishwanathan, Le: Bundle methods for machine learning. NIPS 2007.
       BibTeX key ``smola2007bundle``.
    """

    loss: str | Loss = "least_squares"
    fit_intercept: bool = True
    tol: float = 1e-6

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BundleRegressor:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
        y : array-like, shape (n,)
            Numbers.
        sample_weight : array-like, shape (n,), optional
            Factors >= 0 of the points' losses; 1 by default.

        Returns
        -------
        BundleRegressor
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, or NaN or infinity in the data.
        """
        self._check_bundle_parameters("numbers", "regressor")
        X, y = training_points(self, X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        check_norms(X)
        self.counters_ = Counters()
        found = self._train(X, y, weights, self.counters_)
        self.coef_, self.intercept_ = found.weights, float(found.intercept)
        self.n_iter_, self.status_, self.trace_ = found.n_iter, found.status, found.trace
        if missing := found.shortfall(self.tol):
            limit = f"max_iter={self.max_iter!r}"
            warn_unconverged(type(self).__name__, limit, missing, stacklevel=3)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predicted number for each row of X, float64, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        """
        X = new_points(self, X)
        return linear_scores(X, self.coef_) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
