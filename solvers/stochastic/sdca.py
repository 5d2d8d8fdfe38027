"""Stochastic dual coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.convergence import ascent_short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import (
    CachedKernelParameters,
    SoftMarginParameters,
    SolverParameters,
)
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..models.objectives import hinge
from ..numeric.ascent import (
    ascent_state,
    begin_epoch,
    best_value,
    check_ascent,
    end_epoch,
    leaves,
    meet,
    violation,
)
from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from ..registration import register


@register("svm")
@hyperparameters
class SDCA(WeightedSolver, SolverParameters, SoftMarginParameters, CachedKernelParameters):
    """Soft-margin kernel SVM without bias by stochastic dual coordinate ascent.

    Maximises ``sum_i alpha_i - 1/2 alpha' Q alpha`` over ``0 <= alpha_i <= C weights_i``, one
    randomly drawn variable at a time, exactly ([HCL08]_ Algorithms 1 and 3; a baseline of
    [SBP12]_). The responses of all points are kept, so a draw that changes nothing costs nothing.

    Parameters
    ----------
    order : {"permutation", "iid"}
        A fresh permutation in each epoch (LIBLINEAR), or independent uniform draws ([SBP12]_),
        which need ``stopping="gap"`` and ``shrinking=False``.
    stopping : {"gap", "gradient"}
        "gap" stops at the end of an epoch when the duality gap is small; the gap comes free of
        kernel evaluations. "gradient" is LIBLINEAR's rule: stop when the projected derivatives of
        the dual are close to 0 and to each other, first as they were met in an epoch over all
        points, and then, which LIBLINEAR does not ask, all at its end.
    shrinking : bool
        Whether to leave out points at their bounds whose derivative points outward by more than
        any did in the epoch before; all come back before the end (LIBLINEAR). It saves draws, not
        kernel evaluations: a point left out would have changed nothing.
    tol : float >= 0
        Stop when the duality gap ("gap") is at most ``tol``, in units of the weighted mean of the
        losses: as a fraction of the objective at w = 0; or when the projected derivatives
        ("gradient") lie within ``tol`` of 0 and of each other, which implies the former.
        LIBLINEAR's own default is 0.1.
    max_epochs : int >= 1
        Stop after this many epochs of n draws, fewer where points are left out.

    Notes
    -----
    Kernel evaluations: n for each draw that changes its variable. Memory: 4n numbers and the
    cache. Returns the last alpha.
    """

    scalarization = "C"
    certificate = "dual"

    order: str = "permutation"
    stopping: str = "gap"
    shrinking: bool = False
    tol: float = 1e-3
    max_epochs: int = 100

    def _check_parameters(self) -> None:
        check_ascent(self)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        ascent = _Ascent(problem, float(self.C), shrinking=self.shrinking)

        def snapshot() -> KernelExpansion:
            return problem.expansion(ascent.alpha * problem.y)

        def pause() -> bool:
            return monitor.due(problem.kernel_evals) and monitor.record(ascent.n_iter, snapshot)

        status: SolveStatus = "budget"
        for _ in range(self.max_epochs):
            if ascent.epoch(self.order, pause):
                status = "stopped"
                break
            met = ascent.end_epoch(self.tol)
            if self.stopping == "gap":
                measure = ascent.gap()
            else:
                measure = met if met > self.tol else ascent.violation()
            if measure <= self.tol:
                status = "converged"
                break
        measure = ascent.gap() if self.stopping == "gap" else ascent.violation()
        shortfall = ascent_short_of(self.stopping, measure, self.tol)
        return Solution(snapshot(), ascent.n_iter, status, shortfall)


class _Ascent:
    """The state of dual coordinate ascent: alpha, the responses of all points, what is left out."""

    def __init__(self, problem: Problem, C: float, *, shrinking: bool) -> None:
        self._problem = problem
        self._bounds = C * problem.weights
        self._shrinking = shrinking
        self._diag = problem.oracle.diag()
        self.alpha = np.zeros(problem.n)
        self._margins = np.zeros(problem.n)
        # A point without weight has alpha = 0 for good.
        self._order = np.flatnonzero(self._bounds > 0)
        self._state = ascent_state(len(self._order))
        self.n_iter = 0

    def epoch(self, order: str, pause: Callable[[], bool]) -> bool:
        """Draw as many points as are active; ``pause`` comes after each change."""
        active, before = int(self._state["active"]), self.n_iter
        rng, oracle, y = self._problem.rng, self._problem.oracle, self._problem.y
        members = np.sort(self._order[:active])
        if order == "permutation":
            draws = self._order
            draws[:active] = members[rng.permutation(active)]
        else:
            draws = members[rng.integers(active, size=active)]
        begin_epoch(self._state)
        variables = self.alpha, self._margins, self._diag, self._bounds
        position = 0
        while True:
            position, target = _next_change(
                *variables, draws, position, self._shrinking, self._state
            )
            left = int(self._state["active"])
            # Points that were shrunk away were drawn as well.
            self.n_iter = before + active - left + min(position + 1, left)
            if position == left:
                return False
            i = draws[position]
            position += 1
            row = oracle.row_ahead(i, partial(_changes, *variables, draws[position:left]))
            _add_row(self._margins, y, row, (target - self.alpha[i]) * y[i])
            self.alpha[i] = target
            if pause():
                return True

    def end_epoch(self, tol: float) -> float:
        """Set the thresholds of shrinking; bring all points back if those left are optimal."""
        return end_epoch(self._state, len(self._order), tol)

    def violation(self) -> float:
        """How far the projected derivatives of all points lie from 0 and from each other."""
        return violation(self.alpha, self._bounds, self._margins)

    def gap(self) -> float:
        """Primal minus dual, over the sum of the bounds; of all points, those left out included."""
        squared_norm = matmul(self.alpha, self._margins)
        loss = matmul(self._bounds, hinge(self._margins))
        return float((squared_norm + loss - self.alpha.sum()) / self._bounds.sum())


def _changes(
    alpha: np.ndarray,
    margins: np.ndarray,
    diag: np.ndarray,
    bounds: np.ndarray,
    draws: np.ndarray,
    count: int,
) -> np.ndarray:
    """Of the first ``count`` draws those that would change their variable now."""
    draws = draws[:count]
    return draws[_targets(alpha, margins, diag, bounds, draws) != alpha[draws]]


@njit(error_model="numpy")
def _targets(alpha, margins, diag, bounds, index):
    """The best value of each of these variables, if only it changed."""
    targets = np.empty(len(index))
    for p in range(len(index)):
        i = index[p]
        targets[p] = best_value(alpha[i], 1.0 - margins[i], diag[i], bounds[i])
    return targets


@njit(error_model="numpy")
def _next_change(alpha, margins, diag, bounds, draws, position, shrinking, state):
    """The first draw from ``position`` on that changes its variable, and the new value.

    A point that is shrunk away goes to the end of the draws, in exchange for the last active one.
    """
    while position < state.active:
        i = draws[position]
        slope = 1.0 - margins[i]
        if shrinking and leaves(alpha[i], slope, bounds[i], state):
            state.active -= 1
            end = state.active
            draws[position], draws[end] = draws[end], i
            continue
        meet(alpha[i], slope, bounds[i], state)
        target = best_value(alpha[i], slope, diag[i], bounds[i])
        if target != alpha[i]:
            return position, target
        position += 1
    return position, 0.0


@njit(error_model="numpy")
def _add_row(margins, y, row, coef):
    """margins_j += coef y_j K_ij."""
    for j in range(len(margins)):
        margins[j] += coef * y[j] * row[j]
