"""Structured outputs: what cutting planes must know of them, examples, and the usual structures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..numeric.compiling import njit
from ..numeric.validation import check_positive, check_whole

Array: TypeAlias = np.ndarray


@dataclass(frozen=True)
class Violations:
    """The most violating outputs of some examples, as numbers.

    With ``dPsi_i = Psi(x_i, y_i) - Psi(x_i, output_i)``, a loss function Delta and the weights w.

    Attributes
    ----------
    losses : ndarray of float64, shape (k,)
        Delta(y_i, output_i).
    values : ndarray of float64, shape (k,)
        ``Delta(y_i, output_i) - <w, dPsi_i>``, at least 0.
    coef : ndarray of float64, shape (n_points, n_channels)
        The part of dPsi_i under the kernel: its coefficients of ``phi(x_p)`` in each channel, for
        the points of the examples one after another.
    explicit : ndarray of float64, shape (k, n_explicit)
        The part of dPsi_i that is plain numbers.
    """

    losses: Array
    values: Array
    coef: Array
    explicit: Array


class StructuredProblem(ABC):
    """Outputs, their loss and their joint features with an input, in terms of kernel entries.

    An input is a sequence of points x_p. The weights have one part in the kernel's space for each
    of ``n_channels`` channels, and ``n_explicit`` plain numbers besides. Of an input a method
    knows the scores ``<w_s, phi(x_p)>`` of its points p in all channels s; the joint features of an
    output are coefficients of ``phi(x_p)`` in the channels, and plain numbers:

        <w, Psi(x, y)> = sum_ps psi_ps <w_s, phi(x_p)> + sum_q explicit_q w_q.

    A custom structure implements :meth:`argmax`, :meth:`loss` and :meth:`psi`. It holds no
    data. Structures that can treat many examples at a time override :meth:`most_violating`.
    """

    #: Numbers of scores for each point.
    n_channels: int = 1
    #: Numbers of weights outside of the kernel's space.
    n_explicit: int = 0
    #: The largest value of :meth:`loss`.
    max_loss: float = 1.0

    @abstractmethod
    def argmax(self, scores: Array, weights: Array, target: Any = None) -> Any:
        """The output of the highest score; with a target, of the highest loss plus score.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_points, n_channels)
            Of the points of one input.
        weights : ndarray of float64, shape (n_explicit,)
        target : object, optional
            The output against which the loss is taken; None for a prediction.
        """

    @abstractmethod
    def loss(self, target: Any, output: Any) -> float:
        """Delta(target, output), between 0 and ``max_loss``; 0 if they are the same."""

    @abstractmethod
    def psi(self, output: Any, n_points: int) -> tuple[Array, Array]:
        """Joint features of an output with an input of so many points.

        Coefficients of ``phi(x_p)`` in each channel, shape (n_points, n_channels); and the plain
        numbers, shape (n_explicit,).
        """

    def checked(self, targets: list[Any], sizes: Array) -> Any:
        """The training outputs as :meth:`most_violating` takes them, a list unless overridden.

        Parameters
        ----------
        targets : list
            The output of each example.
        sizes : ndarray of int64, shape (n,)
            Numbers of points of the examples.

        Raises
        ------
        ValueError
            For one that is no output.
        """
        return targets

    def most_violating(
        self, scores: Array, weights: Array, targets: Any, starts: Array
    ) -> Violations:
        """For each of some examples the output of the highest loss plus score.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_points, n_channels)
            Of the points of the examples one after another.
        weights : ndarray of float64, shape (n_explicit,)
        targets : sequence
            The output of each example.
        starts : ndarray of int64, shape (k + 1,)
            Example i has the points from ``starts[i]`` to ``starts[i + 1]``.
        """
        k = len(targets)
        losses, values = np.empty(k), np.empty(k)
        coef, explicit = np.empty(scores.shape), np.empty((k, self.n_explicit))
        for i, target in enumerate(targets):
            own = slice(starts[i], starts[i + 1])
            output = self.argmax(scores[own], weights, target)
            size = int(starts[i + 1] - starts[i])
            right, wrong = self.psi(target, size), self.psi(output, size)
            coef[own] = np.asarray(right[0]) - wrong[0]
            explicit[i] = np.asarray(right[1]) - wrong[1]
            losses[i] = self.loss(target, output)
            values[i] = losses[i] - (scores[own] * coef[own]).sum() - (weights * explicit[i]).sum()
        # The target itself has value 0: what is below is rounding, or an argmax that is none.
        return Violations(losses, np.maximum(values, 0.0), coef, explicit)


@dataclass(frozen=True)
class Examples:
    """Training outputs, whose points stand one after another in the order of the examples."""

    targets: Any  # The output of each example
    # int64, shape (n + 1,): Example i has the points from ``starts[i]`` to ``starts[i + 1]``
    starts: Array
    shares: Array  # float64, shape (n,): Weights of the examples' losses, of sum 1

    def __len__(self) -> int:
        return len(self.shares)

    @cached_property
    def _bounds(self) -> Array | None:
        """Sums of the shares up to each example; None if all are the same."""
        uniform = self.shares.min() == self.shares.max()
        return None if uniform else np.cumsum(self.shares)

    def draw(self, rng: np.random.Generator, size: int, among: Array | None = None) -> Array:
        """Positions drawn with replacement, by their shares; int64, shape (size,)."""
        bounds = self._bounds
        if bounds is None:
            return rng.integers(len(self) if among is None else len(among), size=size)
        if among is not None:
            bounds = np.cumsum(self.shares[among])
        positions = np.searchsorted(bounds, rng.random(size) * bounds[-1], side="right")
        # Rounding may put a number at the very end, behind the last share that is not zero.
        return np.minimum(positions, np.searchsorted(bounds, bounds[-1]))

    def take(self, index: Array) -> tuple[Array, Any, Array]:
        """The points of these examples, their targets, and where each one's points begin."""
        if isinstance(self.targets, Array):
            targets: Sequence[Any] | Array = self.targets[index]
        else:
            targets = [self.targets[i] for i in index]
        sizes = self.starts[index + 1] - self.starts[index]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        shift = np.repeat(self.starts[index] - starts[:-1], sizes)
        return np.arange(starts[-1]) + shift, targets, starts


class TwoClasses(StructuredProblem):
    """Labels -1 and +1 with ``Psi(x, y) = scale y phi(x)`` and the 0/1 loss; a point an example.

    The margin loss of a point is ``max(0, 1 - 2 scale y f(x))`` with ``f(x) = <w, phi(x)>``.

    Parameters
    ----------
    scale : float > 0, default=0.5
        With 1/2 the problem is the soft-margin SVM.
    constant : float >= 0, default=0.0
        Value of a constant feature, whose weight is a regularised bias; 0 for none.

    Raises
    ------
    ValueError
        For a parameter out of range.
    """

    def __init__(self, scale: float = 0.5, constant: float = 0.0) -> None:
        check_positive("scale", scale)
        check_positive("constant", constant, zero=True)
        self.scale = float(scale)
        self.constant = float(constant)
        self.n_explicit = 1 if constant else 0

    def argmax(self, scores: Array, weights: Array, target: Any = None) -> float:
        f = float(scores[0, 0]) + self.constant * float(weights.sum())
        if target is None:
            return 1.0 if f > 0 else -1.0
        return -target if 2 * self.scale * target * f < 1 else target

    def checked(self, targets: list[Any], sizes: Array) -> Array:
        if not all(target in (-1, 1) for target in targets):
            raise ValueError("TwoClasses takes the outputs -1 and 1")
        return np.array(targets, dtype=np.float64)

    def loss(self, target: float, output: float) -> float:
        return float(target != output)

    def psi(self, output: float, n_points: int) -> tuple[Array, Array]:
        explicit = np.full(self.n_explicit, self.scale * output * self.constant)
        return np.full((n_points, 1), self.scale * output), explicit

    def most_violating(
        self, scores: Array, weights: Array, targets: Any, starts: Array
    ) -> Violations:
        slope = 2 * self.scale * targets
        values = 1.0 - slope * (scores[:, 0] + self.constant * weights.sum())
        violating = values > 0
        coef = np.where(violating, slope, 0.0)[:, None]
        explicit = coef * np.full(self.n_explicit, self.constant)
        return Violations(violating.astype(float), np.maximum(values, 0.0), coef, explicit)


class MultiClass(StructuredProblem):
    """Classes 0 to n - 1 with ``Psi(x, y) = e_y phi(x)`` and the 0/1 loss; a point an example.

    The margin loss is that of Crammer and Singer, ``max_k (1[k != y] + f_k(x)) - f_y(x)``.

    Parameters
    ----------
    n_classes : int >= 2

    Raises
    ------
    ValueError
        For fewer than two classes.
    """

    def __init__(self, n_classes: int) -> None:
        check_whole("n_classes", n_classes, at_least=2)
        self.n_channels = int(n_classes)

    def argmax(self, scores: Array, weights: Array, target: Any = None) -> int:
        augmented = scores[0].copy()
        if target is not None:
            augmented += np.arange(self.n_channels) != target
        return int(augmented.argmax())

    def checked(self, targets: list[Any], sizes: Array) -> Array:
        return _numbers(self, targets)

    def loss(self, target: int, output: int) -> float:
        return float(target != output)

    def psi(self, output: int, n_points: int) -> tuple[Array, Array]:
        coef = np.zeros((n_points, self.n_channels))
        coef[:, output] = 1.0
        return coef, np.empty(0)

    def most_violating(
        self, scores: Array, weights: Array, targets: Any, starts: Array
    ) -> Violations:
        rows = np.arange(len(targets))
        augmented = scores + 1.0
        augmented[rows, targets] -= 1.0
        outputs = augmented.argmax(axis=1)
        coef = np.zeros(scores.shape)
        coef[rows, targets] += 1.0
        coef[rows, outputs] -= 1.0
        values = augmented[rows, outputs] - scores[rows, targets]
        losses, none = (outputs != targets).astype(float), np.empty((len(rows), 0))
        return Violations(losses, np.maximum(values, 0.0), coef, none)


def _numbers(structure: StructuredProblem, values: Any) -> Array:
    """Classes or states as numbers, int64, shape (k,); refuses others than the structure has."""
    numbers, n = np.asarray(values), structure.n_channels
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not np.isin(numbers, range(n)).all():
        raise ValueError(f"{type(structure).__name__}({n}) takes the numbers 0 to {n - 1}")
    return numbers.astype(np.int64)


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

    def argmax(self, scores: Array, weights: Array, target: Any = None) -> Array:
        local = np.array(scores, dtype=np.float64)
        if target is not None:
            local += 1.0 / len(local)
            local[np.arange(len(local)), np.asarray(target)] -= 1.0 / len(local)
        path = np.empty(len(local), dtype=np.int64)
        if len(path):
            _viterbi(local, self._pairs(weights), path)
        return path

    def checked(self, targets: list[Any], sizes: Array) -> list[Array]:
        states = [_numbers(self, target) for target in targets]
        if [len(each) for each in states] != sizes.tolist():
            raise ValueError("LinearChain takes a state for each point of an input")
        return states

    def loss(self, target: Any, output: Any) -> float:
        wrong = np.asarray(target) != output
        return float(wrong.mean()) if len(wrong) else 0.0

    def psi(self, output: Any, n_points: int) -> tuple[Array, Array]:
        output = np.asarray(output)
        coef = np.zeros((n_points, self.n_channels))
        coef[np.arange(n_points), output] = 1.0
        pairs = np.zeros((self.n_channels, self.n_channels))
        np.add.at(pairs, (output[:-1], output[1:]), 1.0)
        return coef, pairs.ravel()[: self.n_explicit]

    def most_violating(
        self, scores: Array, weights: Array, targets: Any, starts: Array
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

    def _pairs(self, weights: Array) -> Array:
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
        best, ahead = ahead, best
    last = 0
    for s in range(1, n_states):
        if best[s] > best[last]:
            last = s
    path[length - 1] = last
    for t in range(length - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return best[last]


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
