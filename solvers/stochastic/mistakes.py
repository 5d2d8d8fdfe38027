"""Solvers that update only on a mistake: two strategies for evaluating a drawn point.

Both keep the unnormalised predictor ``sum_j count_j y_j Phi_j`` in whole numbers, so that the two
strategies give the same predictor for the same draws, unless rounding decides about a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..interface.problem import Problem
from ..numeric.compiling import njit
from ..numeric.matrices import matmul


class Responses(Protocol):
    """The predictor of whole counts and its response at the drawn points."""

    counts: np.ndarray  # int64, shape (n,)

    def advance(
        self, draws: np.ndarray, position: int, done: int, slope: float
    ) -> tuple[int, float]:
        """Go on until the next mistake, or until something was spent."""

    def add(self, i: int) -> None:
        """Count a mistake at point i, the one that the last ``advance`` found."""

    def state(self) -> dict[str, Any]:
        """What the same strategy needs to continue."""


class MaintainedResponses:
    """Keeps the response of every point: n evaluations for each mistake, none otherwise."""

    def __init__(self, problem: Problem, state: dict[str, Any] | None = None) -> None:
        self._problem = problem
        self.counts = np.zeros(problem.n, dtype=np.int64)
        self._scores = np.zeros(problem.n)
        if state is not None:
            self.counts, self._scores = state["counts"], state["scores"]
        self._later = np.empty(0, dtype=np.int64)
        self._threshold = 0.0

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "scores": self._scores}

    def advance(
        self, draws: np.ndarray, position: int, done: int, slope: float
    ) -> tuple[int, float]:
        found, margin = _next_mistake(self._scores, self._problem.y, draws, position, done, slope)
        self._later = draws[found + 1 :]
        self._threshold = slope * (done + found - position)
        return found, margin

    def add(self, i: int) -> None:
        self.counts[i] += 1
        row = self._problem.oracle.row_ahead(i, self._probable)
        _add_scaled(self._scores, row, self._problem.y[i])

    def _probable(self, count: int) -> np.ndarray:
        """Draws to come of this epoch that would be mistakes if they came now."""
        later = self._later[:count]
        margins = self._problem.y[later] * self._scores[later]
        return later[(margins < self._threshold) | (margins <= 0)]


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
        self, draws: np.ndarray, position: int, done: int, slope: float
    ) -> tuple[int, float]:
        y = self._problem.y
        i = draws[position]
        support = self._support[: self._n_support]
        margin = 0.0
        if self._n_support > 0:
            entries = self._problem.oracle.block([i], support)[0].astype(np.float64)
            margin = float(y[i] * matmul(entries, self.counts[support] * y[support]))
        mistaken = margin < slope * done or margin <= 0
        return position, margin if mistaken else np.nan

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
def _next_mistake(scores, y, draws, position, done, slope):
    for p in range(position, len(draws)):
        i = draws[p]
        margin = y[i] * scores[i]
        if margin < slope * (done + p - position) or margin <= 0.0:
            return p, margin
    return len(draws) - 1, np.nan


@njit(error_model="numpy")
def _add_scaled(scores, row, sign):
    for j in range(len(scores)):
        scores[j] += sign * row[j]
