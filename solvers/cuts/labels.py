"""The structures of plain classification: two classes, and more."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric.validation import check_positive, check_whole
from .structure import StructuredProblem, Violations


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

    def argmax(self, scores: np.ndarray, weights: np.ndarray, target: Any = None) -> float:
        f = float(scores[0, 0]) + self.constant * float(weights.sum())
        if target is None:
            return 1.0 if f > 0 else -1.0
        return -target if 2 * self.scale * target * f < 1 else target

    def loss(self, target: float, output: float) -> float:
        return float(target != output)

    def psi(self, output: float, n_points: int) -> tuple[np.ndarray, np.ndarray]:
        explicit = np.full(self.n_explicit, self.scale * output * self.constant)
        return np.full((n_points, 1), self.scale * output), explicit

    def most_violating(
        self, scores: np.ndarray, weights: np.ndarray, targets: Any, starts: np.ndarray
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

    def argmax(self, scores: np.ndarray, weights: np.ndarray, target: Any = None) -> int:
        augmented = scores[0].copy()
        if target is not None:
            augmented += np.arange(self.n_channels) != target
        return int(augmented.argmax())

    def loss(self, target: int, output: int) -> float:
        return float(target != output)

    def psi(self, output: int, n_points: int) -> tuple[np.ndarray, np.ndarray]:
        coef = np.zeros((n_points, self.n_channels))
        coef[:, output] = 1.0
        return coef, np.empty(0)

    def most_violating(
        self, scores: np.ndarray, weights: np.ndarray, targets: Any, starts: np.ndarray
    ) -> Violations:
        rows = np.arange(len(targets))
        augmented = scores + 1.0
        augmented[rows, targets] -= 1.0
        outputs = augmented.argmax(axis=1)
        coef = np.zeros(scores.shape)
        coef[rows, targets] += 1.0
        coef[rows, outputs] -= 1.0
        values = augmented[rows, outputs] - scores[rows, targets]
        return Violations(
            (outputs != targets).astype(float),
            np.maximum(values, 0.0),
            coef,
            np.empty((len(rows), 0)),
        )
