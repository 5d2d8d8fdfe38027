"""The SVM in the subspace of some training points: Nystroem's method, incomplete Cholesky."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import (
    KernelParameters,
    SoftMarginParameters,
    SolverParameters,
)
from ..interface.problem import Problem, Solution
from ..kernels.oracle import KernelOracle
from ..linear.sdca import ascend
from ..models import KernelExpansion
from ..numeric.matrices import matmul
from ..numeric.memory import scratch
from ..numeric.validation import (
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)
from ..registration import register

# What is added to the diagonal of the landmarks' Gram matrix, relative to its mean: entries are
# known to so many digits, and noise in them grows by the root of its inverse.
_JITTER = {"float64": 1e-10, "float32": 1e-6}
# Features are computed for so many entries of a block at a time.
_BLOCK_ENTRIES = 2**20


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

    References
    ----------
    .. [WS01] Williams, Seeger: Using the Nystroem method to speed up kernel machines. NIPS 2000.
       BibTeX key ``williams2001using``.
    .. [FS01] Fine, Scheinberg: Efficient SVM training using low-rank kernel representations.
       JMLR 2, 2001. BibTeX key ``fine2001efficient``.
    .. [CUTS08] Yu, Joachims: Training structural SVMs with kernels using sampled cuts. KDD 2008.
       BibTeX key ``yu2008training``.
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

        ascent, status, shortfall = ascend(
            features, problem, monitor, model, float(self.C), self.tol, self.max_epochs
        )
        return Solution(model(ascent.w), ascent.n_iter, status, shortfall)

    def _features(self, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The landmarks, the factor of their Gram matrix, and the features of all points."""
        m = min(int(self.n_components), problem.n)
        jitter = _JITTER[problem.oracle.dtype.name]
        if self.selection == "random":
            landmarks = problem.rng.permutation(problem.n)[:m]
            return landmarks, *nystrom_features(problem, landmarks, jitter)
        landmarks, factor = incomplete_cholesky(problem.oracle, m, jitter)
        return landmarks, factor[landmarks], factor.astype(problem.oracle.dtype, copy=False)


def nystrom_features(
    problem: Problem, landmarks: np.ndarray, jitter: float
) -> tuple[np.ndarray, np.ndarray]:
    """The factor L of the landmarks' Gram matrix, and features ``L^-1 k_Z(x)`` of all points."""
    factor = cholesky(problem.gram(landmarks, jitter), lower=True)

    def of_block(block: np.ndarray) -> np.ndarray:
        return np.asarray(solve_triangular(factor, block.T, lower=True, overwrite_b=True).T)

    return factor, features_of(problem.oracle, landmarks, factor, of_block)


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
