"""Structured outputs: what a cutting-plane method must know of them, and the training examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


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

    losses: np.ndarray
    values: np.ndarray
    coef: np.ndarray
    explicit: np.ndarray


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
    def argmax(self, scores: np.ndarray, weights: np.ndarray, target: Any = None) -> Any:
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
        """Delta(target, output), between 0 and ``max_loss``; 0 if they are the same.

        Parameters
        ----------
        target, output : object
        """

    @abstractmethod
    def psi(self, output: Any, n_points: int) -> tuple[np.ndarray, np.ndarray]:
        """Joint features of an output with an input of so many points.

        Parameters
        ----------
        output : object
        n_points : int

        Returns
        -------
        coef : ndarray, shape (n_points, n_channels)
            Coefficients of ``phi(x_p)`` in each channel.
        explicit : ndarray, shape (n_explicit,)
        """

    def most_violating(
        self, scores: np.ndarray, weights: np.ndarray, targets: Any, starts: np.ndarray
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
    starts: np.ndarray
    shares: np.ndarray  # float64, shape (n,): Weights of the examples' losses, of sum 1

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def n_points(self) -> int:
        """Number of points of all examples."""
        return int(self.starts[-1])

    @cached_property
    def _bounds(self) -> np.ndarray | None:
        """Sums of the shares up to each example; None if all are the same."""
        uniform = self.shares.min() == self.shares.max()
        return None if uniform else np.cumsum(self.shares)

    def draw(
        self, rng: np.random.Generator, size: int, among: np.ndarray | None = None
    ) -> np.ndarray:
        """Positions drawn with replacement, by their shares; int64, shape (size,)."""
        bounds = self._bounds
        if bounds is None:
            return rng.integers(len(self) if among is None else len(among), size=size)
        if among is not None:
            bounds = np.cumsum(self.shares[among])
        places = np.searchsorted(bounds, rng.random(size) * bounds[-1], side="right")
        # Rounding may put a number at the very end, behind the last share that is not zero.
        return np.minimum(places, np.searchsorted(bounds, bounds[-1]))

    def sizes(self, index: np.ndarray) -> np.ndarray:
        """Numbers of points of these examples."""
        return self.starts[index + 1] - self.starts[index]

    def take(self, index: np.ndarray) -> tuple[np.ndarray, Any, np.ndarray]:
        """The points of these examples, their targets, and where each one's points begin."""
        if isinstance(self.targets, np.ndarray):
            targets: Sequence[Any] | np.ndarray = self.targets[index]
        else:
            targets = [self.targets[i] for i in index]
        starts = np.concatenate(([0], np.cumsum(self.sizes(index))))
        shift = np.repeat(self.starts[index] - starts[:-1], np.diff(starts))
        return np.arange(starts[-1]) + shift, targets, starts
