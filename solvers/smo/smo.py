"""Sequential minimal optimisation, without and with bias.

The textbook variants stand here; large working sets are chosen in ``working_sets.py`` and solved in
``inner.py``, whose step for a pair is that of the textbook. The dual point, its F, the violation
that ends a run, and the bias are ``working_sets.Dual``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import (
    CachedKernelParameters,
    SoftMarginParameters,
    SolverParameters,
    WarmStartParameters,
)
from ..interface.problem import Problem, Solution, SolveStatus
from ..numeric.ascent import best_value
from ..numeric.compiling import njit
from ..numeric.validation import check_one_of, check_positive, check_whole
from ..registration import register
from .inner import TAU, move_pair
from .working_sets import Dual, Gradient, snapshot_of, solve_large


@register("svm")
@hyperparameters
class SMO(
    WeightedSolver,
    SolverParameters,
    WarmStartParameters,
    SoftMarginParameters,
    CachedKernelParameters,
):
    """Soft-margin kernel SVM by SMO, to a given violation of the optimality conditions.

    Maximises ``sum_i alpha_i - 1/2 alpha' Q alpha`` over ``0 <= alpha_i <= C_i``, [SBP12]_ eq.
    4.1, with ``y' alpha = 0`` if a bias is fitted; ``Q_ij = y_i y_j k(x_i, x_j)`` and ``C_i`` is C
    times the weights of the point and of its class.

    By default large working sets are optimised at a time, an idea of [JOA99]_ in the form of
    [WSL18]_: the free variables and a scattered selection of violators, up to 6144, are solved for
    with the kernel entries among them, pair by pair (``inner.solve``; without bias by pairs that
    need not keep a sum, as in [SHS11]_); then the rows of those that changed bring the gradient of
    all points up to date.

    The textbook variants change one variable at a time without bias, the one with the largest
    exact clipped gain, our reading of the "second order heuristic" in the experiments of [SBP12]_;
    and two with bias, chosen by the second-order rule of [FCL05]_ (the first index wins a tie, in
    LIBSVM the last; a curvature that is not positive counts as 1e-12, as in LIBSVM).

    Sums are float64, entries float32 by default. Before it says that it has converged, it looks at
    what their rounding has done to the gradient: if all errors together could be more than an
    eighth of ``tol``, the gradient is computed from float64 entries at up to 96 points (those that
    decide, the largest, some others), and if it is off by more than that at one of them, at every
    point near enough to its margin for all errors together to matter. Later steps, if any, are
    then small, and so is what they round. With float64 entries, distances are then those of each
    point from itself, which an outlier does not round.

    There is no shrinking: a working set already leaves out all that has come to rest.

    Parameters
    ----------
    fit_intercept
        Fit an unregularised bias.
    working_set : {"large", "textbook"}
        "textbook": one variable, or two with bias.
    warm_start
        Start from the ``alpha_`` of the last fit, which had the same points, labels and weights,
        of each class; for a smaller C it is scaled down.
    tol : float >= 0
        Stop when no optimality condition is violated by more than ``tol`` (units of the margin).
    max_iter : int >= 1 or None
        Stop after this many iterations; None: max(1e7, 100 n).
    dtype
        Type of the kernel entries. Sums are float64. Where float32 entries leave no progress before
        the end, as with a linear kernel of features far from 0 or of very different units, the
        status is "budget": scale the features, or use "float64".
    cache_size
        Bound on the kernel entries in memory, MB (2^20 bytes): a third for those of the working
        set (at least 256 x 256 of them), the rest for rows; 0 for no cache.
    random_state
        Unused: the method is deterministic.

    Attributes
    ----------
    alpha_ : ndarray of float64, shape (n,)
        The dual point.
    violation_ : float
        Largest violation of an optimality condition at the end, by a gradient that rounding has put
        off by no more than ``tol / 8``, as far as that was looked at.

    Notes
    -----
    An iteration is a change of two variables, or of one ("textbook" without bias). Kernel
    evaluations: n for each change of one variable and 2n for each pair with the textbook variants;
    with large working sets, m^2 for a set of m, and n for each variable that a round changed; rows
    of dense points with few features are not stored, for to compute an entry again is faster than
    to have memory for it. n for each support vector where the rounding of float32 entries mattered;
    the points that are looked at for that count as computed alone. Memory: some 10n numbers and the
    cache. Returns the last alpha.
    """

    supports_bias = True
    scalarization = "C"
    certificate = "dual"
    deterministic = True

    working_set: str = "large"
    tol: float = 1e-3
    max_iter: int | None = None
    cache_size: float = 1024.0

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter, at_least=1)
        check_one_of("working_set", self.working_set, ("large", "textbook"))

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        limit = max(10_000_000, 100 * problem.n) if self.max_iter is None else self.max_iter
        C = float(self.C) * problem.weights
        alpha = np.zeros(problem.n)
        if problem.state is not None:
            # One factor, which keeps y' alpha = 0.
            before, support = problem.state, problem.state > 0
            factor = min(1.0, np.min(C[support] / before[support], initial=1.0))
            alpha = np.minimum(factor * before, C)
        dual = Dual(alpha, problem.y.copy(), problem.y, C, bool(self.fit_intercept))
        solve = solve_large if self.working_set == "large" else _solve_textbook
        support = np.flatnonzero(alpha)
        problem.oracle.add_rows(support, -alpha[support] * problem.y[support], dual.F)
        solution = solve(problem, monitor, dual, float(self.tol), limit)
        self.alpha_ = dual.alpha
        self.violation_ = dual.violation()
        ended_at = "" if solution.n_iter >= limit else problem.oracle.rounding_words
        shortfall = short_of(f"the largest violation is {self.violation_:.3g}", self.tol)
        return replace(solution, shortfall=shortfall, ended_at=ended_at, state=dual.alpha)


def _solve_textbook(
    problem: Problem, monitor: Monitor, dual: Dual, tol: float, limit: int
) -> Solution:
    """The variable of the largest gain each time without bias; with bias a pair (FCL05).

    The second of a pair costs no evaluation: its gains need the row of the first, as the step does.
    """
    oracle, diag = problem.oracle, problem.oracle.diag()
    arrays = dual.alpha, dual.F, problem.y, dual.C, diag
    choose = _first_of_pair if dual.with_bias else _best_single
    status: SolveStatus = "converged"
    snapshot, n_iter = snapshot_of(problem, dual), 0
    gradient = Gradient(problem, dual, tol)
    i, violation = choose(*arrays)
    while violation > tol or not gradient.is_accurate():
        if violation <= tol:
            gradient.recompute()
            if gradient.is_lost():
                status = "budget"
                break
            i, violation = choose(*arrays)
            continue
        if n_iter == limit:
            status = "budget"
            break
        row = oracle.row(i)
        if dual.with_bias:
            j = _second_of_pair(*arrays, row, i)
            i, violation = _move_pair(*arrays, row, oracle.row(j), i, j)
        else:
            i, violation = _move_single(*arrays, row, i)
        n_iter += 1
        if monitor.due(problem.kernel_evals) and monitor.record(n_iter, snapshot):
            status = "stopped"
            break
    gradient.settle(status)
    return Solution(snapshot(), n_iter, status)


@njit(error_model="numpy")
def _best_single(alpha, F, y, C, diag):
    """The variable with the largest exact gain, and the largest violation."""
    best, best_gain, violation = 0, -1.0, 0.0
    for t in range(len(alpha)):
        slope = y[t] * F[t]
        if (slope > 0.0 and alpha[t] < C[t]) or (slope < 0.0 and alpha[t] > 0.0):
            violation = max(violation, abs(slope))
            step = best_value(alpha[t], slope, diag[t], C[t]) - alpha[t]
            gain = step * slope - 0.5 * step * step * diag[t]
            if gain > best_gain:
                best, best_gain = t, gain
    return best, violation


@njit(error_model="numpy")
def _move_single(alpha, F, y, C, diag, row, i):
    """Solve for variable i exactly, update F, and select the next one."""
    step = best_value(alpha[i], y[i] * F[i], diag[i], C[i]) - alpha[i]
    alpha[i] = min(max(alpha[i] + step, 0.0), C[i])
    signed = step * y[i]
    for t in range(len(alpha)):
        F[t] -= signed * row[t]
    return _best_single(alpha, F, y, C, diag)


@njit(error_model="numpy")
def _first_of_pair(alpha, F, y, C, diag):
    """i = argmax of F over FCL05's I_up, the variables that may move up; and the violation."""
    i, upper, lower = -1, -np.inf, np.inf
    for t in range(len(alpha)):
        below, above = alpha[t] < C[t], alpha[t] > 0.0
        up, down = (below, above) if y[t] > 0.0 else (above, below)
        if up and F[t] > upper:
            i, upper = t, F[t]
        if down and F[t] < lower:
            lower = F[t]
    return i, max(upper - lower, 0.0)


@njit(error_model="numpy")
def _second_of_pair(alpha, F, y, C, diag, row_i, i):
    """j = argmax of the second-order gain with i over FCL05's I_low: those that may move down."""
    j, best = -1, -np.inf
    for t in range(len(alpha)):
        down = alpha[t] > 0.0 if y[t] > 0.0 else alpha[t] < C[t]
        difference = F[i] - F[t]
        if down and difference > 0.0:
            curvature = diag[i] + diag[t] - 2.0 * row_i[t]
            gain = difference * difference / (curvature if curvature > 0.0 else TAU)
            if gain > best:
                j, best = t, gain
    return j


@njit(error_model="numpy")
def _move_pair(alpha, F, y, C, diag, row_i, row_j, i, j):
    """Solve for the pair exactly, update F, and select the next i."""
    step = move_pair(alpha, F, y, C, i, j, diag[i] + diag[j] - 2.0 * row_i[j])
    for t in range(len(alpha)):
        F[t] -= step * (row_i[t] - row_j[t])
    return _first_of_pair(alpha, F, y, C, diag)
