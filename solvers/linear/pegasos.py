"""Linear Pegasos: mini-batch subgradient descent on the primal."""

from __future__ import annotations

import math

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters, WarmStartParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import LinearModel
from ..numeric.compiling import njit
from ..numeric.draws import draw_by_weight
from ..numeric.rows import add, add_with_norm, dot, finite_squared_norms, row_arrays
from ..numeric.validation import (
    check_flag,
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)
from ..registration import register

# The scale of w = scale v stays above this: the sums of the average lose as many digits.
_SMALLEST_SCALE = 1e-5
_STATE = np.dtype(
    [
        ("steps", np.float64),
        ("scale", np.float64),
        ("squared_norm", np.float64),  # of v
        ("scale_sum", np.float64),  # of the scales since v was last rescaled
    ]
)


@register("svm")
@hyperparameters
class LinearPegasos(WeightedSolver, SolverParameters, WarmStartParameters, SoftMarginParameters):
    """Linear soft-margin SVM without bias by mini-batch subgradient steps on the primal.

    Minimises ``1/2 ||w||^2 + C sum_i weights_i hinge_i``, in the form ``lambda/2 ||w||^2`` plus the
    weighted mean of the losses with ``lambda = 1 / (C sum_i weights_i)``. Step t takes k points and
    sets ``w <- (1 - 1/t) w + 1 / (lambda t k) sum y_i x_i``, the sum over those with margin below
    1, then brings w back into the ball ``||w|| <= 1 / sqrt(lambda)``, in which the optimum lies
    ([SSS07]_ Fig. 1; a baseline of [BMRM07]_ with k = n).

    Points are drawn with probability proportional to their weights, which makes the step unbiased;
    where every point is visited, its loss gets its weight as a factor. For a bias that is
    regularised like the weights, give X a constant column.

    Parameters
    ----------
    batch_size : int >= 1 or None
        The points k of a step; None takes all of them, the batch subgradient method.
    order : {"iid", "permutation"}
        Independent draws, or consecutive parts of a fresh permutation in each epoch, so that no
        point comes twice in a batch. A remainder of less than k points is left out of the epoch.
    projection : bool
        Whether to project on the ball; off in later versions of the method.
    output : {"last", "averaged"}
        "averaged" is the mean of the w after each step.
    max_epochs : int >= 1
        Stop after this many epochs of n // k steps.

    Notes
    -----
    Kernel evaluations: none; k inner products in each step. Time O(non-zeros of the k points)
    besides: w is kept as a scale times a vector. Memory: the weights, three times if averaged.
    """

    scalarization = "R"
    kernel = "linear"

    batch_size: int | None = 1
    order: str = "iid"
    projection: bool = True
    output: str = "last"
    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        if self.batch_size is not None:
            check_whole("batch_size", self.batch_size, at_least=1)
        check_one_of("order", self.order, ("iid", "permutation"))
        check_flag("projection", self.projection)
        check_one_of("output", self.output, ("last", "averaged"))
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, n_features = problem.X.shape
        size = n if self.batch_size is None else self.batch_size
        if size > n:
            raise ValueError(f"batch_size must be at most the number of points, {n}, got {size}")
        finite_squared_norms(problem.X)
        lam = 1.0 / (float(self.C) * problem.weights.sum())
        radius = 1.0 / math.sqrt(lam) if self.projection else math.inf
        drawn_by_weight = self.order == "iid" and self.batch_size is not None
        factors = np.ones(n) if drawn_by_weight else problem.weights / problem.weights.mean()
        n_averaged = n_features if self.output == "averaged" else 0
        v, correction, total, state = problem.state or (
            *(np.zeros(n_features), np.zeros(n_averaged), np.zeros(n_averaged)),
            _start(),
        )
        rows = row_arrays(problem.X)

        def snapshot() -> LinearModel:
            if self.output == "last":
                return LinearModel(state["scale"] * v)
            return LinearModel((total + state["scale_sum"] * v - correction) / state["steps"])

        def solution(status: SolveStatus) -> Solution:
            kept = v, correction, total, state
            return Solution(snapshot(), int(state["steps"]), status, state=kept)

        for _ in range(self.max_epochs):
            batches = self._draw_epoch(problem, size)
            first = 0
            while first < len(batches):
                spent = problem.counters.inner_products
                wanted = max(1.0, (monitor.next_checkpoint - spent) / size)
                last = first + math.ceil(min(wanted, len(batches) - first))
                _steps(
                    rows, problem.y, factors, lam, radius, batches[first:last],
                    v, correction, total, state,
                )  # fmt: skip
                problem.counters.inner_products += size * (last - first)
                first = last
                if monitor.due(problem.counters.inner_products) and monitor.record(
                    int(state["steps"]), snapshot
                ):
                    return solution("stopped")
        return solution("budget")

    def _draw_epoch(self, problem: Problem, size: int) -> np.ndarray:
        """The batches of an epoch, shape (n_batches, size)."""
        n, n_batches = problem.n, problem.n // size
        if self.batch_size is None:
            return np.arange(n)[None, :]
        if self.order == "permutation":
            return problem.rng.permutation(n)[: n_batches * size].reshape(n_batches, size)
        return draw_by_weight(problem.rng, problem.weights, (n_batches, size))


def _start() -> np.void:
    """The state of a run before its first step."""
    state = np.zeros(1, dtype=_STATE)[0]
    state["scale"] = 1.0
    return state


@njit(error_model="numpy")
def _steps(rows, y, factors, lam, radius, batches, v, correction, total, state):
    """Pegasos steps of these batches (SSS07 Fig. 1); w = state.scale v. All in place."""
    size = batches.shape[1]
    violators = np.empty(size, dtype=np.int64)
    for b in range(len(batches)):
        state.steps += 1.0
        t = state.steps
        # A_t^+, those with loss. All margins of a batch belong to the same w.
        n_violators = 0
        for i in batches[b]:
            if y[i] * state.scale * dot(rows, i, v) < 1.0:
                violators[n_violators] = i
                n_violators += 1
        # (1 - eta lambda) w with eta = 1 / (lambda t), then plus eta / k times the sum.
        if t > 1.0:  # w = 0 at first
            state.scale *= 1.0 - 1.0 / t
        if state.scale < _SMALLEST_SCALE:
            _rescale(v, correction, total, state)
        for k in range(n_violators):
            i = violators[k]
            step = y[i] * factors[i] / (lam * t * size * state.scale)
            state.squared_norm += add_with_norm(rows, i, step, v)
            if len(total):
                add(rows, i, state.scale_sum * step, correction)
        # The projection on the ball.
        norm = state.scale * np.sqrt(max(state.squared_norm, 0.0))
        if norm > radius:
            state.scale *= radius / norm
        state.scale_sum += state.scale


@njit(error_model="numpy")
def _rescale(v, correction, total, state):
    """Bring the scale back to 1, and the sum of the iterates up to date."""
    for j in range(len(total)):
        total[j] += state.scale_sum * v[j] - correction[j]
        correction[j] = 0.0
    state.scale_sum = 0.0
    squared_norm = 0.0
    for j in range(len(v)):
        v[j] *= state.scale
        squared_norm += v[j] * v[j]
    state.scale = 1.0
    state.squared_norm = squared_norm
