"""Random Fourier features, and the linear SVM on them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.inputs import generator, new_points, training_points
from ..interface.monitor import Monitor
from ..interface.parameters import SeedParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution
from ..kernels import RBF, Kernel, make_kernel
from ..linear.sdca import solve_on_features
from ..models.fourier import FourierExpansion, draw_frequencies, fourier_features
from ..numeric.rows import finite_squared_norms
from ..numeric.validation import check_iteration_limit, check_positive, check_whole
from ..registration import register


@hyperparameters
class FourierParameters:
    """The random features of a Gaussian kernel.

    Parameters
    ----------
    n_pairs : int >= 1
        The number k of frequencies; there are 2 k features.
    gamma : float > 0, "scale" or "auto"
        Width of the kernel ``exp(-gamma ||x - z||^2)``.
    """

    n_pairs: int = 100
    gamma: float | str = "scale"


@hyperparameters
class RandomFourierMap(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    SeedParameters,
    FourierParameters,
    BaseEstimator,
):
    """Random features whose inner products approximate a Gaussian kernel.

    ``F(x) = (cos <v_1, x>, ..., sin <v_1, x>, ...) / sqrt(k)`` with k normal frequencies v, so that
    ``E <F(x), F(z)> = exp(-gamma ||x - z||^2)`` and ``||F(x)|| = 1`` ([RR07]_, the variant of
    [SBP12]_ appendix A).

    Parameters
    ----------
    random_state
        Seeds the frequencies.

    Attributes
    ----------
    frequencies_ : ndarray of float64, shape (n_pairs, n_features)

    Notes
    -----
    Cost: k inner products for each point.
    """

    n_pairs: int = field(default=100, kw_only=False)

    def fit(self, X: Any, y: Any = None) -> RandomFourierMap:
        """Draw the frequencies.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            Only the number of features counts, and the spread for ``gamma="scale"``.
        y : None
            Not used.

        Returns
        -------
        RandomFourierMap
            The fitted map itself.

        Raises
        ------
        ValueError
            For a parameter out of range.
        """
        check_whole("n_pairs", self.n_pairs, at_least=1)
        X, _ = training_points(self, X)
        kernel = make_kernel("rbf", gamma=self.gamma, X=X)
        assert isinstance(kernel, RBF)
        rng = generator(self.random_state)
        self.frequencies_ = draw_frequencies(rng, kernel.gamma, self.n_pairs, X.shape[1])
        self._n_features_out = 2 * self.n_pairs
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of each row of X, of its type, shape (n_points, 2 n_pairs).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        """
        X = new_points(self, X)
        return fourier_features(X, self.frequencies_, X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@register("svm")
@hyperparameters
class RandomFourierFeatures(
    WeightedSolver, SolverParameters, SoftMarginParameters, FourierParameters
):
    """The linear SVM on random Fourier features, in place of a kernel SVM without bias.

    Draws the features of :class:`RandomFourierMap` and solves ``min 1/2 ||w||^2 + C sum_i weights_i
    hinge_i`` on them by dual coordinate ascent to a small duality gap ([SBP12]_ appendix A; the
    method of [RR07]_). This is another problem than the kernel's own, which it approaches as
    ``n_pairs`` grows: there is no suboptimality to report, only errors.

    Parameters
    ----------
    kernel : "rbf" or RBF
        The Gaussian kernel; other kernels have no such features here.
    tol : float >= 0
        Stop when the duality gap of the linear problem is at most ``tol``, in units of the weighted
        mean of the losses.
    max_epochs : int >= 1
        Stop after this many epochs of the linear solver.
    dtype : {"float32", "float64"}
        Type of the stored training features. Sums are float64.
    random_state
        Seeds the frequencies, and the order of the linear solver's draws.

    Attributes
    ----------
    frequencies_ : ndarray of float64, shape (n_pairs, n_features)
    coef_ : ndarray of float64, shape (1, 2 n_pairs)
        Weights of the features.

    Notes
    -----
    Kernel evaluations: none; k n inner products for the training features. The linear solver is not
    charged, as in [SBP12]_; its time counts. Memory: 2 k n numbers.
    """

    scalarization = None
    supports_callable_kernel = False

    kernel: str | Kernel = field(default="rbf", kw_only=False)
    tol: float = 1e-3
    max_epochs: int = 1000
    dtype: str = "float32"

    def _check_parameters(self) -> None:
        check_whole("n_pairs", self.n_pairs, at_least=1)
        check_positive("C", self.C)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        frequencies, features = problem.once("features", lambda: self._features(problem))

        def model(w: np.ndarray) -> FourierExpansion:
            return FourierExpansion(frequencies, w.copy())

        return solve_on_features(self, features, problem, monitor, model)

    def _features(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Frequencies, and the features of all points."""
        kernel = problem.kernel
        if type(kernel) is not RBF:
            raise ValueError(f"random Fourier features are for kernel='rbf', got {self.kernel!r}")
        n, n_features = problem.X.shape
        finite_squared_norms(problem.X)
        frequencies = draw_frequencies(problem.rng, kernel.gamma, self.n_pairs, n_features)
        problem.counters.inner_products += self.n_pairs * n
        return frequencies, fourier_features(problem.X, frequencies, self.dtype)
