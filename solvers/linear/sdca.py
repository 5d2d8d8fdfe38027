"""Dual coordinate ascent for the linear SVM.

A step is ``_steps``, by the rules of ``numeric/ascent.py``; epochs end by ``interface/ascent.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..interface.ascent import AscentParameters, ascend
from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.problem import Problem, Solution
from ..kernels.scoring import linear_scores
from ..models import LinearModel, Model
from ..models.objectives import hinge
from ..numeric.ascent import NO_STEP, Ascent, best_value, leaves, meet
from ..numeric.compiling import njit
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix, matmul
from ..numeric.rows import (
    add,
    dot,
    fetch,
    finite_squared_norms,
    prefetch,
    row_arrays,
)
from ..registration import register

# Points of an epoch are brought into the cache so many draws ahead; where a row begins, twice that.
_AHEAD = 3


@register("svm")
@hyperparameters
class LinearSDCA(AscentParameters, WeightedSolver):
    """Linear soft-margin SVM without bias by dual coordinate ascent.

    Maximises ``sum_i alpha_i - 1/2 ||w||^2``, ``w = sum_i alpha_i y_i x_i``, over ``0 <= alpha_i <=
    C weights_i``, one variable at a time, exactly, and keeps w ([HCL08]_ Algorithm 3; a baseline of
    [SBP12]_). For a bias that is regularised like the weights, give X a constant column.

    Notes
    -----
    Kernel evaluations: none; one inner product for each draw, n once for ||x_i||^2, and n for each
    look at the gap, after an epoch that leaves no point out, or at all derivatives. Time
    O(non-zeros of the point) for each draw. Memory: the weights and 5n numbers. Returns the last w,
    with alpha as its certificate.
    """

    scalarization = "C"
    certificate = "dual"
    kernel = "linear"

    stopping: str = "gradient"
    shrinking: bool = True
    max_epochs: int = 1000

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        ascent = DualAscent(
            problem.X, problem, float(self.C), problem.counters, self.order, self.shrinking
        )

        def snapshot() -> LinearModel:
            return LinearModel(ascent.w.copy(), dual_coef=ascent.alpha * problem.y)

        def pause() -> bool:
            spent = problem.counters.inner_products
            return monitor.due(spent) and monitor.record(ascent.n_iter, snapshot)

        def allowance() -> float:
            return monitor.next_checkpoint - problem.counters.inner_products

        status, shortfall = ascend(ascent, self, lambda: ascent.epoch(allowance, pause))
        return Solution(snapshot(), ascent.n_iter, status, shortfall)


def solve_on_features(
    solver: Any,
    features: Matrix,
    problem: Problem,
    monitor: Monitor,
    model: Callable[[np.ndarray], Model],
) -> Solution:
    """Solve the linear SVM on features of the points to a duality gap, at no charge."""
    ascent = DualAscent(features, problem, float(solver.C), Counters())
    status, shortfall = ascend(
        ascent,
        solver,
        lambda: ascent.epoch(lambda: math.inf, lambda: False),
        "gap",
        lambda: monitor.after_epoch(problem.counters, ascent.n_iter, lambda: model(ascent.w)),
    )
    return Solution(model(ascent.w), ascent.n_iter, status, shortfall)


class DualAscent(Ascent):
    """The state of dual coordinate ascent on some features of the points, with its w."""

    def __init__(
        self,
        X: Matrix,
        problem: Problem,
        C: float,
        counters: Counters,
        draw: str = "permutation",
        shrinking: bool = True,
    ) -> None:
        super().__init__(C * problem.weights, counters, shrinking=shrinking)
        self.y, self.rng, self._draw = problem.y, problem.rng, draw
        self.w = np.zeros(X.shape[1])
        self._X, self._rows, self._diag = X, row_arrays(X), finite_squared_norms(X)
        self.counters.inner_products += X.shape[0]

    def epoch(self, allowance: Callable[[], float], pause: Callable[[], bool]) -> bool:
        """One epoch, interrupted by ``pause`` after each allowance of draws."""
        active, draws = self.begin_epoch(), self.order
        if self._draw == "permutation":
            self.rng.shuffle(draws[:active])
        else:
            draws = draws[self.rng.integers(active, size=active)]
        position = 0
        while position < self.state["active"]:
            wanted = math.ceil(min(max(allowance(), 1.0), active))
            position, done = _steps(
                self._rows, self.y, self._diag, self.bounds, draws, position, wanted,
                self.shrinking, self.alpha, self.w, self.state,
            )  # fmt: skip
            self.n_iter += done
            self.counters.inner_products += done
            if pause():
                return True
        return False

    @property
    def knows_gap(self) -> bool:
        return self.complete

    def margins(self) -> np.ndarray:
        self.counters.inner_products += len(self.y)
        return self.y * linear_scores(self._X, self.w)

    def gap(self) -> float:
        margins, squared_norm = self.margins(), matmul(self.w, self.w)
        primal = 0.5 * squared_norm + matmul(self.bounds, hinge(margins))
        return float((primal - (self.alpha.sum() - 0.5 * squared_norm)) / self.bounds.sum())


@njit(error_model="numpy")
def _steps(rows, y, diag, bounds, order, first, last, shrinking, alpha, w, state):
    """Exact dual coordinate steps for the positions from ``first`` on, in place."""
    position, done = first, 0
    while position < state.active and done < last:
        i = order[position]
        done += 1
        if position + 2 * _AHEAD < len(order):
            coming = order[position + _AHEAD]
            fetch(rows, coming, order[position + 2 * _AHEAD])
            prefetch(y, coming)
            prefetch(diag, coming)
            prefetch(bounds, coming)
            prefetch(alpha, coming)
        slope = 1.0 - y[i] * dot(rows, i, w)
        if shrinking and leaves(alpha[i], slope, bounds[i], state):
            state.active -= 1
            end = state.active
            order[position], order[end] = order[end], order[position]
            continue
        position += 1
        if abs(meet(alpha[i], slope, bounds[i], state)) <= NO_STEP:
            continue
        target = best_value(alpha[i], slope, diag[i], bounds[i])
        add(rows, i, (target - alpha[i]) * y[i], w)
        alpha[i] = target
    return position, done
