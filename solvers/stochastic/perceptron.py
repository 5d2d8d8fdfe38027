"""The online kernel perceptron."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interface.base import Solver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SolverParameters, WarmStartParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion, Model
from ..models.voting import VotedExpansion
from ..numeric.validation import check_iteration_limit, check_one_of
from ..registration import register
from .mistakes import Responses


@register("svm")
@hyperparameters
class Perceptron(Solver, SolverParameters, WarmStartParameters, CachedKernelParameters):
    """The kernel perceptron, in several passes over the data; last, averaged or voted predictor.

    A pass visits every point once in random order. A point whose margin is not positive is a
    mistake, ties and the very first point included, and adds ``y_i Phi_i`` to w ([FS99]_; a
    baseline of [SBP12]_ section 4.5). There is no regularisation and no bias.

    Parameters
    ----------
    output : {"last", "averaged", "voted"}
        "averaged" is the mean of the predictors before each visit. "voted" lets every predictor of
        the run vote with the sign of its score, as many times as it was right, and once more for
        being made ([FS99]_); the model is a :class:`VotedExpansion`, and ``decision_function`` is
        the difference of the votes. A vote has no norm and so no objective.
    tol : float >= 0
        Stop after a pass with at most this fraction of mistakes; 0 asks for a pass without any.
    max_epochs : int >= 1
        Stop after this many passes.
    random_state
        Seeds the order of each pass.

    Attributes
    ----------
    n_mistakes_ : int
        Mistakes over all passes.

    Notes
    -----
    Kernel evaluations: n for each mistake. Memory: 2n numbers and the cache; for "voted" also two
    numbers for each mistake. A vote costs the kernel evaluations of the last predictor and an
    addition for each mistake.
    """

    scalarization = None

    output: str = "last"
    tol: float = 0.0
    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_one_of("output", self.output, ("last", "averaged", "voted"))
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y = problem.n, problem.y
        # visits_at_mistakes: the sum over each point's mistakes of the visits made up to then, that
        # one included. A mistake at visit s is in the predictors before visits s+1..t, t - s of
        # them. history: points and visits of the mistakes, for the votes.
        start: Any = problem.state or (np.zeros(n), [], None)
        visits_at_mistakes, history, kept = start
        responses = Responses(problem, kept)

        def snapshot() -> Model:
            coef = responses.counts.astype(np.float64)
            if self.output == "averaged":
                coef -= visits_at_mistakes / t
            model = problem.expansion(coef * y)
            return _voted(model, history, t) if self.output == "voted" else model

        def solution(status: SolveStatus, shortfall: str = "") -> Solution:
            self.n_mistakes_ = int(responses.counts.sum())
            kept = visits_at_mistakes, history, responses.state()
            return Solution(snapshot(), t, status, shortfall, state=kept)

        for _ in range(self.max_epochs):
            draws = problem.rng.permutation(n)
            mistakes = 0
            # From one mistake, y_i <w, Phi_i> <= 0, to the next (``mistakes.py``).
            for i in responses.walk(draws, 0.0):
                t = responses.n_iter
                if i is not None:
                    mistakes += 1
                    visits_at_mistakes[i] += t
                    if self.output == "voted":
                        history.append((i, t))
                if monitor.due(problem.kernel_evals) and monitor.record(t, snapshot):
                    return solution("stopped")
            if mistakes <= self.tol * n:
                return solution("converged")
        # tol=0 is a rule, too: it asks for a pass without mistakes.
        shortfall = f"the last pass made {mistakes} mistakes at {n} points, tol={self.tol:g}"
        return solution("budget", shortfall)


def _voted(last: KernelExpansion, history: list[tuple[int, int]], t: int) -> VotedExpansion:
    """The vote after t visits, from the points and visits of all mistakes."""
    points, visits = np.array(history, dtype=np.int64).reshape(-1, 2).T
    # A predictor is right on the visits between two mistakes, the last one up to now.
    until = np.append(visits[1:], t + 1)
    return VotedExpansion(last, np.searchsorted(last.support, points), until - visits)
