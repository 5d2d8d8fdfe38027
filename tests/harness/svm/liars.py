"""Solvers for the tests that go wrong: most of them behave on the few points of the warm-up."""

import mmap
import os
from dataclasses import replace

import numba
import numpy as np

from marginbench.solvers import (
    SMO,
    KernelExpansion,
    KernelParameters,
    LinearModel,
    LinearSDCA,
    Perceptron,
    Solution,
    Solver,
    hyperparameters,
)


class Bad(Solver):
    """Goes wrong in the way that it is told to."""

    certificate = "dual"

    def __init__(self, kernel="rbf", *, gamma=1.0, C=1.0, random_state=None, how=""):
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.random_state = random_state
        self.how = how

    def _solve(self, problem, monitor):
        if self.how == "loops at once":
            self.loops(problem)
        if problem.n <= 50:
            return Solution(problem.expansion(np.zeros(problem.n)), 1, "budget")
        # Half the work is done and recorded when it goes wrong.
        problem.oracle.rows(np.arange(10))
        monitor.record(1, lambda: problem.expansion(0.01 * problem.y))
        found = getattr(self, self.how.replace(" ", "_"))(problem)
        if isinstance(found, Solution):
            return found
        return Solution(problem.expansion(found), 1, "budget")

    def loops(self, problem):
        while True:
            pass

    def says_converged(self, problem):
        return Solution(problem.expansion(0.05 * problem.y), 1, "converged")

    def says_that_nothing_is_optimal(self, problem):
        return Solution(problem.expansion(np.zeros(problem.n)), 1, "converged")

    def is_infeasible(self, problem):
        return -problem.y

    def inflates_n(self, problem):
        model = problem.expansion(1e-6 * problem.y)
        return Solution(replace(model, n_train=10**9), 1, "converged")

    def counts_too_far(self, problem):
        return Solution(problem.expansion(0.5 * problem.y), 10**30, "budget")

    def returns_few_coefficients(self, problem):
        return np.ones(3)

    def invents_points(self, problem):
        model = problem.expansion(problem.y)
        model = KernelExpansion(
            model.kernel, model.points, model.coef, 0.0, model.support + 1, problem.n
        )
        return Solution(model, 1, "budget")

    def changes_its_data(self, problem):
        problem.X[:] = 0.0

    def predicts_otherwise(self, problem):
        return 0.5 * problem.y

    def decision_function(self, X):
        sign = -1 if self.how == "predicts otherwise" else 1
        return sign * super().decision_function(X)


class OnAnyTask(Solver):
    def __init__(self, kernel="rbf", *, gamma=1.0):
        self.kernel = kernel
        self.gamma = gamma

    def _solve(self, problem, monitor):
        return Solution(LinearModel(np.ones(problem.X.shape[1])), 1, "budget")


class _Changed(LinearSDCA):
    def _solve(self, problem, monitor):
        solution = super()._solve(problem, monitor)
        return replace(solution, model=self.changed(solution.model))


class Withholds(_Changed):
    def changed(self, model):
        return replace(model, dual_coef=None)


class OtherWeights(_Changed):
    """Says converged, but the weights are not those of the certificate."""

    def changed(self, model):
        return replace(model, weights=model.weights - 5.0)


class Biased(_Changed):
    def changed(self, model):
        return replace(model, intercept=0.5)


class PredictsOtherwise(LinearSDCA):
    def decision_function(self, X):
        return 1.01 * super().decision_function(X)


class InventsVotes(Perceptron):
    def decision_function(self, X):
        return super().decision_function(X) + 1


class SwapsClasses(SMO):
    def decision_function(self, X):
        return super().decision_function(X)[:, ::-1]


@numba.njit
def spin(steps):
    total = 0.0
    for i in range(steps):
        total += np.sin(i) * np.cos(i)
    return total


@hyperparameters
class CompilesLate(Solver, KernelParameters):
    scalarization = None

    def _solve(self, problem, monitor):
        if len(problem.y) > 100:  # the warm-up does not come here
            spin(10)
        return Solution(problem.expansion(problem.y.astype(float)), 1, "converged")


def touch(seconds):
    """Let the system spend so long on new memory."""
    began = os.times().system
    while os.times().system < began + seconds:
        with mmap.mmap(-1, 1 << 24) as pages:
            pages[:: mmap.PAGESIZE] = bytes(len(pages) // mmap.PAGESIZE)


@hyperparameters
class Touches(Solver, KernelParameters):
    scalarization = None

    def _solve(self, problem, monitor):
        with monitor.paused():
            touch(0.2)
        if len(problem.y) > 100:  # the warm-up does not come here
            touch(0.05)
        return Solution(problem.expansion(problem.y.astype(float)), 1, "converged")
