"""Solvers of several kinds that lie of what they found, and some that take time in odd places."""

import mmap
import os
from dataclasses import replace

import numba
import numpy as np

from marginbench.solvers import (
    KernelParameters,
    LinearSDCA,
    Perceptron,
    Solution,
    Solver,
    hyperparameters,
)


@hyperparameters
class LinearLiar(LinearSDCA):
    how: str = ""

    def _solve(self, problem, monitor):
        solution = super()._solve(problem, monitor)
        changes = {
            "withholds": {"dual_coef": None},
            # Says converged, but the weights are not those of the certificate.
            "has other weights": {"weights": solution.model.weights - 5.0},
            "is biased": {"intercept": 0.5},
        }
        return replace(solution, model=replace(solution.model, **changes[self.how]))


class InventsVotes(Perceptron):
    def decision_function(self, X):
        return super().decision_function(X) + 1


@numba.njit
def spin(steps):
    total = 0.0
    for i in range(steps):
        total += np.sin(i) * np.cos(i)
    return total


def touch(seconds):
    """Let the system spend so long on new memory."""
    began = os.times().system
    while os.times().system < began + seconds:
        with mmap.mmap(-1, 1 << 24) as pages:
            pages[:: mmap.PAGESIZE] = bytes(len(pages) // mmap.PAGESIZE)


@hyperparameters
class TakesTime(Solver, KernelParameters):
    """Solves nothing; on the few points of the warm-up at once."""

    scalarization = None
    how: str = ""

    def _solve(self, problem, monitor):
        if problem.n > 100 and self.how == "compiles":
            spin(10)
        elif problem.n > 100:
            with monitor.paused():
                touch(0.2)
            touch(0.05)
        return Solution(problem.expansion(problem.y.astype(float)), 1, "converged")
