"""Stochastic dual coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..interface.ascent import AscentParameters, ascend
from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters
from ..interface.problem import Problem, Solution
from ..kernels.sums import add_row
from ..models import KernelExpansion
from ..models.objectives import hinge
from ..numeric.ascent import Ascent, best_value, leaves, meet
from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from ..registration import register


@register("svm")
@hyperparameters
class SDCA(AscentParameters, CachedKernelParameters, WeightedSolver):
    """Soft-margin kernel SVM without bias by stochastic dual coordinate ascent.

    Maximises ``sum_i alpha_i - 1/2 alpha' Q alpha`` over ``0 <= alpha_i <= C weights_i``, one
    randomly drawn variable at a time, exactly ([HCL08]_ Algorithms 1 and 3; a baseline of
    [SBP12]_, eq. 4.1 and section 4.4, with ``order="iid"``). The responses of all points are kept,
    so a draw that changes nothing costs nothing.

    Notes
    -----
    Kernel evaluations: n for each draw that changes its variable; the gap comes free of them, and
    shrinking saves draws, none of them. Memory: 4n numbers and the cache. Returns the last alpha.
    """

    scalarization = "C"
    certificate = "dual"

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        ascent = _Ascent(problem, float(self.C), shrinking=self.shrinking)

        def snapshot() -> KernelExpansion:
            return problem.expansion(ascent.alpha * problem.y)

        def pause() -> bool:
            return monitor.due(problem.kernel_evals) and monitor.record(ascent.n_iter, snapshot)

        status, shortfall = ascend(ascent, self, lambda: ascent.epoch(self.order, pause))
        return Solution(snapshot(), ascent.n_iter, status, shortfall)


class _Ascent(Ascent):
    """The state of dual coordinate ascent, with the responses of all points."""

    def __init__(self, problem: Problem, C: float, *, shrinking: bool) -> None:
        super().__init__(C * problem.weights, problem.counters, shrinking=shrinking)
        self._problem, self._diag = problem, problem.oracle.diag()
        self._margins = np.zeros(problem.n)

    def epoch(self, order: str, pause: Callable[[], bool]) -> bool:
        """Draw as many points as are active; ``pause`` comes after each change."""
        active, before = self.begin_epoch(), self.n_iter
        rng, oracle, y = self._problem.rng, self._problem.oracle, self._problem.y
        members = np.sort(self.order[:active])
        if order == "permutation":
            draws = self.order
            draws[:active] = members[rng.permutation(active)]
        else:
            draws = members[rng.integers(active, size=active)]
        variables = self.alpha, self._margins, self._diag, self.bounds
        position = 0
        while True:
            position, target = _next_change(*variables, draws, position, self.shrinking, self.state)
            left = int(self.state["active"])
            # Points that were shrunk away were drawn as well.
            self.n_iter = before + active - left + min(position + 1, left)
            if position == left:
                return False
            i = draws[position]
            position += 1
            row = oracle.row_ahead(i, partial(self._changes, draws[position:left]))
            # c_j += delta y_i y_j k(x_i, x_j) for all j, then alpha_i.
            add_row(self._margins, y, row, (target - self.alpha[i]) * y[i])
            self.alpha[i] = target
            if pause():
                return True

    def _changes(self, draws: np.ndarray, count: int) -> np.ndarray:
        """Of the first ``count`` draws those that would change their variable now."""
        draws = draws[:count]
        targets = _targets(self.alpha, self._margins, self._diag, self.bounds, draws)
        return draws[targets != self.alpha[draws]]

    def margins(self) -> np.ndarray:
        return self._margins

    def gap(self) -> float:
        squared_norm = matmul(self.alpha, self._margins)
        loss = matmul(self.bounds, hinge(self._margins))
        return float((squared_norm + loss - self.alpha.sum()) / self.bounds.sum())


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
        target = best_value(alpha[i], slope, diag[i], bounds[i])  # HCL08 eq. 9
        if target != alpha[i]:
            return position, target
        position += 1
    return position, 0.0
