"""The common interface of every solver: a scikit-learn classifier around one ``_solve``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from solvers.kernels import Kernel, Precomputed, make_kernel
from solvers.matrices import Matrix
from solvers.models import KernelExpansion
from solvers.monitor import Monitor
from solvers.oracle import Counters, KernelOracle
from solvers.validation import flag, one_of, positive, whole

SolveStatus = Literal["converged", "budget", "stopped"]


@dataclass(frozen=True)
class Solution:
    """What ``_solve`` hands back.

    Parameters
    ----------
    model : KernelExpansion
    n_iter : int
        Iterations done.
    status : {"converged", "budget", "stopped"}
        Why they ended there: the stopping rule, the limit on iterations, or the monitor.
    """

    model: KernelExpansion
    n_iter: int
    status: SolveStatus


@dataclass(frozen=True)
class Problem:
    """One training problem as the solvers see it.

    Attributes
    ----------
    X : ndarray or csr_matrix, shape (n, n_features)
        The checked training points, for methods that do not go through the oracle.
    y : ndarray of float64, shape (n,)
        Labels, -1 or +1.
    oracle : KernelOracle
    rng : numpy.random.Generator
        The run's only source of randomness.
    """

    X: Matrix
    y: np.ndarray
    oracle: KernelOracle
    rng: np.random.Generator

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self.y)

    @property
    def kernel_evals(self) -> int:
        """Kernel evaluations asked for so far."""
        return self.oracle.counters.kernel_evals

    def expansion(self, coef: np.ndarray, intercept: float = 0.0) -> KernelExpansion:
        """The predictor with one signed coefficient per training point, shape (n,).

        Raises
        ------
        ValueError
            If ``coef`` has another shape or is not real.
        """
        coef = np.asarray(coef)
        if coef.shape != (self.n,) or coef.dtype.kind not in "fiu":
            raise ValueError(
                f"coef must hold {self.n} real numbers, one per training point, got shape "
                f"{coef.shape} of {coef.dtype}"
            )
        support = np.flatnonzero(coef)
        kernel = self.oracle.kernel
        points = np.empty((0, 0)) if isinstance(kernel, Precomputed) else self.X[support]
        return KernelExpansion(
            kernel=kernel,
            points=points,
            coef=coef[support].astype(np.float64),
            intercept=float(intercept),
            support=support,
            n_train=self.n,
            dtype=self.oracle.dtype.name,
        )


class Solver(ClassifierMixin, BaseEstimator, ABC):
    """Base class of the solvers: checks the input, builds the problem, calls :meth:`_solve`.

    A new solver derives from this class, lists what it supports in the class attributes, takes its
    parameters in ``__init__`` and implements ``_solve``. Parameters that it does not take keep the
    class attribute's value below.

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
    status_ : {"converged", "budget", "stopped"}
    model_ : KernelExpansion
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
    random_state: Any = None

    @abstractmethod
    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Train on this problem; every kernel entry comes from ``problem.oracle``."""

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter of the method itself that is out of range."""

    def fit(self, X: Any, y: Any, monitor: Monitor | None = None) -> Solver:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Labels, any two values; the larger one is the positive class.
        monitor : Monitor, optional
            Watches the run.

        Returns
        -------
        Solver
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, or labels that are not two classes.
        """
        self._check_common_parameters()
        self._check_parameters()
        X, y = self._check_training_set(X, y)
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=X
        )
        monitor = Monitor() if monitor is None else monitor
        counters = Counters()
        self.counters_ = counters if self.instrumented else None
        rng = _generator(self.random_state)

        monitor.start(self.counters_)
        oracle = KernelOracle(
            kernel, X, self.dtype, int(self.cache_size * 2**20), counters=counters
        )
        solution = self._solve(Problem(X, signs, oracle, rng), monitor)
        monitor.finish(solution.n_iter, solution.model)

        self.model_ = solution.model
        self.n_iter_ = solution.n_iter
        self.status_ = solution.status
        self.dual_coef_ = solution.model.coef[None, :]
        self.support_ = solution.model.support
        self.support_vectors_ = solution.model.points
        self.intercept_ = np.array([solution.model.intercept])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, positive for ``classes_[1]``; float64, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            For ``kernel="precomputed"`` the entries k(x, x_i), shape (n_points, n).
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
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
        flag("fit_intercept", self.fit_intercept)
        one_of("dtype", _dtype_name(self.dtype), ("float32", "float64"))
        positive("tol", self.tol, zero=True)
        positive("cache_size", self.cache_size, zero=True)

    def _check_training_set(self, X: Any, y: Any) -> tuple[Matrix, np.ndarray]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self.supports_sparse else False,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
        _check_finite(X)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError(
                f"{type(self).__name__} needs two classes in y, got only one class: "
                f"{self.classes_[0]!r}"
            )
        if kind != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind} ({len(self.classes_)} values)."
            )
        if sparse.issparse(X):
            X = _canonical(X)
        return X, y


def check_iteration_limit(max_epochs: int | None, *, optional: bool = False) -> None:
    """Raise ValueError unless ``max_epochs`` is a whole number >= 1 (or None if optional)."""
    if not (optional and max_epochs is None):
        whole("max_epochs", max_epochs, at_least=1)


def _dtype_name(dtype: Any) -> str:
    # numpy takes None for float64.
    if dtype is None:
        return "None"
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


def _check_finite(X: Matrix) -> None:
    values = X.data if sparse.issparse(X) else X
    # A finite sum proves that all is finite, without a mask the size of X.
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad) == 0:
        return
    position = tuple(bad[0])
    kind = "NaN" if np.isnan(values[position]) else "infinity (inf)"
    if sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, position[0], side="right")) - 1
        column = int(X.indices[position[0]])
    else:
        row, column = (int(index) for index in position)
    raise ValueError(
        f"X contains {kind} at row {row}, column {column}; remove the row or replace the value"
    )


def _canonical(X: Matrix) -> Matrix:
    """CSR with sorted indices, no duplicates and 32-bit indices where they suffice."""
    X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a whole number >= 0 or a numpy Generator, got "
            f"{random_state!r}"
        ) from None
