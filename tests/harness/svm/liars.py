"""Solvers of several kinds that lie of what they found, and what is timed apart."""

import mmap
import os
from dataclasses import replace

import numba
import numpy as np

from marginbench.solvers import (
    SMO,
    KernelParameters,
    LinearSDCA,
    Perceptron,
    Solution,
    Solver,
    hyperparameters,
)


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
