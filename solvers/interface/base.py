"""The common interface of every solver: a scikit-learn classifier around one ``_solve``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from marginbench.solvers.interface.convergence import warn_unconverged
from marginbench.solvers.interface.declaration import hyperparameters
from marginbench.solvers.interface.inputs import (
    class_weights,
    dtype_name,
    generator,
    new_points,
    training_points,
)
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution
from marginbench.solvers.kernels import Kernel, make_kernel
from marginbench.solvers.kernels.oracle import KernelOracle
from marginbench.solvers.numeric.counters import Counters
from marginbench.solvers.numeric.matrices import Matrix
from marginbench.solvers.numeric.validation import check_flag, check_one_of, check_positive


class Solver(ClassifierMixin, BaseEstimator, ABC):
    """Base class of the solvers: checks the input, builds the problem, calls :meth:`_solve`.

    A new solver derives from this class, lists what it supports in the class attributes, declares
    its parameters with :func:`hyperparameters` or takes them in an ``__init__`` of its own, and
    implements ``_solve``. Parameters that it does not take keep the class attribute's value below.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    dual_coef_ : ndarray, shape (1, n_support)
        Signed coefficients of the support vectors.
    support_ : ndarray of int, shape (n_support,)
    support_vectors_ : ndarray or csr_matrix, shape (n_support, n_features)
    intercept_ : ndarray, shape (1,)
    n_iter_ : int
    counters_ : Counters or None
        What the fit cost; None for a solver that is not instrumented.
    status_ : {"converged", "no_separator", "budget", "stopped"}
        Why the fit ended: its stopping rule was met; a feasibility method met its rule without a
        separator, so that none has a margin above ``tol`` and the predictions mean nothing; the
        limit on iterations; the monitor.
    model_ : Model

    Notes
    -----
    A model that is no expansion over training points sets its own attributes instead of
    ``dual_coef_``, ``support_`` and ``support_vectors_`` (:meth:`marginbench.Model.attributes`).
    """

    #: Solves the problem with an unregularised bias, and the one without.
    supports_bias: ClassVar[bool] = False
    supports_no_bias: ClassVar[bool] = True
    supports_sparse: ClassVar[bool] = True
    supports_callable_kernel: ClassVar[bool] = True
    #: The form of the problem: "C" or "R" (the soft-margin SVM, with C or lambda = 1 / (n C)),
    #: "S" (slack-constrained margin, takes nu), None (another aim: no suboptimality is defined).
    scalarization: ClassVar[Literal["C", "R", "S"] | None] = "C"
    #: "dual": the coefficients are y_i alpha_i with alpha feasible in the dual of (C).
    certificate: ClassVar[Literal["dual"] | None] = None
    #: Counts its kernel evaluations.
    instrumented: ClassVar[bool] = True

    kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    fit_intercept: bool = False
    tol: float = 0.0
    dtype: str = "float32"
    cache_size: float = 0.0
    class_weight: Any = None
    random_state: Any = None

    @abstractmethod
    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Train on this problem; every kernel entry comes from ``problem.oracle``."""

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter of the method itself that is out of range."""

    def _limit(self) -> str:
        """The parameter that ends a run which does not converge, as text."""
        name = "max_iter" if hasattr(self, "max_iter") else "max_epochs"
        return f"{name}={getattr(self, name)!r}"

    def fit(self, X: Any, y: Any, monitor: Monitor | None = None, **options: Any) -> Solver:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Labels, any two values; the larger one is the positive class.
        monitor : Monitor, optional
            Watches the run.
        **options
            None are taken. Sample weights belong to the solvers whose method admits them.

        Returns
        -------
        Solver
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, labels that are not two classes, or
            sample weights.
        """
        if options.pop("sample_weight", None) is not None:
            raise ValueError(f"{type(self).__name__} does not take sample_weight")
        if options:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(options))!r}")
        return self._fit(X, y, None, monitor)

    def _fit(self, X: Any, y: Any, sample_weight: Any, monitor: Monitor | None) -> Solver:
        self._check_common_parameters()
        self._check_parameters()
        X, y = self._check_training_set(X, y)
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        weights = self._weights(X, y, sample_weight)
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=X
        )
        monitor = Monitor() if monitor is None else monitor
        counters = Counters()
        self.counters_ = counters if self.instrumented else None
        rng = generator(self.random_state)

        def build_oracle() -> KernelOracle:
            cache_bytes = int(self.cache_size * 2**20)
            return KernelOracle(kernel, X, self.dtype, cache_bytes, counters=counters)

        monitor.start(self.counters_)
        problem = Problem(X, signs, rng, weights, counters, build_oracle)
        solution = self._solve(problem, monitor)
        if not isinstance(solution, Solution):
            raise TypeError(
                f"{type(self).__name__}._solve returned {type(solution).__name__}, not a "
                "marginbench.Solution"
            )
        monitor.finish(solution.n_iter, solution.model)
        if solution.status == "budget" and solution.shortfall:
            warn_unconverged(type(self).__name__, self._limit(), solution.shortfall)

        self.model_ = solution.model
        self.n_iter_ = solution.n_iter
        self.status_ = solution.status
        for name, value in solution.model.attributes().items():
            setattr(self, name, value)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, positive for ``classes_[1]``; float64, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            For ``kernel="precomputed"`` the entries k(x, x_i), shape (n_points, n).
        """
        X = new_points(self, X)
        return self.model_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of X, shape (n_points,)."""
        positive_class = self.decision_function(X) > 0
        return self.classes_[positive_class.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = self.supports_sparse
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_common_parameters(self) -> None:
        name = type(self).__name__
        if self.fit_intercept and not self.supports_bias:
            raise ValueError(f"{name} has no unregularised bias: set fit_intercept=False")
        if not self.fit_intercept and not self.supports_no_bias:
            raise ValueError(f"{name} always fits a bias: set fit_intercept=True")
        if callable(self.kernel) and not self.supports_callable_kernel:
            raise ValueError(f"{name} does not take a callable kernel")
        check_flag("fit_intercept", self.fit_intercept)
        check_one_of("dtype", dtype_name(self.dtype), ("float32", "float64"))
        check_positive("tol", self.tol, zero=True)
        check_positive("cache_size", self.cache_size, zero=True)

    def _weights(self, X: Matrix, y: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Factors of the losses: sample weights times class weights, float64, shape (n,)."""
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, copy=True, ensure_non_negative=True
            )
        if self.class_weight is not None:
            by_class = class_weights(self.class_weight, self.classes_, y)
            weights = weights * by_class[np.searchsorted(self.classes_, y)]
        for label in self.classes_:
            if not weights[y == label].any():
                raise ValueError(f"all weights of class {label} are 0: nothing is left of it")
        return weights

    def _check_training_set(self, X: Any, y: Any) -> tuple[Matrix, np.ndarray]:
        X, y = training_points(self, X, y, accept_sparse=self.supports_sparse)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError(
                f"{type(self).__name__} needs two classes in y, got only one class: "
                f"{self.classes_[0]}"
            )
        if kind != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind} ({len(self.classes_)} values)."
            )
        return X, y


@hyperparameters
class WeightedSolver(Solver):
    """Base class of the solvers whose method admits a weight for each point's loss.

    They take ``sample_weight`` in :meth:`fit`, too; the problem's ``weights`` hold the product with
    those of the classes, so that the summed loss is ``C sum_i weights_i hinge_i``.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Factors of the losses of each class; "balanced": ``n / (2 n_class)``.
    """

    class_weight: Any = None

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, monitor: Monitor | None = None
    ) -> Solver:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Labels, any two values; the larger one is the positive class.
        sample_weight : array-like, shape (n,), optional
            Factors >= 0 of the points' losses; 1 by default.
        monitor : Monitor, optional
            Watches the run.

        Returns
        -------
        Solver
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, labels that are not two classes, or
            weights that are negative or leave nothing of a class.
        """
        return self._fit(X, y, sample_weight, monitor)
