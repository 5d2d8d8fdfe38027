"""What solvers that update on a mistake have in common: whole counts, and all responses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..interface.problem import Problem
from ..kernels.sums import add_row
from ..numeric.compiling import njit


class Responses:
    """The predictor ``sum_j count_j y_j Phi_j`` of whole counts, and its response at each point.

    The response at i is ``y_i sum_j count_j y_j k(x_j, x_i)``: n evaluations for each mistake.
    """

    def __init__(self, problem: Problem, state: Any) -> None:
        """Continues from a :meth:`state`; None begins."""
        self._problem, n = problem, problem.n
        self.counts: np.ndarray  # int64, shape (n,)
        self._responses: np.ndarray  # float64, shape (n,)
        self.n_iter: int  # Draws done
        self.counts, self._responses, self.n_iter = state or (
            np.zeros(n, dtype=np.int64),
            np.zeros(n),
            0,
        )

    def state(self) -> tuple[np.ndarray, np.ndarray, int]:
        """What is needed to continue."""
        return self.counts, self._responses, self.n_iter

    def walk(self, draws: np.ndarray, scale: float) -> Iterator[int | None]:
        """Count the mistakes among the draws, from one to the next.

        Yields the mistaken point, None at the end without one. A mistake is a response of at most
        0, or below ``scale`` times the draws done before it (Pegasos: ``lambda (t - 1)`` times the
        margin of the w before draw t, which is below 1).
        """
        responses, y, oracle = self._responses, self._problem.y, self._problem.oracle
        position = 0
        while position < len(draws):
            stop = _next_mistake(responses, draws, position, self.n_iter, scale)
            self.n_iter += min(stop, len(draws) - 1) - position + 1
            position = stop + 1
            if stop == len(draws):
                yield None
                return
            i, threshold = int(draws[stop]), scale * (self.n_iter - 1)
            row = oracle.row_ahead(i, partial(_mistakes, responses, draws[position:], threshold))
            # y_i Phi_i is added to the sum, and to all responses.
            add_row(responses, y, row, y[i])
            self.counts[i] += 1
            yield i


def _mistakes(responses: np.ndarray, draws: np.ndarray, threshold: float, count: int) -> np.ndarray:
    """Of the first ``count`` draws those that would be mistakes if they came now."""
    draws = draws[:count]
    return draws[(responses[draws] < threshold) | (responses[draws] <= 0)]


@njit(error_model="numpy")
def _next_mistake(responses, draws, position, done, scale):
    """The position of the next mistake; past the end if there is none."""
    for p in range(position, len(draws)):
        response = responses[draws[p]]
        if response < scale * (done + p - position) or response <= 0.0:
            return p
    return len(draws)
