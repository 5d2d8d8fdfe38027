"""Kernel Pegasos: stochastic subgradient descent on the primal."""

from __future__ import annotations

from ..interface.base import WeightedSolver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import (
    CachedKernelParameters,
    SoftMarginParameters,
    SolverParameters,
    WarmStartParameters,
)
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.draws import draw_by_weight
from ..numeric.validation import check_iteration_limit, check_positive
from ..registration import register
from .mistakes import Responses


@register("svm")
@hyperparameters
class Pegasos(
    WeightedSolver,
    SolverParameters,
    WarmStartParameters,
    SoftMarginParameters,
    CachedKernelParameters,
):
    """Soft-margin kernel SVM without bias by stochastic subgradient steps on the primal.

    Minimises ``lambda/2 ||w||^2`` plus the weighted mean of the hinge losses, with ``lambda = 1 /
    (C sum_i weights_i)``. Iteration t draws a point, uniformly or with probability proportional to
    its weight, which makes the step unbiased; ``w <- (1 - 1/t) w``, plus ``y_i Phi_i / (lambda
    t)`` if the point had margin below 1 ([SSS11]_ Fig. 1 and section 4, without the optional
    projection; a baseline of [SBP12]_ section 4.2). Hence w is ``1 / (lambda t)`` times a sum with
    whole counts, which is kept: a violation adds 1 to its point's count, and the decay is all in t.

    Parameters
    ----------
    max_epochs : int >= 1
        Stop after this many epochs of n iterations.

    Notes
    -----
    Kernel evaluations: n for each violation. Memory: 2n numbers and the cache. Returns the last
    iterate.
    """

    scalarization = "R"

    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        lam = 1.0 / (float(self.C) * problem.weights.sum())
        responses = Responses(problem, problem.state)

        def snapshot() -> KernelExpansion:
            return problem.expansion(responses.counts * problem.y / (lam * responses.n_iter))

        def solution(status: SolveStatus) -> Solution:
            return Solution(snapshot(), responses.n_iter, status, state=responses.state())

        for _ in range(self.max_epochs):
            # From one violation, y_i <w, Phi_i> < 1, to the next (``mistakes.py``).
            for _ in responses.walk(draw_by_weight(problem.rng, problem.weights, problem.n), lam):
                due = monitor.due(problem.kernel_evals)
                if due and monitor.record(responses.n_iter, snapshot):
                    return solution("stopped")
        return solution("budget")
