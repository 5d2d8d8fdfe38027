"""Several classes: one feasibility problem for each, all with one kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from solvers.feasibility.kernel_methods import KernelFeasibilityMethod
from solvers.inputs import canonical, check_finite
from solvers.kernels import Points, Precomputed, make_kernel
from solvers.matrices import matmul
from solvers.oracle import Counters, KernelOracle

# Blocks of entries against new points are at most this large.
_BLOCK_BYTES = 64 * 2**20


class OneVsRest(ClassifierMixin, BaseEstimator):
    """A kernel feasibility method for several classes, each against the rest.

    The kernel matrix is computed once and shared. A point is of the class with the largest score;
    every class has a y of norm 1 or less, so the scores compare.

    Parameters
    ----------
    method : KernelFeasibilityMethod
        Its parameters hold for each class.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    results_ : list of FeasibilityResult
        One for each class; their counters are those of all classes up to it.
    dual_coef_ : ndarray, shape (n_classes, n_support)
        Signed coefficients of the points that are support vectors of any class.
    support_ : ndarray of int, shape (n_support,)
    support_vectors_ : ndarray or csr_matrix, shape (n_support, n_features)
    n_iter_ : int
        The most iterations of a class.
    counters_ : Counters
        What the fit cost.
    """

    def __init__(self, method: KernelFeasibilityMethod) -> None:
        self.method = method

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
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
            ensure_all_finite=False,
        )  # fmt: skip
        check_finite(X)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"OneVsRest needs two classes in y, got only {self.classes_[0]}")
        X = canonical(X) if sparse.issparse(X) else X
        kernel = make_kernel(
            method.kernel, gamma=method.gamma, degree=method.degree, coef0=method.coef0, X=X
        )
        self.counters_ = Counters()
        cache_bytes = int(method.cache_size * 2**20)
        oracle = KernelOracle(kernel, X, method.dtype, cache_bytes, counters=self.counters_)
        shared = method._space(oracle, np.ones(len(y)))
        self.results_, coef = [], []
        for label in self.classes_:
            space = shared.with_signs(np.where(y == label, 1.0, -1.0))
            result = method._iterate(space, method._progress(space))
            self.results_.append(result)
            coef.append(space.on_points(result.y))
        self.n_iter_ = max(1, *(result.n_iter for result in self.results_))
        self.support_ = np.flatnonzero(np.any(coef, axis=0))
        self.dual_coef_ = np.stack(coef)[:, self.support_]
        self.support_vectors_ = (
            np.empty((0, 0)) if isinstance(kernel, Precomputed) else X[self.support_]
        )
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
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        kernel, dtype = self.kernel_, np.dtype(self.method.dtype)
        if isinstance(kernel, Precomputed):
            points = Points(np.empty((len(self.support_), 0), dtype), columns=self.support_)
        else:
            points = kernel.prepare(self.support_vectors_, dtype)
        scores = np.empty((X.shape[0], len(self.classes_)))
        step = max(1, _BLOCK_BYTES // (8 * max(1, len(self.support_))))
        for lo in range(0, X.shape[0], step):
            block = kernel.block(kernel.prepare(X[lo : lo + step], dtype, like=points), points)
            scores[lo : lo + step] = matmul(block.astype(np.float64), self.dual_coef_.T)
        return scores

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
