"""Stochastic dual coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from solvers.base import Solver
from solvers.kernels import Kernel
from solvers.matrices import matmul
from solvers.models import KernelExpansion
from solvers.monitor import Monitor
from solvers.objectives import duality_gap, regularization
from solvers.problem import Problem, Solution, SolveStatus
from solvers.validation import check_iteration_limit, one_of, positive


class SDCA(Solver):
    """Soft-margin kernel SVM without bias by stochastic dual coordinate ascent.

    Maximises ``sum_i alpha_i - 1/2 alpha' Q alpha`` over ``0 <= alpha_i <= C``, one randomly drawn
    variable at a time, exactly ([HCL08]_ Algorithm 1; a baseline of [SBP12]_). The responses of
    all points are kept, so a draw that changes nothing costs nothing.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        A callable takes two matrices of points and returns their kernel block.
    gamma : float > 0, "scale" or "auto", default="scale"
        Width of "rbf" (``exp(-gamma ||x - z||^2)``) and scale of "poly".
    degree : int >= 1, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    C : float > 0, default=1.0
        Weight of the summed hinge loss against ``1/2 ||w||^2``.
    fit_intercept : bool, default=False
        Must be False: the method has no unregularised bias.
    order : {"permutation", "iid"}, default="permutation"
        A fresh permutation in each epoch (LIBLINEAR), or independent uniform draws ([SBP12]_).
    tol : float >= 0, default=1e-3
        Stop at the end of an epoch when the duality gap is at most ``tol``, in lambda units: as a
        fraction of the objective at w = 0. The gap comes free of kernel evaluations.
    max_epochs : int >= 1, default=100
        Stop after this many epochs of n draws.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64.
    cache_size : float >= 0, default=200.0
        Bound on the cached kernel rows, MB; 0 for no cache.
    random_state : int, Generator or None, default=None
        Seeds the order of the draws.

    Notes
    -----
    Kernel evaluations: n for each draw that changes its variable. Memory: 2n numbers and the
    cache. Returns the last alpha.

    References
    ----------
    .. [HCL08] Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for
       large-scale linear SVM. ICML 2008. BibTeX key ``hsieh2008dual``.
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
    """

    scalarization = "C"
    certificate = "dual"

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        fit_intercept: bool = False,
        order: str = "permutation",
        tol: float = 1e-3,
        max_epochs: int = 100,
        dtype: str = "float32",
        cache_size: float = 200.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.fit_intercept = fit_intercept
        self.order = order
        self.tol = tol
        self.max_epochs = max_epochs
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        positive("C", self.C)
        one_of("order", self.order, ("permutation", "iid"))
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y, oracle, C = problem.n, problem.y, problem.oracle, float(self.C)
        diag = oracle.diag()
        alpha = np.zeros(n)
        margins = np.zeros(n)

        def snapshot() -> KernelExpansion:
            return problem.expansion(alpha * y)

        n_iter = 0
        status: SolveStatus = "budget"
        for _ in range(self.max_epochs):
            draws = self._draw_epoch(problem.rng, n)
            position = 0
            while True:
                position, step = _next_change(alpha, margins, diag, C, draws, position)
                if position == n:
                    break
                i = draws[position]
                position += 1
                row = oracle.row(i)
                alpha[i] = min(max(alpha[i] + step, 0.0), C)
                _add_row(margins, y, row, step * y[i])
                if monitor.due(problem.kernel_evals) and monitor.record(
                    n_iter + position, snapshot
                ):
                    return Solution(snapshot(), n_iter + position, "stopped")
            n_iter += n
            gap = duality_gap(alpha, float(matmul(alpha, margins)), margins, C)
            if gap * regularization(C, n) <= self.tol:
                status = "converged"
                break
        return Solution(snapshot(), n_iter, status)

    def _draw_epoch(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.permutation(n) if self.order == "permutation" else rng.integers(n, size=n)


@njit(cache=True, error_model="numpy")
def _next_change(alpha, margins, diag, C, draws, position):
    """The first draw from ``position`` on that changes its variable, and the exact step."""
    for p in range(position, len(draws)):
        i = draws[p]
        slope = 1.0 - margins[i]
        if diag[i] > 0.0:
            target = min(max(alpha[i] + slope / diag[i], 0.0), C)
        else:
            target = C if slope > 0.0 else 0.0
        if target != alpha[i]:
            return p, target - alpha[i]
    return len(draws), 0.0


@njit(cache=True, error_model="numpy")
def _add_row(margins, y, row, coef):
    """margins_j += coef y_j K_ij."""
    for j in range(len(margins)):
        margins[j] += coef * y[j] * row[j]
