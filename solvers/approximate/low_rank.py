"""The SVM on low-rank features, from the kernel entries of all points with a few landmarks.

By an eigendecomposition of the landmarks' Gram matrix (LowRankSVM), by its Cholesky factor, or by
incomplete Cholesky of the whole one (Nystrom).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, solve_triangular

from ..interface.ascent import ascend
from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import KernelParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import JITTER, Problem, Solution
from ..kernels.oracle import KernelOracle
from ..linear.sdca import solve_on_features
from ..models import KernelExpansion
from ..numeric.matrices import matmul, scratch
from ..numeric.validation import (
    check_flag,
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)
from ..registration import register
from .adaptive_ascent import AdaptiveAscent

# Eigenvalues up to this part of the largest are dropped: that of the released program for float32.
_CUTOFF = {"float32": 1e-6, "float64": 1e-12}
# Features are computed for so many entries of a block at a time.
_BLOCK_ENTRIES = 2**20


@register("svm")
@hyperparameters
class LowRankSVM(WeightedSolver, SolverParameters, SoftMarginParameters, KernelParameters):
    """The soft-margin SVM without bias on low-rank features, by dual ascent (LPD-SVM on one core).

    With m training points drawn as landmarks Z and ``K_ZZ = U diag(e) U'``, the features of a point
    are ``diag(e)^-1/2 U' k_Z(x)`` for the eigenvalues e that are not tiny ([G22]_). The linear SVM
    on them, ``min 1/2 ||w||^2 + C sum_i weights_i hinge_i``, is solved by dual coordinate ascent
    until no derivative of the dual violates its optimality condition by more than ``tol``. Points
    are drawn at adaptive frequencies: more often where steps have gained more ([GD13]_).

    Differences from the papers: one thread and no GPU; the released program of [G22]_ takes the
    points in a fixed order; its rule of shrinking is kept, a point is left out after five visits in
    a row without a step, and it looks at all points after 4n draws, but here a look moves nothing,
    and brings back only points that violate. What violates is drawn at least as often as the
    average again. The first epoch, by which the mean gain is known, has all points once.

    Parameters
    ----------
    n_components : int >= 1
        Number m of landmarks, drawn without replacement, those of a smaller m first; all points if
        there are fewer.
    order : {"adaptive", "permutation"}
        Adaptive frequencies, or a fresh permutation of the active points in each epoch.
    shrinking : bool
        Whether to leave out points without steps; all are looked at before the end.
    tol : float >= 0
        Stop when no projected derivative of the dual exceeds ``tol``. The duality gap of the linear
        problem is then at most ``tol``, too, in units of the weighted mean of the losses. The
        released program stops at 0.01.
    max_epochs : int >= 1
        Stop after this many epochs of about as many draws as there are active points.
    dtype
        Type of the kernel entries and of the stored features. The landmarks' Gram matrix, its
        decomposition and all sums are float64. Eigenvalues up to 1e-6 ("float32") or 1e-12 of the
        largest are dropped.
    random_state
        Seeds the landmarks, and the order of the draws.

    Attributes
    ----------
    landmarks_ : ndarray of int64, shape (m,)
        Positions of the landmarks in the training set, in the order in which they were drawn.
    rank_ : int
        Number of features: eigenvalues that are not dropped.
    gap_ : float
        Certified duality gap of the linear problem, in units of the weighted mean of the losses.

    Notes
    -----
    Kernel evaluations: ``n m + m (m + 1) / 2`` (the n m with the landmarks' own among them
    suffice). The ascent is not charged; its time counts, and so do the m^3 operations of the
    decomposition and the n m ``rank_`` multiply-adds of the features. Memory: n ``rank_`` numbers,
    m^2 in float64. An iteration is a draw, which costs ``rank_`` multiply-adds, twice that with a
    step. Returns the expansion over the landmarks.
    """

    scalarization = "C"

    n_components: int = 250
    order: str = "adaptive"
    shrinking: bool = True
    tol: float = 1e-3
    max_epochs: int = 1000

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components, at_least=1)
        check_one_of("order", self.order, ("adaptive", "permutation"))
        check_flag("shrinking", self.shrinking)
        check_positive("C", self.C)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        landmarks, map_, features = problem.once("features", lambda: self._features(problem))
        ascent = AdaptiveAscent(
            features,
            problem.y,
            float(self.C) * problem.weights,
            adaptive=self.order == "adaptive",
            shrinking=self.shrinking,
            rng=problem.rng,
        )

        def snapshot() -> KernelExpansion:
            coef = np.zeros(problem.n)
            coef[landmarks] = matmul(map_, ascent.w)
            return problem.expansion(coef)

        def between() -> bool:
            return monitor.after_epoch(problem.counters, ascent.n_iter, snapshot)

        status, shortfall = ascend(ascent, self, ascent.epoch, "gradient", between)
        self.landmarks_, self.rank_, self.gap_ = landmarks, features.shape[1], ascent.gap()
        return Solution(snapshot(), ascent.n_iter, status, shortfall)

    def _features(self, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The landmarks, the map from their kernel entries to features, and those of all points."""
        m = min(int(self.n_components), problem.n)
        landmarks = problem.rng.permutation(problem.n)[:m]
        gram = problem.gram(landmarks)
        cutoff = _CUTOFF[problem.oracle.dtype.name]
        own, map_ = eigenfeatures(gram, cutoff)
        of_block = lambda block: matmul(block, map_)  # noqa: E731
        return landmarks, map_, features_of(problem.oracle, landmarks, own, of_block)


@register("svm")
@hyperparameters
class Nystrom(WeightedSolver, SolverParameters, SoftMarginParameters, KernelParameters):
    """The soft-margin SVM without bias in the subspace of some training points, the landmarks.

    With the landmarks Z and the factor L of their Gram matrix, ``K_ZZ = L L'``, the features of a
    point are ``L^-1 k_Z(x)``: its projection onto the subspace, whose inner products are those of
    the approximation of Williams and Seeger ([WS01]_). The linear SVM on them, ``min 1/2 ||w||^2 +
    C sum_i weights_i hinge_i``, is solved by dual coordinate ascent to a small duality gap. Its
    optimum is that of the kernel SVM among the expansions over landmarks; the subspace baseline of
    [CUTS08]_ section 6.4.

    Parameters
    ----------
    n_components : int >= 1
        Number m of landmarks; all points if there are fewer. [CUTS08]_ takes 250 to 10000.
    selection : {"random", "pivoted"}
        "random": m points drawn without replacement, those of a smaller m first. "pivoted":
        incomplete Cholesky ([FS01]_), the next landmark is the point that is furthest from the
        subspace so far.
    tol : float >= 0
        Stop when the duality gap of the linear problem is at most ``tol``, in units of the weighted
        mean of the losses.
    max_epochs : int >= 1
        Stop after this many epochs of the linear solver.
    dtype
        Type of the kernel entries and of the stored features. The landmarks' Gram matrix and all
        sums are float64.
    random_state
        Seeds the landmarks, and the order of the linear solver's draws.

    Attributes
    ----------
    landmarks_ : ndarray of int64, shape (m,)
        Positions of the landmarks in the training set, in the order in which they were chosen.

    Notes
    -----
    Kernel evaluations: ``n m + m (m + 1) / 2`` ("random"; the n m with the landmarks' own among
    them suffice) or n m and the diagonal ("pivoted"). The linear solver is not charged; its time
    counts, and so do the n m^2 multiply-adds for the features. Memory: n m numbers, in float64
    with "pivoted". An iteration is a draw of the linear solver. Returns the expansion over the
    landmarks. A small multiple of the identity is added to ``K_ZZ``.
    """

    scalarization = "C"

    n_components: int = 250
    selection: str = "random"
    tol: float = 1e-3
    max_epochs: int = 1000

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components, at_least=1)
        check_one_of("selection", self.selection, ("random", "pivoted"))
        check_positive("C", self.C)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        landmarks, factor, features = problem.once("features", lambda: self._features(problem))
        self.landmarks_ = landmarks

        def model(w: np.ndarray) -> KernelExpansion:
            coef = np.zeros(problem.n)
            coef[landmarks] = solve_triangular(factor, w, lower=True, trans="T")
            return problem.expansion(coef)

        return solve_on_features(self, features, problem, monitor, model)

    def _features(self, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The landmarks, the factor of their Gram matrix, and the features of all points."""
        m = min(int(self.n_components), problem.n)
        jitter = JITTER[problem.oracle.dtype.name]
        if self.selection == "random":
            landmarks = problem.rng.permutation(problem.n)[:m]
            factor = problem.gram_factor(landmarks, jitter, lower=True)

            def of_block(block: np.ndarray) -> np.ndarray:
                return solve_triangular(factor, block.T, lower=True, overwrite_b=True).T

            return landmarks, factor, features_of(problem.oracle, landmarks, factor, of_block)
        landmarks, factor = incomplete_cholesky(problem.oracle, m, jitter)
        return landmarks, factor[landmarks], factor.astype(problem.oracle.dtype, copy=False)


def features_of(
    oracle: KernelOracle,
    landmarks: np.ndarray,
    own: np.ndarray,
    of_block: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Features of all points, shape (n, n_features), of the oracle's type.

    Costs the entries of the other points with the landmarks; the landmarks' own, which have been
    computed, are charged as a textbook run would ask for them again.
    """
    m = len(landmarks)
    features = scratch((oracle.n, own.shape[1]), oracle.dtype)
    features[landmarks] = own
    others = np.setdiff1d(np.arange(oracle.n), landmarks)
    step = max(1, _BLOCK_ENTRIES // m)
    for start in range(0, len(others), step):
        rows = others[start : start + step]
        features[rows] = of_block(oracle.fresh_block(rows, landmarks).astype(np.float64))
    # The landmarks' own entries are a part of n m that is not computed twice.
    oracle.charge(m * (m + 1) // 2, 0)
    return features


def incomplete_cholesky(
    oracle: KernelOracle, m: int, jitter: float
) -> tuple[np.ndarray, np.ndarray]:
    """The first columns of a pivoted Cholesky factor of the Gram matrix."""
    distances = oracle.diag().astype(np.float64)
    mean = float(distances.mean())
    smallest = jitter * (mean if mean > 0 else 1.0)
    factor = scratch((oracle.n, m), np.float64)
    pivots: list[int] = []
    everything = np.arange(oracle.n)
    for j in range(m):
        i = int(distances.argmax())
        if distances[i] <= smallest and j > 0:
            break
        column = oracle.fresh_block(np.array([i]), everything)[0] - matmul(
            factor[:, :j], factor[i, :j]
        )
        # A pivot's distance to the subspace before it is 0.
        column[pivots] = 0.0
        factor[:, j] = column / math.sqrt(max(distances[i], smallest))
        factor[i, j] = math.sqrt(max(distances[i], smallest))
        distances = np.maximum(distances - factor[:, j] ** 2, 0.0)
        pivots.append(i)
        distances[pivots] = 0.0
    rank = len(pivots)
    return np.array(pivots, dtype=np.int64), np.ascontiguousarray(factor[:, :rank])


def eigenfeatures(gram: np.ndarray, cutoff: float) -> tuple[np.ndarray, np.ndarray]:
    """Features of the points of a Gram matrix, and the map that makes them of its rows."""
    values, vectors = eigh(gram, driver="evd")
    kept = np.flatnonzero(values > cutoff * max(float(values[-1]), 0.0))[::-1]
    roots = np.sqrt(values[kept])
    return vectors[:, kept] * roots, vectors[:, kept] / roots
