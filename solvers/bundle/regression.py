"""Losses of regression: of the residuals, score less target."""

from __future__ import annotations

import numpy as np

from ..numeric.matrices import matmul
from ..numeric.validation import check_positive
from .losses import PiecewiseLinearLoss, PointwiseLoss
from .offsets import BestOffset


class LeastSquares(PointwiseLoss):
    """1/2 (s - y)^2."""

    targets = "numbers"

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and derivatives of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """
        residuals = scores - y
        return 0.5 * residuals * residuals, residuals

    def without_offset(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray, guess: float = 0.0
    ) -> BestOffset:
        """The minimum over the offset: b is the mean residual.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        guess : float
            Not needed.
        """
        b = float(matmul(weights, y - scores) / weights.sum())
        return BestOffset(*self.evaluate(scores + b, y, weights), b)


class EpsilonInsensitive(PiecewiseLinearLoss):
    """max(0, |s - y| - epsilon).

    Parameters
    ----------
    epsilon : float >= 0, default=0.1
        Half the width of the tube without loss.
    """

    targets = "numbers"

    def __init__(self, epsilon: float = 0.1) -> None:
        check_positive("epsilon", epsilon, zero=True)
        self.epsilon = float(epsilon)

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and subgradients of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """
        residuals = scores - y
        excess = np.abs(residuals) - self.epsilon
        return np.maximum(0.0, excess), np.where(excess > 0, np.sign(residuals), 0.0)

    def kinks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the tube.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)
        """
        return np.stack([y - self.epsilon, y + self.epsilon], axis=1), np.full(len(y), -1.0)


class Quantile(PiecewiseLinearLoss):
    """tau (y - s) where the score is below the target, (1 - tau) (s - y) above.

    Parameters
    ----------
    tau : float, default=0.5
        The quantile estimated, between 0 and 1.

    Raises
    ------
    ValueError
        For another tau.
    """

    targets = "numbers"

    def __init__(self, tau: float = 0.5) -> None:
        check_positive("tau", tau)
        if tau >= 1:
            raise ValueError(f"tau must lie between 0 and 1, got {tau!r}")
        self.tau = float(tau)

    def pointwise(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and subgradients of the points.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        """
        residuals = scores - y
        slopes = np.where(residuals > 0, 1.0 - self.tau, np.where(residuals < 0, -self.tau, 0.0))
        return slopes * residuals, slopes

    def kinks(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The target.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)
        """
        return y[:, None], np.full(len(y), -self.tau)
