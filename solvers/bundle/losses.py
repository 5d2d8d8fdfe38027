"""Losses of bundle methods: the value of a risk and one of its subgradients in the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ..numeric.compiling import njit
from ..numeric.exponential import exponential, log_of_one_plus
from ..numeric.matrices import matmul
from ..numeric.validation import check_positive
from .offsets import (
    BestOffset,
    best_offset_by_slope,
    best_offset_of_kinks,
)

_SUMS = {"error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"}}


class Loss(ABC):
    """A convex risk R(s, y) of scores; derive from this class for a custom loss.

    It holds its parameters alone: the targets and weights come with each call.
    """

    #: No value is below; the bundle's first plane.
    lower_bound: ClassVar[float] = 0.0
    #: Takes points of different weights.
    supports_weights: ClassVar[bool] = True
    #: Takes labels -1 and +1, numbers, or classes 0, 1, ...
    targets: ClassVar[str] = "labels"

    @abstractmethod
    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The risk and a subgradient in the scores.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,) or (n, n_outputs)
        y : ndarray, shape (n,)
        weights : ndarray of float64, shape (n,)
            Factors >= 0 of the points, of sum 1.

        Returns
        -------
        float
        ndarray of float64, shape of ``scores``
        """

    def check(self, y: np.ndarray, weights: np.ndarray) -> None:
        """Raise ValueError for targets or weights that the loss cannot take.

        Parameters
        ----------
        y : ndarray, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        if self.targets == "labels" and not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError(f"{type(self).__name__} takes labels -1 and +1 alone")
        if not self.supports_weights and np.ptp(weights) > 1e-12 * weights.max():
            raise ValueError(f"{type(self).__name__} has no weights of points: give none")

    def n_outputs(self, y: np.ndarray) -> int:
        """How many scores a point has.

        Parameters
        ----------
        y : ndarray, shape (n,)
        """
        return 1


class PointwiseLoss(Loss):
    """A weighted mean of losses of one score each."""

    @abstractmethod
    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and derivatives (or subgradients) of the points, each of shape (n,).

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The weighted mean of the losses, and its subgradient.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        losses, slopes = self.pointwise(scores, y)
        return float(matmul(weights, losses)), weights * slopes

    def without_offset(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray, guess: float = 0.0
    ) -> BestOffset:
        """The minimum over b of the risk of ``scores + b``, a convex function of the scores.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        guess : float
            Where to look for b first.

        Returns
        -------
        BestOffset
            The minimum, a subgradient of it, and b.

        Raises
        ------
        ValueError
            If there is no minimum.
        """
        found = best_offset_by_slope(lambda b: self.evaluate(scores + b, y, weights), guess)
        if found is None:
            raise ValueError(f"the {type(self).__name__} risk has no minimum over the offset")
        return found


class PiecewiseLinearLoss(PointwiseLoss):
    """A pointwise loss whose slope in the score rises by 1 at each of some kinks.

    Its best offset is a weighted quantile. Where an interval of offsets is best, it is the middle
    of the interval, or the finite end of a half-line.
    """

    @abstractmethod
    def kinks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the slopes rise, and the slopes to the left of that.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)

        Returns
        -------
        ndarray of float64, shape (n, n_kinks)
            The kinks of each point's loss, as scores in rising order; the loss is 0 at the first.
        ndarray of float64, shape (n,)
            The slopes, <= 0.
        """

    def without_offset(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray, guess: float = 0.0
    ) -> BestOffset:
        """The minimum over the offset, exact.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        guess : float
            Not needed.
        """
        return best_offset_of_kinks(scores, *self.kinks(y), weights)


class Hinge(PiecewiseLinearLoss):
    """max(0, 1 - y s), the soft-margin loss."""

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and subgradients of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """
        slack = 1.0 - y * scores
        return np.maximum(0.0, slack), np.where(slack > 0, -y, 0.0)

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """As of every pointwise loss, in one compiled pass.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        subgradient = np.empty(len(scores))
        return float(hinge_pass(scores, y, weights, subgradient)), subgradient

    def kinks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score y, where the loss of a positive point ends and that of a negative one begins.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)
        """
        return y[:, None], np.where(y > 0, -1.0, 0.0)


class SquaredHinge(PointwiseLoss):
    """1/2 max(0, 1 - y s)^2; half of what LIBLINEAR sums."""

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and derivatives of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """
        slack = np.maximum(0.0, 1.0 - y * scores)
        return 0.5 * slack * slack, -y * slack

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """As of every pointwise loss, in one compiled pass.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        gradient = np.empty(len(scores))
        return float(squared_hinge_pass(scores, y, weights, gradient)), gradient


class Logistic(PointwiseLoss):
    """log(1 + exp(-y s))."""

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and derivatives of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """
        margins = y * scores
        small = np.exp(-np.abs(margins))
        losses = np.log1p(small) + np.maximum(0.0, -margins)
        return losses, -y * np.where(margins > 0, small, 1.0) / (1.0 + small)

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """As of every pointwise loss, in one compiled pass.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        gradient = np.empty(len(scores))
        return float(logistic_pass(scores, y, weights, gradient)), gradient


class Novelty(PiecewiseLinearLoss):
    """max(0, rho - s), without labels: points with scores below rho are novel.

    Parameters
    ----------
    rho : float > 0, default=1.0
        The score that all points should reach.
    """

    targets = "none"

    def __init__(self, rho: float = 1.0) -> None:
        check_positive("rho", rho)
        self.rho = float(rho)

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and subgradients of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray, shape (n,)
            Not looked at.
        """
        slack = self.rho - scores
        return np.maximum(0.0, slack), np.where(slack > 0, -1.0, 0.0)

    def kinks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score rho, where the loss ends.

        Parameters
        ----------
        y : ndarray, shape (n,)
            Only its length is looked at.
        """
        return np.full((len(y), 1), self.rho), np.full(len(y), -1.0)


class Multiclass(Loss):
    """max over classes c of 1[c != y] + s_c - s_y, one score for each class (Crammer, Singer)."""

    targets = "classes"

    def check(self, y: np.ndarray, weights: np.ndarray) -> None:
        """Raise ValueError unless the targets are whole numbers from 0 on.

        Parameters
        ----------
        y : ndarray, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        if y.dtype.kind not in "iu" or y.min() < 0:
            raise ValueError("Multiclass takes classes 0, 1, 2, ... as whole numbers")

    def n_outputs(self, y: np.ndarray) -> int:
        """The number of classes.

        Parameters
        ----------
        y : ndarray of int, shape (n,)
        """
        return int(y.max()) + 1

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The weighted mean of the losses, and its subgradient.

        Parameters
        ----------
        scores : ndarray of float64, shape (n, n_classes)
        y : ndarray of int, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        rows = np.arange(len(y))
        margins = scores + 1.0 - scores[rows, y][:, None]
        margins[rows, y] = 0.0
        worst = margins.argmax(axis=1)
        subgradient = np.zeros_like(scores)
        np.add.at(subgradient, (rows, worst), weights)
        np.add.at(subgradient, (rows, y), -weights)
        return float(matmul(weights, margins[rows, worst])), subgradient


@njit(**_SUMS)
def hinge_pass(scores, y, weights, subgradient):
    """Weighted sum of max(0, 1 - y s); the subgradient in place."""
    total = 0.0
    for i in range(len(scores)):
        slack = 1.0 - y[i] * scores[i]
        active = 1.0 if slack > 0.0 else 0.0
        total += weights[i] * slack * active
        subgradient[i] = -active * y[i] * weights[i]
    return total


@njit(**_SUMS)
def squared_hinge_pass(scores, y, weights, gradient):
    """Weighted sum of 1/2 max(0, 1 - y s)^2; the gradient in place."""
    total = 0.0
    for i in range(len(scores)):
        slack = max(0.0, 1.0 - y[i] * scores[i])
        total += 0.5 * weights[i] * slack * slack
        gradient[i] = -y[i] * weights[i] * slack
    return total


@njit(**_SUMS)
def logistic_pass(scores, y, weights, gradient):
    """Weighted sum of log(1 + exp(-y s)); the gradient in place. No exponential overflows."""
    total = 0.0
    for i in range(len(scores)):
        margin = y[i] * scores[i]
        small = exponential(-abs(margin))
        total += weights[i] * (max(-margin, 0.0) + log_of_one_plus(small))
        wrong = small if margin > 0.0 else 1.0
        gradient[i] = -y[i] * weights[i] * wrong / (1.0 + small)
    return total
