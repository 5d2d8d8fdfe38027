"""Losses of a whole ranking, which do not split into points: ROC area, precision at k, F1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from ..numeric.validation import check_positive, check_whole
from .losses import Loss


class ROCArea(Loss):
    """Mean of max(0, 1 - (s_i - s_j)) over positive points i and negative points j.

    The hinge bound of 1 minus the area under the ROC curve, in O(n log n). A pair has the product
    of its points' weights. An offset changes nothing.
    """

    def check(self, y: np.ndarray, weights: np.ndarray) -> None:
        """Raise ValueError unless both classes are there.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        super().check(y, weights)
        _check_both_classes(self, y, weights)

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The mean over the pairs, and its subgradient.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        # A pair has loss if the positive score less 1 is below the negative score.
        above, below = scores[positives] - 1.0, scores[negatives]
        weight_above = weights[positives] / weights[positives].sum()
        weight_below = weights[negatives] / weights[negatives].sum()
        by_above, by_below = np.argsort(above), np.argsort(below)
        sum_above = np.append(0.0, np.cumsum(weight_above[by_above]))
        sum_below = np.append(0.0, np.cumsum(weight_below[by_below]))
        lost_below = sum_above[np.searchsorted(above[by_above], below, side="left")]
        places = np.searchsorted(below[by_below], above, side="right")
        lost_above = sum_below[-1] - sum_below[places]
        subgradient = np.empty(len(scores))
        subgradient[negatives] = weight_below * lost_below
        subgradient[positives] = -weight_above * lost_above
        value = matmul(subgradient[negatives], below) + matmul(subgradient[positives], above)
        return float(max(0.0, value)), subgradient


class _TopRanked(Loss):
    """What the losses of sets of predicted positives share.

    ``R = max over sets P of Delta(P) + 2 scale (sum of the scores of P - those of the positives)``:
    for given numbers of true and false positives the worst P takes the highest scores.
    """

    supports_weights = False
    scale: float | None

    def check(self, y: np.ndarray, weights: np.ndarray) -> None:
        """Raise ValueError unless both classes are there, with equal weights.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        super().check(y, weights)
        _check_both_classes(self, y, weights)

    def _ranked(self, scores: np.ndarray, y: np.ndarray) -> tuple[Any, ...]:
        """Positions by falling score and running sums of scores, of each class."""
        found: list[np.ndarray] = []
        for sign in (1.0, -1.0):
            members = np.flatnonzero(y == sign)
            members = members[np.argsort(-scores[members], kind="stable")]
            found += [members, np.append(0.0, np.cumsum(scores[members]))]
        return tuple(found)

    def _factor(self, y: np.ndarray) -> float:
        """2 scale."""
        return 2.0 * (1.0 / len(y) if self.scale is None else self.scale)

    def _subgradient(
        self, y: np.ndarray, positives: np.ndarray, negatives: np.ndarray
    ) -> np.ndarray:
        """2 scale (indicator of these predicted positives less that of the positives)."""
        subgradient = np.where(y > 0, -1.0, 0.0)
        subgradient[positives] += 1.0
        subgradient[negatives] += 1.0
        return self._factor(y) * subgradient


class PrecisionAtK(_TopRanked):
    """1 minus the precision among k predicted positives, with its margin bound.

    ``max over sets P of k points of 1 - |P and positive| / k + scale sum_i (p_i - y_i) s_i``, p_i
    = +1 in P and -1 elsewhere; 0 where that is negative, which it can be unless k is the number of
    positive points. O(n log n).

    Parameters
    ----------
    k : int >= 1 or None, default=None
        How many points are predicted positive; None takes the number of positive ones.
    scale : float > 0 or None, default=None
        Factor of the scores; None takes 1 / n.
    """

    def __init__(self, k: int | None = None, scale: float | None = None) -> None:
        if k is not None:
            check_whole("k", k, at_least=1)
        if scale is not None:
            check_positive("scale", scale)
        self.k = k
        self.scale = scale

    def check(self, y: np.ndarray, weights: np.ndarray) -> None:
        """Raise ValueError for a single class, different weights, or a k above n.

        Parameters
        ----------
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
        """
        super().check(y, weights)
        if self.k is not None and self.k > len(y):
            raise ValueError(f"k must be at most the number of points, {len(y)}, got {self.k}")

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The risk and a subgradient.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
            All equal.
        """
        positives, sum_positive, negatives, sum_negative = self._ranked(scores, y)
        k = len(positives) if self.k is None else self.k
        true = np.arange(max(0, k - len(negatives)), min(k, len(positives)) + 1)
        gains = sum_positive[true] + sum_negative[k - true] - sum_positive[-1]
        values = 1.0 - true / k + self._factor(y) * gains
        best = int(values.argmax())
        if values[best] <= 0:
            return 0.0, np.zeros(len(scores))
        chosen = int(true[best])
        subgradient = self._subgradient(y, positives[:chosen], negatives[: k - chosen])
        return float(values[best]), subgradient


class F1(_TopRanked):
    """1 minus the F1 score of the predicted positives, with its margin bound.

    ``max over p of 1 - F1(p, y) + scale sum_i (p_i - y_i) s_i`` over all p in {-1, +1}^n. Takes
    O(n_positive n_negative) time.

    Parameters
    ----------
    scale : float > 0 or None, default=None
        Factor of the scores; None takes 1 / n.
    """

    def __init__(self, scale: float | None = None) -> None:
        if scale is not None:
            check_positive("scale", scale)
        self.scale = scale

    def evaluate(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The risk and a subgradient.

        Parameters
        ----------
        scores : ndarray of float64, shape (n,)
        y : ndarray of float64, shape (n,)
        weights : ndarray of float64, shape (n,)
            All equal.
        """
        positives, sum_positive, negatives, sum_negative = self._ranked(scores, y)
        value, true, false = _worst_table(sum_positive, sum_negative, self._factor(y))
        if value <= 0:
            return 0.0, np.zeros(len(scores))
        return float(value), self._subgradient(y, positives[:true], negatives[:false])


def _check_both_classes(loss: Loss, y: np.ndarray, weights: np.ndarray) -> None:
    for sign in (1.0, -1.0):
        if not weights[y == sign].any():
            raise ValueError(f"{type(loss).__name__} needs points of both labels, -1 and +1")


@njit(error_model="numpy")
def _worst_table(sum_positive, sum_negative, factor):
    """The largest value over all numbers of true and false positives, and these numbers."""
    n_positive = len(sum_positive) - 1
    best, chosen_true, chosen_false = -np.inf, 0, 0
    for true in range(n_positive + 1):
        gain = sum_positive[true] - sum_positive[n_positive]
        for false in range(len(sum_negative)):
            f1 = 2.0 * true / (true + false + n_positive)
            value = 1.0 - f1 + factor * (gain + sum_negative[false])
            if value > best:
                best, chosen_true, chosen_false = value, true, false
    return best, chosen_true, chosen_false
