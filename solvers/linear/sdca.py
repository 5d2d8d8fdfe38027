"""Dual coordinate ascent for the linear SVM."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.convergence import ascent_short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels.scoring import linear_scores
from ..models import LinearModel, Model
from ..models.objectives import hinge
from ..numeric.ascent import NO_STEP, Ascent, best_value, check_ascent, leaves, meet
from ..numeric.compiling import njit
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix, matmul
from ..numeric.rows import (
    add,
    dot,
    fetch,
    fetch_bounds,
    finite_squared_norms,
    prefetch,
    row_arrays,
)
from ..registration import register

# Points of an epoch are brought into the cache so many draws ahead; where a row begins, twice that.
_AHEAD = 3


@register("svm")
@hyperparameters
class LinearSDCA(WeightedSolver, SolverParameters, SoftMarginParameters):
    """Linear soft-margin SVM without bias by dual coordinate ascent.

    Maximises ``sum_i alpha_i - 1/2 ||w||^2``, ``w = sum_i alpha_i y_i x_i``, over ``0 <= alpha_i <=
    C weights_i``, one variable at a time, exactly, and keeps w ([HCL08]_ Algorithm 3; a baseline of
    [SBP12]_). For a bias that is regularised like the weights, give X a constant column.

    Parameters
    ----------
    order : {"permutation", "iid"}
        A fresh permutation in each epoch (LIBLINEAR), or independent uniform draws ([SBP12]_),
        which need ``stopping="gap"`` and ``shrinking=False``.
    stopping : {"gradient", "gap"}
        "gradient" is LIBLINEAR's rule: stop when the projected derivatives of the dual are close to
        0 and to each other, first as they were met in an epoch over all points, and then, which
        LIBLINEAR does not ask, all at its end, for n inner products. "gap" stops when the duality
        gap is small; it costs n inner products at the end of an epoch that leaves no point out.
    shrinking : bool
        Whether to leave out points at their bounds whose derivative points outward by more than
        any did in the epoch before; all come back before the end (LIBLINEAR).
    tol : float >= 0
        Stop when the projected derivatives ("gradient") lie within ``tol`` of 0 and of each other;
        or when the duality gap ("gap") is at most ``tol``, in units of the weighted mean of the
        losses. The former implies the latter.
        LIBLINEAR's own default is 0.1.
    max_epochs : int >= 1
        Stop after this many epochs.

    Notes
    -----
    Kernel evaluations: none; one inner product for each draw, n once for ||x_i||^2, and those of
    "gap". Time O(non-zeros of the point) for each draw. Memory: the weights and 5n numbers. Returns
    the last w, with alpha as its certificate.
    """

    scalarization = "C"
    certificate = "dual"
    kernel = "linear"

    order: str = "permutation"
    stopping: str = "gradient"
    shrinking: bool = True
    tol: float = 1e-3
    max_epochs: int = 1000

    def _check_parameters(self) -> None:
        check_ascent(self)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        ascent = DualAscent(
            problem.X, problem, float(self.C), problem.counters, self.order, self.shrinking
        )

        def snapshot() -> LinearModel:
            return LinearModel(ascent.w.copy(), dual_coef=ascent.alpha * problem.y)

        def record() -> bool:
            spent = problem.counters.inner_products
            return monitor.due(spent) and monitor.record(ascent.n_iter, snapshot)

        def allowance() -> float:
            return monitor.next_checkpoint - problem.counters.inner_products

        status: SolveStatus = "budget"
        for _ in range(self.max_epochs):
            if ascent.epoch(allowance, record):
                status = "stopped"
                break
            measure = ascent.end_epoch(self.tol)
            if self.stopping == "gap" and ascent.complete:
                measure = ascent.gap()
            elif measure <= self.tol:
                # Some derivatives have changed since the epoch met them.
                measure = ascent.violation()
            if measure <= self.tol:
                status = "converged"
                break
        if status != "budget" or self.tol == 0:
            return Solution(snapshot(), ascent.n_iter, status)
        # What the last epoch knows may be about some of the points, or from before its steps. To
        # know better is no part of the method, so it is not charged.
        ascent.counters = Counters()
        measure = ascent.gap() if self.stopping == "gap" else ascent.violation()
        if measure <= self.tol:
            return Solution(snapshot(), ascent.n_iter, "converged")
        shortfall = ascent_short_of(self.stopping, measure, self.tol)
        return Solution(snapshot(), ascent.n_iter, "budget", shortfall)


def ascend(
    features: Matrix,
    problem: Problem,
    monitor: Monitor,
    model: Callable[[np.ndarray], Model],
    C: float,
    tol: float,
    max_epochs: int,
) -> tuple[DualAscent, SolveStatus, str]:
    """Solve the linear SVM on features of the points to a duality gap, at no charge."""
    ascent = DualAscent(features, problem, C, Counters())
    for left in reversed(range(max_epochs)):
        ascent.epoch(lambda: math.inf, lambda: False)
        ascent.end_epoch(tol)
        if ascent.complete and ascent.gap() <= tol:
            return ascent, "converged", ""
        if left and monitor.after_epoch(problem.counters, ascent.n_iter, lambda: model(ascent.w)):
            return ascent, "stopped", ""
    if tol == 0:
        return ascent, "budget", ""
    gap = ascent.gap()
    if gap <= tol:
        return ascent, "converged", ""
    return ascent, "budget", ascent_short_of("gap", gap, tol)


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
        super().__init__(C * problem.weights, shrinking=shrinking)
        self.y, self.rng, self.counters, self._draw = problem.y, problem.rng, counters, draw
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

    def _margins(self) -> np.ndarray:
        self.counters.inner_products += len(self.y)
        return self.y * linear_scores(self._X, self.w)

    def gap(self) -> float:
        """Primal minus dual, over the sum of the bounds. Costs n inner products."""
        margins = self._margins()
        primal = 0.5 * matmul(self.w, self.w) + matmul(self.bounds, hinge(margins))
        dual = self.alpha.sum() - 0.5 * matmul(self.w, self.w)
        return float((primal - dual) / self.bounds.sum())

    def violation(self) -> float:
        """How far the projected derivatives lie from 0 and each other. Costs n inner products."""
        return self.violation_at(self._margins())


@njit(error_model="numpy")
def _steps(rows, y, diag, bounds, order, first, last, shrinking, alpha, w, state):
    """Exact dual coordinate steps for the positions from ``first`` on, in place."""
    position, done = first, 0
    while position < state.active and done < last:
        i = order[position]
        done += 1
        if position + 2 * _AHEAD < len(order):
            fetch_bounds(rows, order[position + 2 * _AHEAD])
        if position + _AHEAD < len(order):
            coming = order[position + _AHEAD]
            fetch(rows, coming)
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
