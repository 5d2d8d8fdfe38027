"""Several classes: one feasibility problem for each, all with one kernel matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from marginbench.solvers.feasibility.kernel_methods import KernelFeasibilityMethod
from marginbench.solvers.interface.declaration import hyperparameters
from marginbench.solvers.interface.inputs import new_points, training_points
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.kernels import Kernel, Points, make_kernel
from marginbench.solvers.kernels.oracle import KernelOracle
from marginbench.solvers.numeric.counters import Counters
from marginbench.solvers.numeric.matrices import matmul
from marginbench.solvers.numeric.validation import check_whole

# Blocks of entries against new points are at most this large.
_BLOCK_BYTES = 64 * 2**20


class _Stages(Monitor):
    """Keeps coefficients as they stand after given numbers of iterations."""

    # Always due: being asked is cheap, a copy is made at a stage only.
    next_checkpoint = 0.0

    def __init__(self, stages: Iterable[int]) -> None:
        self.wanted = set(stages)
        self.seen: dict[int, np.ndarray] = {}

    def record(self, n_iter: int, snapshot: Callable[[], Any]) -> bool:
        if n_iter in self.wanted:
            self.seen[n_iter] = snapshot()
        return False


@hyperparameters
class OneVsRest(ClassifierMixin, BaseEstimator):
    """A kernel feasibility method for several classes, each against the rest.

    The kernel matrix is computed once and shared. A point is of the class with the largest score;
    every class has a y of norm 1 or less, so the scores compare.

    Parameters
    ----------
    method : KernelFeasibilityMethod
        Its parameters hold for each class.
    stages : iterable of int >= 1
        Numbers of iterations after which the predictor is kept as it stands, for
        :meth:`staged_decision_function`. A class that ends earlier keeps its last predictor.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    results_ : list of FeasibilityResult
        One for each class; their counters are those of all classes up to it.
    dual_coef_ : ndarray, shape (n_classes, n_support)
        Signed coefficients of the points that are support vectors of any class.
    staged_coef_ : dict
        Stage -> the coefficients after so many iterations, shape (n_classes, n_support).
    support_ : ndarray of int, shape (n_support,)
    support_vectors_ : ndarray or csr_matrix, shape (n_support, n_features)
    n_iter_ : int
        The most iterations of a class.
    counters_ : Counters
        What the fit cost.
    """

    method: KernelFeasibilityMethod = field(kw_only=False)
    stages: Iterable[int] = ()

    def fit(self, X: Any, y: Any) -> OneVsRest:
        """Train one predictor for each class.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Classes, at least two.

        Returns
        -------
        OneVsRest
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, or fewer than two classes.
        """
        method = clone(self.method)
        method._check_common_parameters()
        method._check_parameters()
        stages = tuple(self.stages)
        for stage in stages:
            check_whole("stages", stage, at_least=1)
        X, y = training_points(self, X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"OneVsRest needs two classes in y, got only {self.classes_[0]}")
        kernel = make_kernel(
            method.kernel, gamma=method.gamma, degree=method.degree, coef0=method.coef0, X=X
        )
        self.counters_ = Counters()
        cache_bytes = int(method.cache_size * 2**20)
        oracle = KernelOracle(kernel, X, method.dtype, cache_bytes, counters=self.counters_)
        shared = method._space(oracle, np.ones(len(y)))
        self.results_, rows = [], []
        for label in self.classes_:
            space = shared.with_signs(np.where(y == label, 1.0, -1.0))
            watch = _Stages(stages)
            result = method._iterate(space, method._progress(space, watch, space.on_points))
            self.results_.append(result)
            last = space.on_points(result.y)
            rows.append([*(watch.seen.get(stage, last) for stage in stages), last])
        self.n_iter_ = max(1, *(result.n_iter for result in self.results_))
        # Stages first, the end last.
        coef = np.stack(rows, axis=1)
        self.support_ = np.flatnonzero(coef.any(axis=(0, 1)))
        self.staged_coef_ = dict(zip(stages, coef[:-1, :, self.support_], strict=True))
        self.dual_coef_ = coef[-1][:, self.support_]
        self.support_vectors_ = np.empty((0, 0)) if not kernel.evaluates else X[self.support_]
        self.kernel_ = kernel
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of every class, float64, shape (n_points, n_classes).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            For ``kernel="precomputed"`` the entries k(x, x_i), shape (n_points, n).
        """
        check_is_fitted(self)
        return self._scores(X, self.dual_coef_)

    def staged_decision_function(self, X: Any) -> dict[int, np.ndarray]:
        """Scores of every class by the predictors of each of the ``stages``.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        dict
            Stage -> scores, float64, shape (n_points, n_classes).
        """
        check_is_fitted(self)
        stages = self.staged_coef_
        if not stages:
            return {}
        scores = self._scores(X, np.concatenate(list(stages.values())))
        return dict(zip(stages, np.split(scores, len(stages), axis=1), strict=True))

    def _scores(self, X: Any, coef: np.ndarray) -> np.ndarray:
        """Kernel entries against the support vectors, times the coefficients of each output."""
        X = new_points(self, X)
        kernel, dtype = self.kernel_, np.dtype(self.method.dtype)
        if not kernel.evaluates:
            points = Points(np.empty((len(self.support_), 0), dtype), columns=self.support_)
        else:
            points = kernel.prepare(self.support_vectors_, dtype)
        return class_scores(kernel, points, coef, X, dtype)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of X, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        """
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.method.kernel == "precomputed"
        return tags


def class_scores(
    kernel: Kernel, points: Points, coef: np.ndarray, X: Any, dtype: Any
) -> np.ndarray:
    """Kernel entries against the support vectors, times the coefficients of each output.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        The support vectors, prepared.
    coef : ndarray, shape (n_outputs, n_support)
    X : ndarray or csr_matrix, shape (n_points, n_features)
    dtype : data-type
        Of the entries; sums are float64.

    Returns
    -------
    ndarray of float64, shape (n_points, n_outputs)
    """
    scores = np.empty((X.shape[0], len(coef)))
    step = max(1, _BLOCK_BYTES // (8 * max(1, coef.shape[1])))
    for lo in range(0, X.shape[0], step):
        block = kernel.block(kernel.prepare(X[lo : lo + step], dtype, like=points), points)
        scores[lo : lo + step] = matmul(block.astype(np.float64), coef.T)
    return scores
