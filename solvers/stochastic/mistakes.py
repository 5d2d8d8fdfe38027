"""Solvers that update only on a mistake: two strategies for evaluating a drawn point.

Both keep the unnormalised predictor ``sum_j count_j y_j Phi_j`` in whole numbers, so that the two
strategies give the same predictor for the same draws, unless rounding decides about a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..interface.declaration import hyperparameters
from ..interface.parameters import CachedKernelParameters, SolverParameters, WarmStartParameters
from ..interface.problem import Problem
from ..kernels.sums import add_row
from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from ..numeric.validation import check_iteration_limit, check_one_of


@hyperparameters
class MistakeParameters(SolverParameters, WarmStartParameters, CachedKernelParameters):
    """How a solver that updates on mistakes evaluates the drawn points.

    Parameters
    ----------
    strategy : {"maintained", "on_demand"}
        "maintained" keeps the responses of all points, n evaluations for each mistake;
        "on_demand" evaluates the drawn point's response, one evaluation for each support vector in
        each iteration. The predictors are the same, unless a margin is so close to its threshold
        that rounding decides.
    """

    strategy: str = "maintained"
    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_one_of("strategy", self.strategy, ("maintained", "on_demand"))
        check_iteration_limit(self.max_epochs)


class Responses:
    """The predictor of whole counts and its response at the drawn points.

    "maintained" keeps the response of every point, "on_demand" the support vectors in the order in
    which they came.
    """

    def __init__(self, problem: Problem, strategy: str, state: Any) -> None:
        """Continues from a :meth:`state` of the same strategy; None begins."""
        self._problem, n = problem, problem.n
        self._on_demand = strategy == "on_demand"
        kept = np.zeros(n, np.int64 if self._on_demand else np.float64)
        begin = np.zeros(n, dtype=np.int64), kept, 0
        self.counts: np.ndarray  # int64, shape (n,)
        self.n_iter: int  # Draws done
        self._kept: np.ndarray
        self.counts, self._kept, self.n_iter = state or begin
        self._n_support = int(np.count_nonzero(self.counts))

    def state(self) -> tuple[np.ndarray, np.ndarray, int]:
        """What the same strategy needs to continue."""
        return self.counts, self._kept, self.n_iter

    def walk(self, draws: np.ndarray, scale: float) -> Iterator[int | None]:
        """Count the mistakes among the draws, from stop to stop.

        Yields the mistaken point, None without one. A mistake is where the response ``y_i sum_j
        count_j y_j k(x_j, x_i)`` is at most 0 or below ``scale`` times the draws done (Pegasos: a
        margin below 1, times lambda t).
        """
        position = 0
        while position < len(draws):
            if self._on_demand:
                stop, response = position, self._response(draws[position])
                is_mistake = response < scale * self.n_iter or response <= 0
            else:
                stop = _next_mistake(self._kept, draws, position, self.n_iter, scale)
                is_mistake = stop < len(draws)
            self.n_iter += min(stop, len(draws) - 1) - position + 1
            position = stop + 1
            mistaken = None
            if is_mistake:
                mistaken = int(draws[stop])
                self._add(mistaken, draws[position:], scale * (self.n_iter - 1))
                self.counts[mistaken] += 1
            yield mistaken

    def _response(self, i: int) -> float:
        y, support = self._problem.y, self._kept[: self._n_support]
        if not len(support):
            return 0.0
        entries = self._problem.oracle.block([i], support)[0].astype(np.float64)
        return float(y[i] * matmul(entries, self.counts[support] * y[support]))

    def _add(self, i: int, later: np.ndarray, threshold: float) -> None:
        """Bring up to date what is kept for a mistake at point i, which is not counted yet."""
        if self._on_demand:
            if self.counts[i] == 0:
                self._kept[self._n_support] = i
                self._n_support += 1
            return
        responses, y = self._kept, self._problem.y

        def probable(count: int) -> np.ndarray:
            """Draws to come of this epoch that would be mistakes if they came now."""
            coming = later[:count]
            return coming[(responses[coming] < threshold) | (responses[coming] <= 0)]

        add_row(responses, y, self._problem.oracle.row_ahead(i, probable), y[i])


@njit(error_model="numpy")
def _next_mistake(responses, draws, position, done, scale):
    """The position of the next mistake; past the end if there is none."""
    for p in range(position, len(draws)):
        response = responses[draws[p]]
        if response < scale * (done + p - position) or response <= 0.0:
            return p
    return len(draws)
