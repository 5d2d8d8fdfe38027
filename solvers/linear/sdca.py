"""Dual coordinate ascent for the linear SVM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.convergence import ascent_short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import LinearModel, Model
from ..models.objectives import hinge
from ..numeric.ascent import (
    NO_STEP,
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
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix, matmul
from ..numeric.rows import (
    add,
    dot,
    fetch,
    fetch_bounds,
    finite_squared_norms,
    margins_of,
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
            problem.X,
            problem.y,
            float(self.C) * problem.weights,
            order=self.order,
            shrinking=self.shrinking,
            rng=problem.rng,
            counters=problem.counters,
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
    ascent = DualAscent(
        features,
        problem.y,
        C * problem.weights,
        order="permutation",
        shrinking=True,
        rng=problem.rng,
        counters=Counters(),
    )
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


@dataclass
class DualAscent:
    """The state of dual coordinate ascent on one training set."""

    X: Matrix
    y: np.ndarray
    bounds: np.ndarray
    order: str
    shrinking: bool
    rng: np.random.Generator
    counters: Counters
    n_iter: int = 0  # Draws done
    alpha: np.ndarray = field(init=False)  # float64, shape (n,)
    w: np.ndarray = field(init=False)  # float64, shape (n_features,)

    def __post_init__(self) -> None:
        n, n_features = self.X.shape
        self.alpha, self.w = np.zeros(n), np.zeros(n_features)
        self._rows = row_arrays(self.X)
        self._diag = finite_squared_norms(self.X)
        self.counters.inner_products += n
        # A point without weight has alpha = 0 for good.
        self._order = np.flatnonzero(self.bounds > 0)
        self._state = ascent_state(len(self._order))

    def epoch(self, allowance: Callable[[], float], pause: Callable[[], bool]) -> bool:
        """One epoch, interrupted by ``pause`` after each allowance of draws."""
        active = int(self._state["active"])
        if self.order == "permutation":
            self.rng.shuffle(self._order[:active])
            draws = self._order
        else:
            draws = self._order[self.rng.integers(active, size=active)]
        begin_epoch(self._state)
        position = 0
        while position < self._state["active"]:
            wanted = math.ceil(min(max(allowance(), 1.0), active))
            position, done = _steps(
                self._rows, self.y, self._diag, self.bounds, draws, position, wanted,
                self.shrinking, self.alpha, self.w, self._state,
            )  # fmt: skip
            self.n_iter += done
            self.counters.inner_products += done
            if pause():
                return True
        return False

    def end_epoch(self, tol: float) -> float:
        """Set the thresholds of shrinking; bring all points back if those left are optimal."""
        return end_epoch(self._state, len(self._order), tol)

    @property
    def complete(self) -> bool:
        """Whether no point is left out at the moment."""
        return bool(self._state["active"] == len(self._order))

    def gap(self) -> float:
        """Primal minus dual, over the sum of the bounds. Costs n inner products."""
        margins = margins_of(self._rows, self.y, self.w)
        self.counters.inner_products += len(margins)
        primal = 0.5 * matmul(self.w, self.w) + matmul(self.bounds, hinge(margins))
        dual = self.alpha.sum() - 0.5 * matmul(self.w, self.w)
        return float((primal - dual) / self.bounds.sum())

    def violation(self) -> float:
        """How far the projected derivatives lie from 0 and each other. Costs n inner products."""
        margins = margins_of(self._rows, self.y, self.w)
        self.counters.inner_products += len(margins)
        return violation(self.alpha, self.bounds, margins)


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
