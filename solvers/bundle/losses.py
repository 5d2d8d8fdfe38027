"""Losses of bundle methods: the value of a risk and one of its subgradients in the scores.

Of points one by one, of labels (hinge and others) or numbers (regression), of classes, and of a
whole ranking (ROC area, precision at k, F1), which does not split into points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..numeric.compiling import njit
from ..numeric.exponential import exponential, log_of_one_plus
from ..numeric.matrices import matmul
from ..numeric.validation import check_positive, check_whole
from .offsets import BestOffset, best_offset_by_slope, best_offset_of_kinks

Array: TypeAlias = np.ndarray

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
    #: Takes points of both classes together.
    _ranks: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, scores: Array, y: Array, weights: Array) -> tuple[float, Array]:
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

    def check(self, y: Array, weights: Array) -> None:
        """Raise ValueError for targets or weights that the loss cannot take."""
        if self.targets == "labels" and not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError(f"{type(self).__name__} takes labels -1 and +1 alone")
        if not self.supports_weights and np.ptp(weights) > 1e-12 * weights.max():
            raise ValueError(f"{type(self).__name__} has no weights of points: give none")
        if self._ranks and not (weights[y > 0].any() and weights[y < 0].any()):
            raise ValueError(f"{type(self).__name__} needs points of both labels, -1 and +1")

    def n_outputs(self, y: Array) -> int:
        """How many scores a point has."""
        return 1


class PointwiseLoss(Loss):
    """A weighted mean of losses of one score each."""

    def pointwise(self, scores: Array, y: Array) -> tuple[Array, Array]:
        """Losses and derivatives (or subgradients) of the points, each of shape (n,).

        A loss defines this, or :meth:`evaluate` in one pass.
        """
        raise NotImplementedError

    #: Compiled: the risk of scores, y and weights, whose subgradient goes into the last argument.
    #: In NumPy a fit takes 1.1 to 1.6 times as long, with the logistic loss 2 times (adult,
    #: ijcnn1, reuters_moneyfx).
    _in_one_pass: ClassVar[Any] = None

    def evaluate(self, scores: Array, y: Array, weights: Array) -> tuple[float, Array]:
        if self._in_one_pass is not None:
            subgradient = np.empty(len(scores))
            return float(self._in_one_pass(scores, y, weights, subgradient)), subgradient
        losses, slopes = self.pointwise(scores, y)
        return float(matmul(weights, losses)), weights * slopes

    def without_offset(
        self, scores: Array, y: Array, weights: Array, guess: float = 0.0
    ) -> BestOffset:
        """The minimum over b of the risk of ``scores + b``, a subgradient of it in them, and b.

        It looks for b near ``guess`` first.

        Raises
        ------
        ValueError
            If there is no minimum.
        """
        best = best_offset_by_slope(lambda b: self.evaluate(scores + b, y, weights), guess)
        if best is None:
            raise ValueError(f"the {type(self).__name__} risk has no minimum over the offset")
        return best


class PiecewiseLinearLoss(PointwiseLoss):
    """A pointwise loss whose slope in the score rises by 1 at each of some kinks.

    Its best offset is a weighted quantile. Where an interval of offsets is best, it is the middle
    of the interval, or the finite end of a half-line.
    """

    @abstractmethod
    def kinks(self, y: Array) -> tuple[Array, Array]:
        """The scores at which each loss's slope rises, shape (n, n_kinks), in rising order.

        The loss is 0 at the first; and the slopes to the left of it, <= 0, shape (n,).
        """

    def without_offset(
        self, scores: Array, y: Array, weights: Array, guess: float = 0.0
    ) -> BestOffset:
        return best_offset_of_kinks(scores, *self.kinks(y), weights)


class Hinge(PiecewiseLinearLoss):
    """max(0, 1 - y s), the soft-margin loss."""

    @staticmethod
    @njit(**_SUMS)
    def _in_one_pass(scores, y, weights, subgradient):
        total = 0.0
        for i in range(len(scores)):
            slack = 1.0 - y[i] * scores[i]
            active = 1.0 if slack > 0.0 else 0.0
            total += weights[i] * slack * active
            subgradient[i] = -active * y[i] * weights[i]
        return total

    def kinks(self, y: Array) -> tuple[Array, Array]:
        return y[:, None], np.where(y > 0, -1.0, 0.0)


class SquaredHinge(PointwiseLoss):
    """1/2 max(0, 1 - y s)^2; half of what LIBLINEAR sums."""

    @staticmethod
    @njit(**_SUMS)
    def _in_one_pass(scores, y, weights, gradient):
        total = 0.0
        for i in range(len(scores)):
            slack = max(0.0, 1.0 - y[i] * scores[i])
            total += 0.5 * weights[i] * slack * slack
            gradient[i] = -y[i] * weights[i] * slack
        return total


class Logistic(PointwiseLoss):
    """log(1 + exp(-y s))."""

    @staticmethod
    @njit(**_SUMS)
    def _in_one_pass(scores, y, weights, gradient):
        total = 0.0
        for i in range(len(scores)):
            margin = y[i] * scores[i]
            # No exponential overflows.
            small = exponential(-abs(margin))
            total += weights[i] * (max(-margin, 0.0) + log_of_one_plus(small))
            wrong = small if margin > 0.0 else 1.0
            gradient[i] = -y[i] * weights[i] * wrong / (1.0 + small)
        return total


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

    def pointwise(self, scores: Array, y: Array) -> tuple[Array, Array]:
        slack = self.rho - scores
        return np.maximum(0.0, slack), np.where(slack > 0, -1.0, 0.0)

    def kinks(self, y: Array) -> tuple[Array, Array]:
        return np.full((len(y), 1), self.rho), np.full(len(y), -1.0)


class Multiclass(Loss):
    """max over classes c of 1[c != y] + s_c - s_y, one score for each class (Crammer, Singer).

    BMRM07 eq. 8 for classes, with the subgradient of eq. 9.
    """

    targets = "classes"

    def check(self, y: Array, weights: Array) -> None:
        if y.dtype.kind not in "iu" or y.min() < 0:
            raise ValueError("Multiclass takes classes 0, 1, 2, ... as whole numbers")
        if y.max() == 0:
            raise ValueError("Multiclass takes two classes or more, got only class 0")

    def n_outputs(self, y: Array) -> int:
        return int(y.max()) + 1

    def evaluate(self, scores: Array, y: Array, weights: Array) -> tuple[float, Array]:
        rows = np.arange(len(y))
        margins = scores + 1.0 - scores[rows, y][:, None]
        margins[rows, y] = 0.0
        worst = margins.argmax(axis=1)
        subgradient = np.zeros_like(scores)
        np.add.at(subgradient, (rows, worst), weights)
        np.add.at(subgradient, (rows, y), -weights)
        return float(matmul(weights, margins[rows, worst])), subgradient


class LeastSquares(PointwiseLoss):
    """1/2 (s - y)^2."""

    targets = "numbers"

    def pointwise(self, scores: Array, y: Array) -> tuple[Array, Array]:
        residuals = scores - y
        return 0.5 * residuals * residuals, residuals

    def without_offset(
        self, scores: Array, y: Array, weights: Array, guess: float = 0.0
    ) -> BestOffset:
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

    def pointwise(self, scores: Array, y: Array) -> tuple[Array, Array]:
        residuals = scores - y
        excess = np.abs(residuals) - self.epsilon
        return np.maximum(0.0, excess), np.where(excess > 0, np.sign(residuals), 0.0)

    def kinks(self, y: Array) -> tuple[Array, Array]:
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

    def pointwise(self, scores: Array, y: Array) -> tuple[Array, Array]:
        residuals = scores - y
        slopes = np.where(residuals > 0, 1.0 - self.tau, np.where(residuals < 0, -self.tau, 0.0))
        return slopes * residuals, slopes

    def kinks(self, y: Array) -> tuple[Array, Array]:
        return y[:, None], np.full(len(y), -self.tau)


class ROCArea(Loss):
    """Mean of max(0, 1 - (s_i - s_j)) over positive points i and negative points j.

    The hinge bound of 1 minus the area under the ROC curve, in O(n log n). A pair has the product
    of its points' weights. An offset changes nothing.
    """

    _ranks = True

    def evaluate(self, scores: Array, y: Array, weights: Array) -> tuple[float, Array]:
        positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        # A pair has loss if the positive score less 1 is below the negative score.
        above, below = scores[positives] - 1.0, scores[negatives]
        weight_above = weights[positives] / weights[positives].sum()
        weight_below = weights[negatives] / weights[negatives].sum()
        by_above, by_below = np.argsort(above), np.argsort(below)
        sum_above = np.append(0.0, np.cumsum(weight_above[by_above]))
        sum_below = np.append(0.0, np.cumsum(weight_below[by_below]))
        lost_below = sum_above[np.searchsorted(above[by_above], below, side="left")]
        ranks = np.searchsorted(below[by_below], above, side="right")
        lost_above = sum_below[-1] - sum_below[ranks]
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
    _ranks = True

    def __init__(self, scale: float | None = None) -> None:
        if scale is not None:
            check_positive("scale", scale)
        self.scale = scale

    def _ranked(self, scores: Array, y: Array) -> tuple[Any, ...]:
        """Positions by falling score and running sums of scores, of each class."""
        ranked: list[Array] = []
        for sign in (1.0, -1.0):
            members = np.flatnonzero(y == sign)
            members = members[np.argsort(-scores[members], kind="stable")]
            ranked += [members, np.append(0.0, np.cumsum(scores[members]))]
        return tuple(ranked)

    def _factor(self, y: Array) -> float:
        """2 scale."""
        return 2.0 * (1.0 / len(y) if self.scale is None else self.scale)

    def _subgradient(self, y: Array, positives: Array, negatives: Array) -> Array:
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
        self.k = k
        super().__init__(scale)

    def check(self, y: Array, weights: Array) -> None:
        super().check(y, weights)
        if self.k is not None and self.k > len(y):
            raise ValueError(f"k must be at most the number of points, {len(y)}, got {self.k}")

    def evaluate(self, scores: Array, y: Array, weights: Array) -> tuple[float, Array]:
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

    def evaluate(self, scores: Array, y: Array, weights: Array) -> tuple[float, Array]:
        positives, sum_positive, negatives, sum_negative = self._ranked(scores, y)
        value, true, false = _worst_table(sum_positive, sum_negative, self._factor(y))
        if value <= 0:
            return 0.0, np.zeros(len(scores))
        return float(value), self._subgradient(y, positives[:true], negatives[:false])


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


LOSSES: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "least_squares": LeastSquares,
    "epsilon_insensitive": EpsilonInsensitive,
    "quantile": Quantile,
    "novelty": Novelty,
    "multiclass": Multiclass,
    "roc_area": ROCArea,
    "precision_at_k": PrecisionAtK,
    "f1": F1,
}
