"""The structure of label sequences: a linear chain with kernelised emissions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric.compiling import njit
from ..numeric.validation import check_whole
from .structure import StructuredProblem, Violations


class LinearChain(StructuredProblem):
    """Sequences of states 0 to n - 1: a hidden Markov model trained for a large margin.

    ``Psi(x, y)`` counts each point of the sequence in the channel of its state, and each pair of
    consecutive states. The loss is the part of the positions whose state is wrong. The best
    sequence is found by Viterbi's algorithm.

    Parameters
    ----------
    n_states : int >= 2
    transitions : bool, default=True
        False: no weights for pairs of states; every position is then on its own.

    Raises
    ------
    ValueError
        For fewer than two states.
    """

    def __init__(self, n_states: int, transitions: bool = True) -> None:
        check_whole("n_states", n_states, at_least=2)
        self.n_channels = int(n_states)
        self.transitions = bool(transitions)
        self.n_explicit = self.n_channels**2 if transitions else 0

    def argmax(self, scores: np.ndarray, weights: np.ndarray, target: Any = None) -> np.ndarray:
        local = np.array(scores, dtype=np.float64)
        if target is not None:
            local += 1.0 / len(local)
            local[np.arange(len(local)), np.asarray(target)] -= 1.0 / len(local)
        path = np.empty(len(local), dtype=np.int64)
        if len(path):
            _viterbi(local, self._pairs(weights), path)
        return path

    def loss(self, target: Any, output: Any) -> float:
        wrong = np.asarray(target) != output
        return float(wrong.mean()) if len(wrong) else 0.0

    def psi(self, output: Any, n_points: int) -> tuple[np.ndarray, np.ndarray]:
        output = np.asarray(output)
        coef = np.zeros((n_points, self.n_channels))
        coef[np.arange(n_points), output] = 1.0
        pairs = np.zeros((self.n_channels, self.n_channels))
        np.add.at(pairs, (output[:-1], output[1:]), 1.0)
        return coef, pairs.ravel()[: self.n_explicit]

    def most_violating(
        self, scores: np.ndarray, weights: np.ndarray, targets: Any, starts: np.ndarray
    ) -> Violations:
        k = len(targets)
        labels = np.concatenate(targets) if k else np.empty(0)
        losses, values = np.empty(k), np.empty(k)
        coef, explicit = np.zeros(scores.shape), np.zeros((k, self.n_channels**2))
        _most_violating(
            scores, self._pairs(weights), labels.astype(np.int64), starts,
            losses, values, coef, explicit,
        )  # fmt: skip
        explicit = explicit[:, : self.n_explicit]
        return Violations(losses, np.maximum(values, 0.0), coef, explicit)

    def _pairs(self, weights: np.ndarray) -> np.ndarray:
        shape = (self.n_channels, self.n_channels)
        return weights.reshape(shape) if self.transitions else np.zeros(shape)


@njit(error_model="numpy")
def _viterbi(local, pairs, path):
    """The path of the highest sum of local scores and scores of pairs; its value."""
    length, n_states = local.shape
    best, ahead = local[0].copy(), np.empty(n_states)
    came_from = np.empty((length, n_states), dtype=np.int64)
    for t in range(1, length):
        for s in range(n_states):
            origin = 0
            for q in range(1, n_states):
                if best[q] + pairs[q, s] > best[origin] + pairs[origin, s]:
                    origin = q
            ahead[s] = best[origin] + pairs[origin, s] + local[t, s]
            came_from[t, s] = origin
        best[:] = ahead
    path[length - 1] = best.argmax()
    for t in range(length - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return best.max()


@njit(error_model="numpy")
def _most_violating(scores, pairs, labels, starts, losses, values, coef, explicit):
    """The most violating path of each sequence; see ``Violations`` for what is filled in."""
    n_states = scores.shape[1]
    for i in range(len(losses)):
        start, stop = starts[i], starts[i + 1]
        losses[i] = values[i] = 0.0
        length = stop - start
        if length == 0:
            continue
        local = scores[start:stop] + 1.0 / length
        for t in range(length):
            local[t, labels[start + t]] -= 1.0 / length
        path = np.empty(length, dtype=np.int64)
        values[i] = _viterbi(local, pairs, path)
        for t in range(length):
            right, wrong = labels[start + t], path[t]
            coef[start + t, right] += 1.0
            coef[start + t, wrong] -= 1.0
            losses[i] += (right != wrong) / length
            values[i] -= scores[start + t, right]
            if t > 0:
                before = labels[start + t - 1]
                values[i] -= pairs[before, right]
                explicit[i, before * n_states + right] += 1.0
                explicit[i, path[t - 1] * n_states + wrong] -= 1.0
