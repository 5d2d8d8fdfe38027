"""Sequential minimal optimisation, without and with bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from solvers.base import Solver
from solvers.kernels import Kernel
from solvers.models import KernelExpansion
from solvers.monitor import Monitor
from solvers.problem import Problem, Solution, SolveStatus
from solvers.validation import check_iteration_limit, positive

# LIBSVM's curvature floor for a pair whose kernel is not positive definite.
_TAU = 1e-12


class SMO(Solver):
    """Soft-margin kernel SVM by SMO, to a given violation of the optimality conditions.

    Maximises ``sum_i alpha_i - 1/2 alpha' Q alpha`` over ``0 <= alpha_i <= C``, with
    ``y' alpha = 0`` if a bias is fitted; ``Q_ij = y_i y_j k(x_i, x_j)``.

    Without bias an iteration changes one variable, the one with the largest exact clipped gain, as
    in the experiments of [SBP12]_. With bias it changes two, chosen by the second-order rule WSS 2
    of [FCL05]_ (section 3; the first index wins a tie, in LIBSVM the last). There is no shrinking.

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
        Fit an unregularised bias.
    tol : float >= 0, default=1e-3
        Stop when no optimality condition is violated by more than ``tol`` (units of the margin).
    max_epochs : int >= 1 or None, default=None
        Stop after this many times n iterations; None: max(1e7, 100 n) iterations.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64. Gaps below 1e-6 need "float64".
    cache_size : float >= 0, default=200.0
        Bound on the cached kernel rows, MB; 0 for no cache.
    random_state : int, Generator or None, default=None
        Unused: the method is deterministic.

    Notes
    -----
    Kernel evaluations of an iteration: n without bias, 2n with bias. Memory: 3n numbers and the
    cache. Returns the last alpha.

    References
    ----------
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
    .. [FCL05] Fan, Chen, Lin: Working set selection using second order information for training
       support vector machines. JMLR 6, 2005. BibTeX key ``fan2005working``.
    """

    supports_bias = True
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
        tol: float = 1e-3,
        max_epochs: int | None = None,
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
        self.tol = tol
        self.max_epochs = max_epochs
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        positive("C", self.C)
        check_iteration_limit(self.max_epochs, optional=True)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        limit = (
            max(10_000_000, 100 * problem.n)
            if self.max_epochs is None
            else self.max_epochs * problem.n
        )
        solve = _solve_with_bias if self.fit_intercept else _solve_without_bias
        return solve(problem, monitor, float(self.C), float(self.tol), limit)


def _solve_without_bias(
    problem: Problem, monitor: Monitor, C: float, tol: float, limit: int
) -> Solution:
    y, diag, oracle = problem.y, problem.oracle.diag(), problem.oracle
    alpha = np.zeros(problem.n)
    margins = np.zeros(problem.n)
    status: SolveStatus = "converged"

    def snapshot() -> KernelExpansion:
        return problem.expansion(alpha * y)

    n_iter = 0
    i, step, violation = _best_single(alpha, margins, diag, C)
    while violation > tol:
        if n_iter == limit:
            status = "budget"
            break
        row = oracle.row(i)
        alpha[i] = _clipped(alpha[i] + step, C)
        i, step, violation = _move_single(alpha, margins, diag, C, y, row, i, step)
        n_iter += 1
        if monitor.due(problem.kernel_evals) and monitor.record(n_iter, snapshot):
            status = "stopped"
            break
    return Solution(snapshot(), n_iter, status)


def _solve_with_bias(
    problem: Problem, monitor: Monitor, C: float, tol: float, limit: int
) -> Solution:
    y, diag, oracle = problem.y, problem.oracle.diag(), problem.oracle
    alpha = np.zeros(problem.n)
    # F_t = y_t - (score of x_t without bias): the bias at which x_t has margin 1.
    F = y.copy()
    status: SolveStatus = "converged"

    def snapshot() -> KernelExpansion:
        return problem.expansion(alpha * y, _bias(alpha, F, y, C))

    n_iter = 0
    i, upper, lower = _first_of_pair(alpha, F, y, C)
    while upper - lower > tol:
        if n_iter == limit:
            status = "budget"
            break
        row_i = oracle.row(i)
        j = _second_of_pair(alpha, F, y, C, diag, row_i, i)
        row_j = oracle.row(j)
        i, upper, lower = _move_pair(alpha, F, y, C, diag, row_i, row_j, i, j)
        n_iter += 1
        if monitor.due(problem.kernel_evals) and monitor.record(n_iter, snapshot):
            status = "stopped"
            break
    return Solution(snapshot(), n_iter, status)


@njit(cache=True, error_model="numpy")
def _clipped(value, C):
    return min(max(value, 0.0), C)


@njit(cache=True, error_model="numpy")
def _clipped_step(alpha, slope, curvature, C):
    """Exact maximiser along one variable, as a change of alpha."""
    if curvature > 0.0:
        return _clipped(alpha + slope / curvature, C) - alpha
    return C - alpha if slope > 0.0 else -alpha


@njit(cache=True, error_model="numpy")
def _best_single(alpha, margins, diag, C):
    """The variable with the largest exact gain, its step, and the largest violation."""
    best, best_step, best_gain, violation = 0, 0.0, -1.0, 0.0
    for t in range(len(alpha)):
        slope = 1.0 - margins[t]
        if (slope > 0.0 and alpha[t] < C) or (slope < 0.0 and alpha[t] > 0.0):
            violation = max(violation, abs(slope))
            step = _clipped_step(alpha[t], slope, diag[t], C)
            gain = step * slope - 0.5 * step * step * diag[t]
            if gain > best_gain:
                best, best_step, best_gain = t, step, gain
    return best, best_step, violation


@njit(cache=True, error_model="numpy")
def _move_single(alpha, margins, diag, C, y, row, i, step):
    """Bring the margins up to date with alpha_i += step, and select the next variable."""
    signed = step * y[i]
    for t in range(len(alpha)):
        margins[t] += signed * y[t] * row[t]
    return _best_single(alpha, margins, diag, C)


@njit(cache=True, error_model="numpy")
def _first_of_pair(alpha, F, y, C):
    """i = argmax of F over the variables that may move up; the two ends of the violation."""
    i, upper, lower = -1, -np.inf, np.inf
    for t in range(len(alpha)):
        below, above = alpha[t] < C, alpha[t] > 0.0
        up, low = (below, above) if y[t] > 0.0 else (above, below)
        if up and F[t] > upper:
            i, upper = t, F[t]
        if low and F[t] < lower:
            lower = F[t]
    return i, upper, lower


@njit(cache=True, error_model="numpy")
def _second_of_pair(alpha, F, y, C, diag, row_i, i):
    """j = argmax of the second-order gain with i (FCL05 eq. 9)."""
    j, best = -1, -np.inf
    for t in range(len(alpha)):
        low = alpha[t] > 0.0 if y[t] > 0.0 else alpha[t] < C
        difference = F[i] - F[t]
        if low and difference > 0.0:
            curvature = diag[i] + diag[t] - 2.0 * row_i[t]
            if curvature <= 0.0:
                curvature = _TAU
            gain = difference * difference / curvature
            if gain > best:
                j, best = t, gain
    return j


@njit(cache=True, error_model="numpy")
def _move_pair(alpha, F, y, C, diag, row_i, row_j, i, j):
    """Solve for the pair exactly, update F, and select the next i."""
    curvature = diag[i] + diag[j] - 2.0 * row_i[j]
    if curvature <= 0.0:
        curvature = _TAU
    room_i = C - alpha[i] if y[i] > 0.0 else alpha[i]
    room_j = alpha[j] if y[j] > 0.0 else C - alpha[j]
    step = min((F[i] - F[j]) / curvature, room_i, room_j)
    # A clipped variable lands exactly on its bound: a rounding remainder would keep it free.
    if step >= room_i:
        alpha[i] = C if y[i] > 0.0 else 0.0
    else:
        alpha[i] += y[i] * step
    if step >= room_j:
        alpha[j] = 0.0 if y[j] > 0.0 else C
    else:
        alpha[j] -= y[j] * step
    for t in range(len(alpha)):
        F[t] -= step * (row_i[t] - row_j[t])
    return _first_of_pair(alpha, F, y, C)


def _bias(alpha: np.ndarray, F: np.ndarray, y: np.ndarray, C: float) -> float:
    """Mean of F over the free variables; with none, the middle of the feasible interval."""
    free = (alpha > 0) & (alpha < C)
    if free.any():
        return float(F[free].mean())
    positive_class = y > 0
    up = np.where(positive_class, alpha < C, alpha > 0)
    low = np.where(positive_class, alpha > 0, alpha < C)
    return float((F[up].max() + F[low].min()) / 2)
