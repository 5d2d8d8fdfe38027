"""Solvers that update only on a mistake: two strategies for evaluating a drawn point.

Both keep the unnormalised predictor ``sum_j count_j y_j Phi_j`` in whole numbers, so that the two
strategies give the same predictor for the same draws, unless rounding decides about a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..interface.problem import Problem
from ..kernels.sums import add_row
from ..numeric.compiling import njit
from ..numeric.matrices import matmul


class Responses(Protocol):
    """The predictor of whole counts and its response at the drawn points."""

    counts: np.ndarray  # int64, shape (n,)

    def advance(
        self, draws: np.ndarray, position: int, done: int, scale: float
    ) -> tuple[int, float]:
        """The position of the next mistake from ``position`` on, and the response there.

        Responses are those of the counts, ``y_i sum_j count_j y_j k(x_j, x_i)``. A mistake is one
        of at most 0 or below ``scale`` times the draws done (Pegasos: a margin below 1, times
        lambda t). Without a mistake before a stop that costs something, it is NaN.
        """

    def add(self, i: int) -> None:
        """Count a mistake at point i, the one that the last ``advance`` found."""

    def state(self) -> dict[str, Any]:
        """What the same strategy needs to continue."""


class MaintainedResponses:
    """Keeps the response of every point: n evaluations for each mistake, none otherwise."""

    def __init__(self, problem: Problem, state: dict[str, Any] | None = None) -> None:
        self._problem = problem
        self.counts = np.zeros(problem.n, dtype=np.int64)
        self._responses = np.zeros(problem.n)
        if state is not None:
            self.counts, self._responses = state["counts"], state["responses"]
        self._later = np.empty(0, dtype=np.int64)
        self._threshold = 0.0

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "responses": self._responses}

    def advance(
        self, draws: np.ndarray, position: int, done: int, scale: float
    ) -> tuple[int, float]:
        stop, response = _next_mistake(self._responses, draws, position, done, scale)
        self._later = draws[stop + 1 :]
        self._threshold = scale * (done + stop - position)
        return stop, response

    def add(self, i: int) -> None:
        self.counts[i] += 1
        y = self._problem.y
        add_row(self._responses, y, self._problem.oracle.row_ahead(i, self._probable), y[i])

    def _probable(self, count: int) -> np.ndarray:
        """Draws to come of this epoch that would be mistakes if they came now."""
        later = self._later[:count]
        responses = self._responses[later]
        return later[(responses < self._threshold) | (responses <= 0)]


class OnDemandResponses:
    """Evaluates the response of each drawn point: one evaluation for each support vector."""

    def __init__(self, problem: Problem, state: dict[str, Any] | None = None) -> None:
        self._problem = problem
        self.counts = np.zeros(problem.n, dtype=np.int64)
        self._support = np.zeros(problem.n, dtype=np.int64)
        self._n_support = 0
        if state is not None:
            self.counts, self._support = state["counts"], state["support"]
            self._n_support = int(np.count_nonzero(self.counts))

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "support": self._support}

    def advance(
        self, draws: np.ndarray, position: int, done: int, scale: float
    ) -> tuple[int, float]:
        y = self._problem.y
        i = draws[position]
        support = self._support[: self._n_support]
        response = 0.0
        if self._n_support > 0:
            entries = self._problem.oracle.block([i], support)[0].astype(np.float64)
            response = float(y[i] * matmul(entries, self.counts[support] * y[support]))
        mistaken = response < scale * done or response <= 0
        return position, response if mistaken else np.nan

    def add(self, i: int) -> None:
        if self.counts[i] == 0:
            self._support[self._n_support] = i
            self._n_support += 1
        self.counts[i] += 1


STRATEGIES: dict[str, Callable[[Problem, dict[str, Any] | None], Responses]] = {
    "maintained": MaintainedResponses,
    "on_demand": OnDemandResponses,
}


@njit(error_model="numpy")
def _next_mistake(responses, draws, position, done, scale):
    for p in range(position, len(draws)):
        response = responses[draws[p]]
        if response < scale * (done + p - position) or response <= 0.0:
            return p, response
    return len(draws) - 1, np.nan
