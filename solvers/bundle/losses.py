"""Losses of bundle methods: the value of a risk and one of its subgradients in the scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from marginbench.solvers.bundle.compiled import (
    balanced_hinge_pass,
    hinge_pass,
    logistic_pass,
    squared_hinge_pass,
    weighted_quantile,
)
from marginbench.solvers.numeric.matrices import matmul
from marginbench.solvers.numeric.validation import check_positive

# Slopes in the offset, a weighted mean, that are no more than rounding.
_FLAT = 1e-15


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
    ) -> tuple[float, np.ndarray, float]:
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
        float
            The minimum.
        ndarray of float64, shape (n,)
            A subgradient of it: one of the risk at b that sums to 0.
        float
            b.

        Raises
        ------
        ValueError
            If there is no minimum.
        """
        low, high = self._bracket(scores, y, weights, guess)
        slope_low, slope_high = low[2].sum(), high[2].sum()
        side = 0
        for _ in range(200):
            width = high[0] - low[0]
            # What the balanced plane may be off by is the product of slope and width.
            error = width * min(-low[2].sum(), high[2].sum())
            smallest = 4 * np.spacing(max(abs(low[0]), abs(high[0])))
            if width <= smallest or error <= _FLAT * low[1]:
                break
            # The secant with one slope halved each time that the same side moves (Illinois): quick
            # where the slope is smooth, and no slower than halving where it jumps.
            share = slope_low / (slope_low - slope_high)
            b = low[0] + min(max(share * width, 0.5 * smallest), width - 0.5 * smallest)
            point = b, *self.evaluate(scores + b, y, weights)
            slope = point[2].sum()
            if slope > 0:
                high, slope_high = point, slope
                slope_low *= 0.5 if side > 0 else 1.0
                side = 1
            else:
                low, slope_low = point, slope
                slope_high *= 0.5 if side < 0 else 1.0
                side = -1
        (b_low, v_low, g_low), (b_high, v_high, g_high) = low, high
        slope_low, slope_high = g_low.sum(), g_high.sum()
        share = slope_high / (slope_high - slope_low) if slope_high > slope_low else 1.0
        balanced = share * g_low + (1 - share) * g_high
        value, b = (v_low, b_low) if v_low <= v_high else (v_high, b_high)
        return value, balanced, b

    def _bracket(self, scores: Any, y: Any, weights: Any, guess: float) -> tuple[Any, Any]:
        """Offsets with slopes <= 0 and >= 0: (b, value, subgradient) of each."""
        first = guess, *self.evaluate(scores + guess, y, weights)
        slope = first[2].sum()
        if abs(slope) <= _FLAT:
            return first, first
        direction, near, step = -math.copysign(1.0, slope), first, 0.1
        while step < 1e15:
            b = guess + direction * step
            far = b, *self.evaluate(scores + b, y, weights)
            if far[2].sum() * slope <= 0:
                return (near, far) if slope < 0 else (far, near)
            near, step = far, 4 * step
        raise ValueError(f"the {type(self).__name__} risk has no minimum over the offset")


class Hinge(PointwiseLoss):
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

    def without_offset(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray, guess: float = 0.0
    ) -> tuple[float, np.ndarray, float]:
        """The minimum over the offset, exact: a weighted quantile of ``y - scores``.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        guess : float
            Not needed.
        """
        # Each breakpoint, of either class, raises the slope in b by its weight; far to the left the
        # slope is minus the weight of the positive class.
        breakpoints = y - scores
        target = float(matmul(weights, y > 0)) * (1 - 1e-14)
        b = float(weighted_quantile(breakpoints, weights, target))
        balanced = np.empty(len(scores))
        value = balanced_hinge_pass(scores, y, weights, breakpoints, b, balanced)
        return float(value), balanced, b


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
        small = np.exp(-np.abs(scores))
        return float(logistic_pass(scores, y, weights, small, gradient)), gradient


class Novelty(PointwiseLoss):
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
