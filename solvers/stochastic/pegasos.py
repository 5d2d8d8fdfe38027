"""Kernel Pegasos: stochastic subgradient descent on the primal."""

from __future__ import annotations

import math

from ..interface.base import WeightedSolver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.draws import draw_by_weight
from ..numeric.validation import check_positive
from ..registration import register
from .mistakes import MistakeParameters, Responses


@register("svm")
@hyperparameters
class Pegasos(MistakeParameters, SoftMarginParameters, WeightedSolver):
    """Soft-margin kernel SVM without bias by stochastic subgradient steps on the primal.

    Minimises ``lambda/2 ||w||^2`` plus the weighted mean of the hinge losses, with ``lambda = 1 /
    (C sum_i weights_i)``. Iteration t draws a point, uniformly or with probability proportional to
    its weight, which makes the step unbiased; ``w <- (1 - 1/t) w``, plus ``y_i Phi_i / (lambda
    t)`` if the point had margin below 1 ([SSS11]_ Fig. 1 and section 4, without the optional
    projection). Hence w is ``1 / (lambda t)`` times a sum with whole counts, which is kept.

    Parameters
    ----------
    tol : float >= 0
        Stop when the objective, estimated over an epoch by the losses at the drawn points, changes
        by less than this fraction from one epoch to the next; 0 runs all epochs.
    max_epochs : int >= 1
        Stop after this many epochs of n iterations.

    Notes
    -----
    Kernel evaluations: n for each violation, or the number of support vectors in each iteration.
    Memory: 2n numbers and the cache. Returns the last iterate.
    """

    scalarization = "R"

    tol: float = 0.0

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        super()._check_parameters()

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y = problem.n, problem.y
        lam = 1.0 / (float(self.C) * problem.weights.sum())
        # squared_sum: ||sum_j count_j y_j Phi_j||^2, kept only for the stopping rule.
        kept, squared_sum, before = problem.state or (None, 0.0, math.inf)
        responses = Responses(problem, self.strategy, kept)
        diag = problem.oracle.diag() if self.tol > 0 else None
        if diag is not None and math.isnan(squared_sum):
            raise ValueError(f"tol={self.tol:g} cannot continue a fit with tol=0")
        change = math.inf

        def snapshot() -> KernelExpansion:
            return problem.expansion(responses.counts * y / (lam * t))

        def solution(status: SolveStatus, shortfall: str = "") -> Solution:
            state = responses.state(), squared_sum if self.tol > 0 else math.nan, before
            return Solution(snapshot(), t, status, shortfall, state=state)

        for _ in range(self.max_epochs):
            draws = draw_by_weight(problem.rng, problem.weights, n)
            loss = 0.0
            for i, response in responses.walk(draws, lam):
                t = responses.n_iter
                if i is not None:
                    loss += 1.0 - response / (lam * (t - 1)) if t > 1 else 1.0
                    if diag is not None:
                        squared_sum += 2 * response + diag[i]
                if monitor.due(problem.kernel_evals) and monitor.record(t, snapshot):
                    return solution("stopped")
            estimate = squared_sum / (2 * lam * t * t) + loss / n
            change = abs(estimate - before) / before if 0 < before < math.inf else math.inf
            if change < self.tol:
                return solution("converged")
            before = estimate
        achieved = "one epoch has no other to compare its estimated objective with"
        if math.isfinite(change):
            achieved = (
                f"the estimated objective changed by {change:.3g} of itself in the last epoch"
            )
        return solution("budget", short_of(achieved, self.tol))
