"""Estimators trained by a bundle method: a classifier of the common interface, and a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from marginbench.solvers.bundle.loop import (
    BundleResult,
    Risk,
    check_bundle_parameters,
    check_search,
    make_inner,
    minimize_bundle,
)
from marginbench.solvers.bundle.losses import Loss
from marginbench.solvers.bundle.names import make_loss, make_regularizer
from marginbench.solvers.bundle.regularizers import Regularizer
from marginbench.solvers.interface.base import WeightedSolver
from marginbench.solvers.interface.inputs import canonical, check_finite
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution
from marginbench.solvers.models import LinearModel
from marginbench.solvers.models.scoring import linear_scores
from marginbench.solvers.numeric.counters import Counters
from marginbench.solvers.numeric.sample_loops import finite_squared_norms
from marginbench.solvers.numeric.validation import flag, one_of, positive


class BundleClassifier(WeightedSolver):
    """Linear classifier by a bundle method: any convex risk, any of several regularisers.

    Minimises ``Omega(w) + C W R(w)``, with the risk R a weighted mean of losses (over points, or
    over pairs of points, or of a whole ranking) and W the sum of the weights: for the hinge loss
    ``1/2 ||w||^2 + C sum_i weights_i hinge_i``. It is solved in the form ``J = lambda Omega + R``
    with ``lambda = 1 / (C W)``: each iteration adds the plane that touches R at w, and moves w to
    the minimum of the bound by all planes ([BMRM07]_ Algorithm 1) or by a mixture of them
    (Algorithm 2).

    Differences from [BMRM07]_: the best iterate is returned, not the last one; the gap that stops
    the run is that of the best iterate; planes that are long not needed may be removed. The update
    of r in its Algorithm 2 is read with the sign that makes r the constant of the mixture.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge" (1/2 max(0, 1 - y f)^2), "logistic"; of a whole ranking "roc_area",
        "precision_at_k", "f1"; or a Loss, such as ``PrecisionAtK(10)`` or one of your own.
    regularizer : str or Regularizer, default="l2"
        "l2" (1/2 ||w||^2), "entropic", "simplex_entropy" (both with weights >= 0), "l1"; or a
        Legendre regulariser of your own.
    C : float > 0, default=1.0
        Weight of the summed loss against the regulariser.
    inner : {"auto", "qp", "line_search", "lp"}, default="auto"
        "qp" keeps all planes and solves a quadratic program over them (L2 alone); "line_search"
        keeps a single mixture of them (all but L1); "lp" is a linear program (L1 alone). "auto"
        takes the first that the regulariser admits.
    fit_intercept : bool, default=False
        Whether to fit a bias.
    offset : {"eliminated", "feature"}, default="eliminated"
        How: unregularised, minimised out exactly for each w (pointwise losses alone), or as the
        weight of a constant feature 1, regularised like the others.
    max_idle : int >= 1 or None, default=10
        ``inner="qp"``: planes that were not needed in so many iterations in a row are removed;
        None keeps all, as in [BMRM07]_.
    primal_search : bool, default=False
        Not in [BMRM07]_: move the best point to the minimum of J on the line to each iterate, and
        take the next plane near it ([FS08]_). Often several times fewer iterations; L2 alone.
        The objectives of ``trace_`` are then those of the best point.
    tol : float >= 0, default=1e-3
        Stop when the gap between the best J and its lower bound is at most this part of J at the
        start, which for the hinge loss and L2 is 1.
    max_epochs : int >= 1, default=1000
        Stop after this many iterations, each one pass over the points.
    class_weight : dict, "balanced" or None, default=None
        Factors of the losses of each class.

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
    kernel = "linear"

    def __init__(
        self,
        *,
        loss: str | Loss = "hinge",
        regularizer: str | Regularizer = "l2",
        C: float = 1.0,
        inner: str = "auto",
        fit_intercept: bool = False,
        offset: str = "eliminated",
        max_idle: int | None = 10,
        primal_search: bool = False,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        class_weight: Any = None,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.C = C
        self.inner = inner
        self.fit_intercept = fit_intercept
        self.offset = offset
        self.max_idle = max_idle
        self.primal_search = primal_search
        self.tol = tol
        self.max_epochs = max_epochs
        self.class_weight = class_weight

    def _check_parameters(self) -> None:
        _check(self)
        if make_loss(self.loss).targets != "labels":
            raise ValueError(f"the loss of a classifier takes labels, got {self.loss!r}")

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        finite_squared_norms(problem.X)

        def pause(n_iter: int, best: Any) -> bool:
            return monitor.due(problem.counters.inner_products) and monitor.record(
                n_iter, lambda: LinearModel(*best())
            )

        found = _train(self, problem.X, problem.y, problem.weights, problem.counters, pause)
        self.trace_ = found.trace
        model = LinearModel(found.weights, float(found.intercept))
        return Solution(model, found.n_iter, found.status)


class BundleRegressor(RegressorMixin, BaseEstimator):
    """Linear regression by a bundle method: any convex loss, any of several regularisers.

    Minimises ``Omega(w) + C W R(w)`` like :class:`BundleClassifier`, R the weighted mean of a loss
    of the residuals.

    Parameters
    ----------
    loss : str or Loss, default="least_squares"
        "least_squares" (1/2 r^2), "epsilon_insensitive" (epsilon 0.1), "quantile" (the median); or
        a Loss, such as ``Quantile(0.9)`` or one of your own.
    regularizer : str or Regularizer, default="l2"
        "l2", "entropic", "simplex_entropy", "l1", or a Legendre regulariser.
    C : float > 0, default=1.0
        Weight of the summed loss against the regulariser.
    inner : {"auto", "qp", "line_search", "lp"}, default="auto"
        How the planes give the next w.
    fit_intercept : bool, default=True
        Whether to fit an offset.
    offset : {"eliminated", "feature"}, default="eliminated"
        How: unregularised, minimised out exactly for each w, or as the weight of a constant
        feature 1, regularised.
    max_idle : int >= 1 or None, default=10
        ``inner="qp"``: planes not needed in so many iterations in a row are removed.
    primal_search : bool, default=False
        Move the best point to the minimum of J on the line to each iterate, and take the next plane
        near it; L2 alone.
    tol : float >= 0, default=1e-6
        Stop when the gap is at most this part of the objective at the start.
    max_epochs : int >= 1, default=1000
        Stop after this many iterations.

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

    def __init__(
        self,
        *,
        loss: str | Loss = "least_squares",
        regularizer: str | Regularizer = "l2",
        C: float = 1.0,
        inner: str = "auto",
        fit_intercept: bool = True,
        offset: str = "eliminated",
        max_idle: int | None = 10,
        primal_search: bool = False,
        tol: float = 1e-6,
        max_epochs: int = 1000,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.C = C
        self.inner = inner
        self.fit_intercept = fit_intercept
        self.offset = offset
        self.max_idle = max_idle
        self.primal_search = primal_search
        self.tol = tol
        self.max_epochs = max_epochs

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
        _check(self)
        flag("fit_intercept", self.fit_intercept)
        if make_loss(self.loss).targets != "numbers":
            raise ValueError(f"the loss of a regressor takes numbers, got {self.loss!r}")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            y_numeric=True,
            order="C",
            ensure_all_finite=False,
        )
        check_finite(X)
        y = np.asarray(y, dtype=np.float64)
        X = canonical(X) if sparse.issparse(X) else X
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        finite_squared_norms(X)
        self.counters_ = Counters()
        found = _train(self, X, y, weights, self.counters_)
        self.coef_, self.intercept_ = found.weights, float(found.intercept)
        self.n_iter_, self.status_, self.trace_ = found.n_iter, found.status, found.trace
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predicted number for each row of X, float64, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        return linear_scores(X, self.coef_) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _check(estimator: Any) -> None:
    """Raise ValueError for a parameter that both estimators have and that is out of range."""
    positive("C", estimator.C)
    one_of("offset", estimator.offset, ("eliminated", "feature"))
    check_bundle_parameters(estimator.tol, estimator.max_epochs, estimator.max_idle)
    make_loss(estimator.loss)
    check_search(estimator.primal_search, make_regularizer(estimator.regularizer))
    make_inner(estimator.inner, make_regularizer(estimator.regularizer), 1, 1.0, 0.0, None)


def _train(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray,
    counters: Counters,
    pause: Any = None,
) -> BundleResult:
    """Run the loop with an estimator's parameters, with lambda = 1 / (C sum of the weights)."""
    loss, regularizer = make_loss(estimator.loss), make_regularizer(estimator.regularizer)
    lam = 1.0 / (float(estimator.C) * float(weights.sum()))
    offset = estimator.offset if estimator.fit_intercept else None
    risk = Risk(X, y, loss, weights, offset, counters)
    inner = make_inner(
        estimator.inner, regularizer, risk.dimension, lam, loss.lower_bound, estimator.max_idle
    )
    return minimize_bundle(
        risk,
        regularizer,
        lam,
        inner,
        tol=estimator.tol,
        max_epochs=estimator.max_epochs,
        counters=counters,
        primal_search=estimator.primal_search,
        pause=pause,
    )
