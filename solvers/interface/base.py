"""The common interface of every solver: a scikit-learn classifier around one ``_solve``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import hash as digest_of
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..kernels import Kernel, make_kernel
from ..kernels.oracle import KernelOracle
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix
from ..numeric.validation import check_flag, check_one_of, check_positive
from .classes import ClassMonitor, together
from .convergence import warn_unconverged
from .declaration import hyperparameters
from .inputs import class_weights, dtype_name, generator, new_points, training_points
from .monitor import Monitor, Progress, progress_line
from .problem import Problem, Solution


class Solver(ClassifierMixin, BaseEstimator, ABC):
    """Base class of the solvers: checks the input, builds the problem, calls :meth:`_solve`.

    A new solver derives from this class, lists what it supports in the class attributes, declares
    its parameters with :func:`hyperparameters` or takes them in an ``__init__`` of its own, and
    implements ``_solve``. Parameters that it does not take keep the class attribute's value below.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    estimators_ : list of Solver
        With more than two classes: a fitted solver for each class against the rest, which has the
        attributes of the method itself, such as ``alpha_``. Its ``counters_`` are its part.
    dual_coef_ : ndarray, shape (1, n_support) or (n_classes, n_support)
        Signed coefficients of the support vectors.
    support_ : ndarray of int, shape (n_support,)
    support_vectors_ : ndarray or csr_matrix, shape (n_support, n_features)
    intercept_ : ndarray, shape (1,) or (n_classes,)
    n_iter_ : int
        Summed over the classes if there are more than two.
    counters_ : Counters or None
        What the fit cost, with all classes; None for a solver that is not instrumented.
    status_ : {"converged", "no_separator", "budget", "stopped"}
        Why the fit ended: its stopping rule was met; a feasibility method met its rule without a
        separator, so that none has a margin above ``tol`` and the predictions mean nothing; the
        limit on iterations; the monitor. Of several classes: "converged" if every class did.
    model_ : Model

    Notes
    -----
    Of more than two classes each is trained against the rest, one after the other and all with one
    oracle: kernel entries that it holds are not computed again. With a whole number as seed the
    draws of every class are the same. A point is of the class with the largest score.

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
    #: The package that it needs beside those of marginbench, by the name that pip knows.
    requires: ClassVar[str] = ""
    #: Draws nothing: every ``random_state`` gives the same model.
    deterministic: ClassVar[bool] = False

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
    verbose: bool = False
    warm_start: bool = False

    @abstractmethod
    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Train on this problem; every kernel entry comes from ``problem.oracle``."""

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter of the method itself that is out of range."""

    def _limit(self) -> str:
        """The parameter that ends a run which does not converge, as text."""
        name = next((n for n in ("max_iter", "max_epochs") if hasattr(self, n)), "")
        value = getattr(self, name, None)
        if value is None:
            return f"its default limit ({name}=None)" if name else "its limit"
        return f"{name}={value}"

    def fit(self, X: Any, y: Any, *, monitor: Monitor | None = None) -> Solver:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Labels, two or more values. Of two the larger one is the positive class.
        monitor : Monitor, optional
            Watches the run. Without one, Ctrl-C stops the solver at the next step that it can stop
            after, the model stands as it is then, and KeyboardInterrupt is raised. The second
            Ctrl-C interrupts at once.

        Returns
        -------
        Solver
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, or fewer than two classes.
        """
        return self._fit(X, y, None, monitor)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        monitor: Monitor | None,
        monitor_of: Callable[[Monitor], Monitor] = lambda monitor: monitor,
    ) -> Solver:
        """Train; ``monitor_of`` makes what watches a class of the monitor that it would have."""
        self._forget()
        self._check_common_parameters()
        self._check_parameters()
        X, y = self._check_training_set(X, y)
        repeats = sample_weight  # how often each point counts
        if repeats is not None:
            checks = {"dtype": np.float64, "copy": True, "ensure_non_negative": True}
            repeats = _check_sample_weight(repeats, X, **checks)
        weights = self._weights(y, repeats)
        widths: dict[str, Any] = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        kernel = make_kernel(self.kernel, **widths, X=X, weights=repeats)
        if monitor is None:
            monitor = progress_line(type(self).__name__) if self.verbose else Progress()
        counters = Counters()
        self.counters_ = counters if self.instrumented else None
        several, shared = len(self.classes_) > 2, dict[str, Any]()

        def build_oracle() -> KernelOracle:
            cache_bytes = int(self.cache_size * 2**20)
            return KernelOracle(kernel, X, self.dtype, cache_bytes, counters, shared=several)

        problem_digest = digest_of((X, y, weights)) if self.warm_start else ""
        kept = self._kept_states(problem_digest)

        def problem_of(label: Any) -> Problem:
            signs = np.where(y == label, 1.0, -1.0)
            rng, state = kept.get(label) or (generator(self.random_state), None)
            return Problem(X, signs, rng, weights, counters, build_oracle, kernel, shared, state)

        with monitor.interruptible():
            monitor.start(self.counters_)
            ends = self._solve_classes(problem_of, monitor_of, monitor)
            solutions = [solution for _, solution in ends]
            solution = together(solutions, len(self.classes_)) if several else solutions[0]
            monitor.finish(solution.n_iter, solution.model)
            self._take(solution)
            self.__dict__.pop("_kept", None)
            if self.warm_start:
                about = problem_digest, self._fixed_parameters()
                self._kept = about, [(p.rng, s.state) for p, s in ends]
        if solution.status == "budget" and solution.shortfall:
            ended_at = solution.ended_at or self._limit()
            warn_unconverged(type(self).__name__, ended_at, solution.shortfall)
        return self

    def _kept_states(self, digest: str) -> dict[Any, tuple[np.random.Generator, Any]]:
        """The generator and the state of the last fit for each class that it trained: copies."""
        if not self.warm_start or "_kept" not in self.__dict__:
            return {}
        (before, parameters), kept = self._kept
        for name, value in self._fixed_parameters().items():
            if value != parameters[name]:
                raise ValueError(
                    f"warm_start continues a fit with {name}={parameters[name]}, got {value}"
                )
        if digest != before:
            raise ValueError(
                "warm_start continues the last fit, but the points, labels or weights are others; "
                "set warm_start=False"
            )
        trained = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return dict(zip(trained, deepcopy(kept), strict=False))

    def _fixed_parameters(self) -> dict[str, str]:
        """The parameters that may not change between a fit and one that continues it."""
        free = {"tol", "max_epochs", "max_iter", "cache_size", "random_state", "verbose"}
        if self.scalarization != "R":  # there a fit leaves w in units of 1 / (lambda t)
            free.add("C")
        return {k: repr(v) for k, v in self.get_params(deep=False).items() if k not in free}

    def _forget(self) -> None:
        """Drop what an earlier fit, perhaps of another number of classes, has left."""
        for name in set(vars(self)) - set(self.get_params(deep=False)):
            if name.endswith("_"):
                delattr(self, name)

    def _checked_solve(self, problem: Problem, monitor: Monitor) -> Solution:
        solution = self._solve(problem, monitor)
        if not isinstance(solution, Solution):
            raise TypeError(
                f"{type(self).__name__}._solve returned {type(solution).__name__}, not a "
                "marginbench.Solution"
            )
        return solution

    def _solve_classes(
        self,
        problem_of: Callable[[Any], Problem],
        monitor_of: Callable[[Monitor], Monitor],
        monitor: Monitor,
    ) -> list[tuple[Problem, Solution]]:
        """Of more than two classes each against the rest, by copies that become ``estimators_``."""
        if len(self.classes_) == 2:
            problem = problem_of(self.classes_[1])
            return [(problem, self._checked_solve(problem, monitor_of(monitor)))]
        ends: list[tuple[Problem, Solution]] = []
        self.estimators_: list[Solver] = []
        for label in self.classes_:
            part, problem = clone(self), problem_of(label)
            before = replace(problem.counters)
            watcher = ClassMonitor(monitor, [end for _, end in ends], len(self.classes_))
            solution = part._checked_solve(problem, monitor_of(watcher))
            part.classes_ = np.array([0, 1])
            part.n_features_in_ = self.n_features_in_
            part.counters_ = problem.counters.since(before) if self.instrumented else None
            part._take(solution)
            ends.append((problem, solution))
            self.estimators_.append(part)
            if solution.status == "stopped":
                break
        return ends

    def _take(self, solution: Solution) -> None:
        """Set the fitted attributes."""
        self.model_ = solution.model
        self.n_iter_ = solution.n_iter
        self.status_ = solution.status
        for name, value in solution.model.attributes().items():
            setattr(self, name, value)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, positive for ``classes_[1]``; with several classes a column for each.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            For ``kernel="precomputed"`` the entries k(x, x_i), shape (n_points, n).

        Returns
        -------
        ndarray of float64, shape (n_points,) or (n_points, n_classes)
        """
        check_is_fitted(self, "model_")
        X = new_points(self, X)
        return self.model_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of X, shape (n_points,)."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return self.classes_[scores.argmax(axis=1)]
        return self.classes_[(scores > 0).astype(int)]

    def save(self, path: str | Path) -> None:
        """Write the fitted solver to one file without pickle, for :func:`load_solver`.

        Parameters
        ----------
        path : str or Path
            An existing file is replaced once all is written.

        Raises
        ------
        NotFittedError
            If the solver is not fitted.
        ValueError
            For a callable or custom kernel, whose code cannot be stored, and for other parameters
            that are neither numbers, text nor arrays.
        """
        # Here, since a run never needs it.
        from .saving import save_solver

        save_solver(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
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

    def _weights(self, y: np.ndarray, repeats: np.ndarray | None) -> np.ndarray:
        """Factors of the losses: sample weights times class weights, float64, shape (n,)."""
        weights = np.ones(len(y)) if repeats is None else repeats
        if self.class_weight is not None:
            by_class = class_weights(self.class_weight, self.classes_, y, repeats)
            weights = weights * by_class[np.searchsorted(self.classes_, y)]
        for label in self.classes_:
            if not weights[y == label].any():
                raise ValueError(f"all weights of class {label} are 0: nothing is left of it")
        return weights

    def _check_training_set(self, X: Any, y: Any) -> tuple[Matrix, np.ndarray]:
        X, y = training_points(self, X, y, accept_sparse=self.supports_sparse)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y, got only one class: "
                f"{self.classes_[0]}"
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
        Factors of the losses of each class; "balanced": ``n / (n_classes n_class)``, where points
        count as often as their sample weights say. With several classes a point has the factor of
        its own class in the problem of every class.
    """

    class_weight: Any = None

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, monitor: Monitor | None = None
    ) -> Solver:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Labels, two or more values. Of two the larger one is the positive class.
        sample_weight : array-like, shape (n,), optional
            Factors >= 0 of the points' losses, 1 by default: a point counts as if it were there so
            often, also for ``gamma="scale"``.
        monitor : Monitor, optional
            Watches the run; see :meth:`Solver.fit`.

        Returns
        -------
        Solver
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, fewer than two classes, or weights
            that are negative or leave nothing of a class.
        """
        return self._fit(X, y, sample_weight, monitor)
