"""Stochastic gradient descent on the training loss in a ball."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SolverParameters, WarmStartParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels.sums import add_row
from ..models import KernelExpansion
from ..numeric.compiling import njit
from ..numeric.draws import draw_by_weight
from ..numeric.validation import check_iteration_limit, check_positive
from ..registration import register


@register("svm")
@hyperparameters
class SGD(WeightedSolver, SolverParameters, WarmStartParameters, CachedKernelParameters):
    """Kernel SVM without bias in its norm-constrained form, by stochastic gradient descent.

    Minimises the weighted mean of the hinge losses over ``||w|| <= norm_bound``. Step t draws a
    point, uniformly or with probability proportional to its weight, which is unbiased; if
    its margin is below 1, ``y_i Phi_i`` times ``norm_bound / (max_i ||Phi_i|| sqrt(t))`` is added
    to w, which then goes back into the ball ([Zin03]_; a row of Table 1 of [SBP12]_). With the norm
    of an SVM's optimum as the bound, both problems have the same solution.

    Parameters
    ----------
    norm_bound : float > 0
        Largest ||w||.
    max_epochs : int >= 1
        Stop after this many epochs of n steps.

    Notes
    -----
    Kernel evaluations: n for each draw with margin below 1, and the diagonal. Memory: 3n numbers
    and the cache. Returns the average of the w after each step.
    """

    scalarization = None

    norm_bound: float = 10.0
    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_positive("norm_bound", self.norm_bound)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y, oracle, bound = problem.n, problem.y, problem.oracle, float(self.norm_bound)
        diag = oracle.diag()
        if not diag.max() > 0:
            raise ValueError("no k(x, x) is above 0: there is no direction to move in")
        step_scale = bound / np.sqrt(diag.max())
        alpha, alpha_sum, margins, squared_norm, t, summed = problem.state or (
            *(np.zeros(n), np.zeros(n), np.zeros(n)),
            *(0.0, 0, 0),
        )

        def snapshot() -> KernelExpansion:
            # The iterates since the last change are all alike.
            return problem.expansion((alpha_sum + (t - summed) * alpha) / t * y)

        def solution(status: SolveStatus) -> Solution:
            state = alpha, alpha_sum, margins, squared_norm, t, summed
            return Solution(snapshot(), t, status, state=state)

        for _ in range(self.max_epochs):
            draws, position = draw_by_weight(problem.rng, problem.weights, n), 0
            while position < n:
                violation = _next_violation(margins, draws, position)
                t += min(violation, n - 1) - position + 1
                position = violation + 1
                if violation < n:
                    i = int(draws[violation])
                    step = step_scale / np.sqrt(t)
                    squared_norm += 2 * step * margins[i] + step * step * diag[i]
                    scale = min(1.0, bound / np.sqrt(squared_norm)) if squared_norm > 0 else 1.0
                    squared_norm *= scale * scale
                    alpha_sum += (t - 1 - summed) * alpha
                    summed = t - 1
                    alpha[i] += step
                    alpha *= scale
                    later = draws[position:]
                    row = oracle.row_ahead(i, partial(_violations, margins, later))
                    add_row(margins, y, row, step * y[i])
                    if scale < 1:
                        margins *= scale
                if monitor.due(problem.kernel_evals) and monitor.record(t, snapshot):
                    return solution("stopped")
        return solution("budget")


def _violations(margins: np.ndarray, draws: np.ndarray, count: int) -> np.ndarray:
    """Of the first ``count`` draws those that have margin below 1 now."""
    draws = draws[:count]
    return draws[margins[draws] < 1.0]


@njit(error_model="numpy")
def _next_violation(margins, draws, position):
    """Position of the first draw with margin below 1; past the end if there is none."""
    for p in range(position, len(draws)):
        if margins[draws[p]] < 1.0:
            return p
    return len(draws)
