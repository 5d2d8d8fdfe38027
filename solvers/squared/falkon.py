"""Falkon: kernel ridge regression over some centres, by preconditioned conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..interface.base import WeightedSolver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import JITTER, Problem, Solution, SolveStatus
from ..kernels.oracle import KernelOracle
from ..models import KernelExpansion
from ..numeric.matrices import matmul
from ..numeric.validation import check_positive, check_whole
from ..registration import register

# Entries are multiplied so many at a time, as float64: a megabyte, which stays in the processor's
# cache for the second of two products.
_EXACT_ENTRIES = 2**17
# Entries are computed for so many at a time.
_BLOCK_ENTRIES = 2**20


@register("svm")
@hyperparameters
class Falkon(WeightedSolver, SolverParameters, SoftMarginParameters, CachedKernelParameters):
    """Kernel ridge regression on the labels, over centres, by preconditioned conjugate gradients.

    With m centres Z drawn uniformly from the n training points, minimises ``1/2 ||w||^2 + C/2 sum_i
    weights_i (y_i - <w, Phi_i>)^2`` over the expansions ``w = sum_j a_j Phi(z_j)``: the problem of
    [RCR17]_ eq. 7 with ``lambda = 1 / (n C)``. Its normal equations, ``(K_nm' W K_nm + lambda n
    K_mm) a = K_nm' W y``, are solved by conjugate gradients in the variable u of ``a = T^-1 A^-1
    u``, where ``K_mm = T' T`` and ``T W_m T' / m + lambda I = A' A`` ([RCR17]_ Algorithm 1): the
    preconditioner is the same matrix with the centres in place of all points. The squared loss is
    another aim than the hinge loss, so there are errors to report but no suboptimality.

    Parameters
    ----------
    n_components : int >= 1
        Number m of centres; all points if there are fewer. [RCR17]_ takes about ``sqrt(n) log n``
        for optimal rates, 10000 to 100000 in experiments.
    C
        Weight of half the summed squared loss against ``1/2 ||w||^2``; ``1 / (lambda n)`` in terms
        of [RCR17]_.
    tol : float >= 0
        Stop when the residual of the preconditioned equations is at most ``tol`` times that of
        ``w = 0``, in norm.
    max_iter : int >= 1
        Stop after this many iterations of conjugate gradients.
    cache_size
        Bound on the entries of ``K_nm`` that are kept, MB; the others are computed again in every
        iteration, as in [RCR17]_.
    dtype
        Type of the entries of ``K_nm``. ``K_mm``, its factors and all sums are float64.
    random_state
        Seeds the centres.

    Attributes
    ----------
    centers_ : ndarray of int64, shape (m,)
        Positions of the centres in the training set, in the order in which they were drawn; those
        of a smaller m come first.
    residual_ : float
        Norm of the last residual relative to the first.

    Notes
    -----
    Kernel evaluations: ``m^2 + n m (1 + iterations)`` asked for, since Algorithm 1 computes
    ``K_nm`` for each product, and ``n m`` for the residual at the end, which is computed from its
    definition: the recurrence of the conjugate gradients drifts away from it. ``m^2 + n m`` are
    computed if ``K_nm`` fits in ``cache_size``. Time:
    about ``4/3 m^3`` multiply-adds for the factors; 2 n m and four triangular systems for each
    iteration. Memory: 3 m^2 numbers and the cache. Deviations: a small multiple of the
    identity is added to ``K_mm`` (1e-10 of its mean diagonal, 1e-6 with float32 entries; the paper
    adds the rounding of float64), points may have weights, and ``tol`` decides the number of
    iterations.
    """

    scalarization = None

    n_components: int = 1000
    tol: float = 1e-4
    max_iter: int = 100

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components, at_least=1)
        check_whole("max_iter", self.max_iter, at_least=1)
        check_positive("C", self.C)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        drawn = problem.rng.permutation(problem.n)[: int(self.n_components)]
        equations = problem.once("falkon", lambda: self._equations(problem, drawn))
        self.centers_ = equations.centers
        right = equations.right_hand_side(problem.y)
        # Conjugate gradients; sizes are norms of residuals.
        u, residual, direction = np.zeros_like(right), right, right
        size = first = float(np.linalg.norm(right))

        def snapshot() -> KernelExpansion:
            coef = np.zeros(problem.n)
            coef[equations.centers] = equations.coefficients(u)
            return problem.expansion(coef)

        # Below the rounding of its updates a residual means nothing.
        enough = max(float(self.tol), float(np.finfo(np.float64).eps)) * first
        status: SolveStatus = "converged" if size <= enough else "budget"
        looked_at, ended_at, n_iter = math.inf, "", 0
        while status == "budget" and n_iter < self.max_iter:
            image, before = equations.times(direction), size
            step = size**2 / float(direction @ image)
            u, residual = u + step * direction, residual - step * image
            size = float(np.linalg.norm(residual))
            direction = residual + (size / before) ** 2 * direction
            n_iter += 1
            if size <= enough:
                # The recurrence of the residual drifts away from what it stands for.
                residual = direction = right - equations.times(u)
                size = float(np.linalg.norm(residual))
                if size <= enough:
                    status = "converged"
                elif size > looked_at / 2:
                    ended_at = "the rounding of its equations (scale the features)"
                    break
                looked_at = size
            elif monitor.due(problem.kernel_evals) and monitor.record(n_iter, snapshot):
                status = "stopped"
        self.residual_ = size / first if first > 0 else 0.0
        shortfall = short_of(f"the residual is {self.residual_:.3g} of the first", self.tol)
        return Solution(snapshot(), n_iter, status, shortfall, ended_at)

    def _equations(self, problem: Problem, centers: np.ndarray) -> Equations:
        oracle = problem.oracle
        n_bytes = oracle.cache_bytes
        # Whole rows are never asked for: all of the cache is for the columns.
        oracle.set_aside(n_bytes)
        columns = Columns(oracle, centers, n_bytes)
        regularization = 1 / (problem.n * float(self.C))
        T = problem.gram_factor(centers, JITTER[oracle.dtype.name], lower=False)
        inner = matmul(T * problem.weights[centers], T.T) / len(T)
        inner[np.diag_indices(len(T))] += regularization
        A = np.asarray(cholesky(inner, overwrite_a=True))
        return Equations(centers, columns, problem.weights, regularization, T, A)


class Equations(NamedTuple):
    """The preconditioned normal equations of [RCR17]_ Algorithm 1."""

    centers: np.ndarray
    columns: Columns
    weights: np.ndarray
    regularization: float
    T: np.ndarray
    A: np.ndarray

    def coefficients(self, u: np.ndarray) -> np.ndarray:
        """``a = T^-1 A^-1 u``, shape (m,)."""
        return solve_triangular(self.T, solve_triangular(self.A, u))

    def right_hand_side(self, y: np.ndarray) -> np.ndarray:
        """``A^-T T^-T K_nm' W y / n``, shape (m,)."""
        n = len(self.weights)
        product = self.columns.transposed_times(self.weights * y) / n
        return self._transposed_solve(self.A, self._transposed_solve(self.T, product))

    def times(self, u: np.ndarray) -> np.ndarray:
        """The matrix of the preconditioned equations times u, shape (m,)."""
        n = len(self.weights)
        c = solve_triangular(self.A, u)
        product = self.columns.normal_times(solve_triangular(self.T, c), self.weights) / n
        inner = self._transposed_solve(self.T, product) + self.regularization * c
        return self._transposed_solve(self.A, inner)

    @staticmethod
    def _transposed_solve(factor: np.ndarray, v: np.ndarray) -> np.ndarray:
        return solve_triangular(factor, v, trans="T")


class Columns:
    """The kernel entries of all points with some of them, ``K_nm``, for repeated products.

    Each product asks for n m entries, and sums in float64. Rows whose entries are kept are computed
    once.
    """

    def __init__(self, oracle: KernelOracle, chosen: np.ndarray, n_bytes: int) -> None:
        self._oracle = oracle
        self._chosen = chosen
        row_bytes = len(chosen) * oracle.dtype.itemsize
        self._n_kept = min(oracle.n, n_bytes // row_bytes)
        self._kept: list[np.ndarray] = []

    def transposed_times(self, vector: np.ndarray) -> np.ndarray:
        """``K_nm' vector``, float64, shape (m,)."""
        product = np.zeros(len(self._chosen))
        for rows, block in self._blocks():
            product += matmul(vector[rows], block.astype(np.float64, copy=False))
        return product

    def normal_times(self, vector: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """``K_nm' diag(weights) K_nm vector``, float64, shape (m,), in one pass.

        By parts of a megabyte, which is a quarter faster than by whole blocks (a fit of adult).
        """
        product, step = np.zeros(len(self._chosen)), max(1, _EXACT_ENTRIES // len(self._chosen))
        for rows, block in self._blocks():
            for start in range(0, len(block), step):
                part = slice(start, start + step)
                exact = block[part].astype(np.float64, copy=False)
                product += matmul(weights[rows][part] * matmul(exact, vector), exact)
        return product

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The entries by blocks of rows, and where these are."""
        n, m = self._oracle.n, len(self._chosen)
        step = max(1, _BLOCK_ENTRIES // m)
        for number, start in enumerate(range(0, n, step)):
            stop = min(start + step, n)
            if number < len(self._kept):
                block = self._kept[number]
                self._oracle.charge(block.size, 0)
            else:
                block = self._oracle.fresh_block(np.arange(start, stop), self._chosen)
                if stop <= self._n_kept:
                    self._kept.append(block)
            yield slice(start, stop), block
