"""The bundle methods as estimators, and as a function of plain arrays.

Each states a problem (a risk, a regulariser, lambda), and runs the loop of ``bmrm.py`` on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_X_y

from ..interface.base import WeightedSolver
from ..interface.convergence import warn_unconverged
from ..interface.declaration import hyperparameters
from ..interface.inputs import check_finite, new_points, training_points
from ..interface.monitor import Monitor
from ..interface.problem import Problem, Solution
from ..kernels.scoring import linear_scores
from ..models import LinearModel
from ..numeric.counters import Counters
from ..numeric.matrices import canonical
from ..numeric.validation import check_flag, check_one_of, check_positive, check_whole
from ..registration import register
from .bmrm import BundleResult, Pause, make_inner, minimize_bundle
from .losses import LOSSES, Hinge, Loss, PointwiseLoss
from .regularizers import L2, REGULARIZERS, Regularizer
from .risk import Risk
from .search import ExactSearch, PrimalSearch


@hyperparameters
class PlaneParameters:
    """The problem and the loop of a method that collects planes below a risk.

    Parameters
    ----------
    C : float > 0
        Weight of the summed loss against the regulariser.
    fit_intercept : bool
        Whether to fit a bias.
    offset : {"eliminated", "feature"}
        How: unregularised, minimised out exactly for each w (pointwise losses alone), or as the
        weight of a constant feature 1, regularised like the others.
    max_idle : int >= 1 or None
        Planes that were not needed in so many iterations in a row are removed; None keeps all.
    tol : float >= 0
        Stop when the gap between the best objective and its lower bound is at most this part of the
        objective at the start.
    max_iter : int >= 1
        Stop after this many iterations, each one pass over the points.
    """

    C: float = 1.0
    fit_intercept: bool = False
    offset: str = "eliminated"
    max_idle: int | None = None
    tol: float = 1e-3
    max_iter: int = 1000

    def _check_planes(self) -> None:
        """Raise ValueError for a parameter that is out of range."""
        check_positive("C", self.C)
        check_flag("fit_intercept", self.fit_intercept)
        check_one_of("offset", self.offset, ("eliminated", "feature"))
        check_positive("tol", self.tol, zero=True)
        check_whole("max_iter", self.max_iter, at_least=1)
        if self.max_idle is not None:
            check_whole("max_idle", self.max_idle, at_least=1)

    def _choices(self) -> tuple[Loss, Regularizer, str, Callable[..., PrimalSearch] | None]:
        """The loss, the regulariser, the inner solver, and what searches along a line."""
        raise NotImplementedError

    def _train(
        self,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        counters: Counters,
        lam: float | None = None,
        pause: Pause | None = None,
    ) -> BundleResult:
        """Run the loop, with lambda = 1 / (C sum of the weights) if none is given."""
        lam = 1.0 / (float(self.C) * float(weights.sum())) if lam is None else lam
        loss, regularizer, name, make_search = self._choices()
        risk = Risk(X, y, loss, weights, self.offset if self.fit_intercept else None, counters)
        inner = make_inner(name, regularizer, risk.dimension, lam, loss.lower_bound, self.max_idle)
        return minimize_bundle(
            risk, regularizer, lam, inner, tol=self.tol, max_iter=self.max_iter, counters=counters,
            make_search=make_search, pause=pause,
        )  # fmt: skip


@hyperparameters
class PlaneSolver(WeightedSolver):
    """Base class of the classifiers among these methods.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (1, n_features)
    intercept_ : ndarray of float64, shape (1,)
    """

    supports_bias = True
    scalarization = "C"
    deterministic = True
    kernel = "linear"

    def _check_parameters(self) -> None:
        self._check_planes()

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        def pause(n_iter: int, best: Callable[[], tuple[np.ndarray, Any]]) -> bool:
            return monitor.due(problem.counters.inner_products) and monitor.record(
                n_iter, lambda: LinearModel(*best())
            )

        result = self._train(problem.X, problem.y, problem.weights, problem.counters, pause=pause)
        self.trace_ = result.trace
        model = LinearModel(result.weights, float(result.intercept))
        return Solution(model, result.n_iter, result.status, result.shortfall(self.tol))


@hyperparameters
class BundleParameters(PlaneParameters):
    """A choice of losses, regularisers and inner solvers.

    Parameters
    ----------
    loss : str or Loss
        The convex loss whose weighted mean is R.
    regularizer : str or Regularizer
        "l2" (1/2 ||w||^2), "entropic", "simplex_entropy" (both with weights >= 0), "l1"; or a
        Legendre regulariser of your own.
    inner : {"auto", "qp", "line_search", "lp"}
        "qp" keeps all planes and solves a quadratic program over them (L2 alone); "line_search"
        keeps a single mixture of them (all but L1); "lp" is a linear program (L1 alone). "auto"
        takes the first that the regulariser admits.
    max_idle : int >= 1 or None
        ``inner="qp"``: planes that were not needed in so many iterations in a row are removed;
        None keeps all, as in [BMRM07]_.
    primal_search : bool or "auto"
        Move the best point to the minimum of J on the line to each iterate, and take the next plane
        near it ([FS08]_); L2 alone. Often several times fewer iterations than [BMRM07]_, which is
        False; the trace then has the objectives of the best point. "auto": for pointwise losses
        with ``inner="qp"``; rankings, whose every point on the line takes a sort, and iterations of
        ``inner="line_search"`` go without.
    """

    loss: str | Loss = "hinge"
    regularizer: str | Regularizer = "l2"
    inner: str = "auto"
    max_idle: int | None = 10
    primal_search: bool | str = "auto"

    #: What the loss takes, and who says so; empty for any.
    _targets: ClassVar[tuple[str, str]] = ("", "")

    def _check_planes(self) -> None:
        super()._check_planes()
        loss, regularizer, inner, _ = self._choices()
        targets, kind = self._targets
        if targets and loss.targets != targets:
            raise ValueError(f"the loss of a {kind} takes {targets}, got {self.loss!r}")
        make_inner(inner, regularizer, 1, 1.0, 0.0, None)

    def _choices(self) -> tuple[Loss, Regularizer, str, Callable[..., PrimalSearch] | None]:
        loss = _named("loss", self.loss, Loss, LOSSES)
        regularizer = _named("regularizer", self.regularizer, Regularizer, REGULARIZERS)
        search, simple = self.primal_search, isinstance(regularizer, L2)
        if isinstance(search, str) and search == "auto":
            search = simple and isinstance(loss, PointwiseLoss) and self.inner in ("auto", "qp")
        if not isinstance(search, bool | np.bool_):
            raise ValueError(f"primal_search must be True, False or 'auto', got {search!r}")
        if search and not simple:
            raise ValueError(
                "primal_search=True takes the L2 regulariser alone, got "
                f"{type(regularizer).__name__}"
            )
        return loss, regularizer, self.inner, PrimalSearch if search else None


def _named(parameter: str, value: Any, kind: type[Any], by_name: Mapping[str, Any]) -> Any:
    """The loss or regulariser of this name, with its default parameters; or the value itself."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str) or value not in by_name:
        raise ValueError(
            f"{parameter} must be a {kind.__name__} or one of {', '.join(by_name)}, got {value!r}"
        )
    return by_name[value]()


@register("svm")
@hyperparameters
class BundleClassifier(PlaneSolver, BundleParameters):
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

    Attributes
    ----------
    trace_ : BundleTrace
        J, its lower bound, gamma_t and epsilon_t of every iteration, in units of J.

    Notes
    -----
    Kernel evaluations: none. An iteration costs n inner products for the scores, one for the plane
    and one with each plane kept ("qp") or two ("line_search"), besides adding up the points with
    loss. The first iteration needs no scores. Memory: some vectors of n_features, and one for each
    plane kept ("qp", "lp"). Sub-optimality as the harness measures it is that of the hinge loss
    with L2. Returns the best w.
    """

    _targets = "labels", "classifier"


@register("svm")
@hyperparameters
class OCAS(PlaneSolver, PlaneParameters):
    """Linear soft-margin SVM by optimised cutting planes, without or with bias.

    Minimises ``1/2 ||w||^2 + C sum_i weights_i hinge_i``. Each iteration adds a plane below the
    risk and takes the minimum w_t of the bound by all planes; the best point w_b moves to the exact
    minimum of the objective on the line to w_t, and the next plane touches the risk at
    ``(1 - mu) w_b + mu w_t`` ([FS08]_, [FS09]_). The objective of w_b never rises.

    Differences from the paper: an unregularised bias is minimised out for each w, and then the line
    search follows tangents (the authors regularise the bias: ``offset="feature"``); the gap that
    stops the run is in units of the objective at w = 0 (theirs is at most 0.01 of the best one).
    :class:`BundleClassifier` with ``primal_search=True`` is a variant for other losses, too: its
    line search is approximate, it takes planes at w_t where the bound hardly rises, and removes
    planes that are long not needed.

    Parameters
    ----------
    mu : float in (0, 1]
        How far from the best point, on the way to w_t, the next plane is taken. The authors take
        0.1; with 1 it is taken at w_t.

    Attributes
    ----------
    trace_ : BundleTrace
        The best objective and its lower bound in every iteration, over C times the sum of the
        weights.

    Notes
    -----
    Kernel evaluations: none. An iteration costs n inner products for the scores of w_t, one for the
    plane and one with each plane kept. The line search takes time O(n log n); with an eliminated
    offset, some ten passes over the scores. Memory: a vector of n_features for each plane kept, and
    some of n. Returns w_b.
    """

    mu: float = 0.1

    def _check_planes(self) -> None:
        super()._check_planes()
        check_positive("mu", self.mu)
        if self.mu > 1:
            raise ValueError(f"mu must be a number > 0 and <= 1, got {self.mu!r}")

    def _choices(self) -> tuple[Loss, Regularizer, str, Callable[..., PrimalSearch] | None]:
        return Hinge(), L2(), "qp", partial(ExactSearch, share=float(self.mu))


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
    """

    loss: str | Loss = "least_squares"
    fit_intercept: bool = True
    tol: float = 1e-6

    _targets = "numbers", "regressor"

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
        self._check_planes()
        X, y = training_points(self, X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self.counters_ = Counters()
        result = self._train(X, y, _weights(sample_weight, X), self.counters_)
        self.coef_, self.intercept_ = result.weights, float(result.intercept)
        self.n_iter_, self.status_, self.trace_ = result.n_iter, result.status, result.trace
        if missing := result.shortfall(self.tol):
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
        Weight of the regulariser Omega.
    offset : {"eliminated", "feature"} or None, default=None
        An offset of the scores, as for :class:`BundleClassifier`; None for none.
    sample_weight : array-like, shape (n,), optional
        Factors >= 0 of the points; 1 by default.
    regularizer, inner, tol, max_iter, max_idle, primal_search
        See :class:`BundleClassifier`.

    Returns
    -------
    BundleResult

    Raises
    ------
    ValueError
        For parameters out of range or data that the loss cannot take.
    """
    settings = BundleParameters(
        loss=loss, regularizer=regularizer, inner=inner, fit_intercept=offset is not None,
        offset="feature" if offset is None else offset, max_idle=max_idle,
        primal_search=primal_search, tol=tol, max_iter=max_iter,
    )  # fmt: skip
    settings._check_planes()
    check_positive("lam", lam)
    floats = [np.float64, np.float32]
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=floats, ensure_all_finite=False)
    check_finite(X)
    X = canonical(X) if sparse.issparse(X) else X
    y = y if settings._choices()[0].targets == "classes" else y.astype(np.float64)
    result = settings._train(X, y, _weights(sample_weight, X), Counters(), lam)
    if missing := result.shortfall(tol):
        warn_unconverged("minimize_risk", f"max_iter={max_iter!r}", missing, stacklevel=3)
    return result


def _weights(sample_weight: Any, X: Any) -> np.ndarray:
    """Factors of the points, float64, shape (n,); ValueError unless >= 0 and not all 0."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():  # which older versions of scikit-learn let pass
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights
