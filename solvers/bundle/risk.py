"""The risk of a linear predictor: its value, its planes, and what they cost."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..numeric.counters import Counters
from ..numeric.matrices import Matrix, matmul
from .lines import pieces_along
from .losses import Loss, PiecewiseLinearLoss, PointwiseLoss
from .products import combination_of, scores_of


class Risk:
    """The risk of a linear predictor, as a function of w, and its planes."""

    def __init__(
        self,
        X: Matrix,
        y: np.ndarray,
        loss: Loss,
        weights: np.ndarray,
        offset: str | None,
        counters: Counters,
    ) -> None:
        if offset == "eliminated" and not isinstance(loss, PointwiseLoss):
            raise ValueError(
                f"the offset of {type(loss).__name__} cannot be eliminated: take offset='feature' "
                "or none"
            )
        self._X, self._y, self._loss = X, y, loss
        self._weights = weights / weights.sum()
        loss.check(y, self._weights)
        self._offset = offset
        self._counters = counters
        self._n_outputs = loss.n_outputs(y)
        #: Of the scores, at the last point.
        self.subgradient = np.zeros(0)
        self.value = 0.0
        #: The eliminated offset at the last w.
        self.minimizer = 0.0

    @property
    def dimension(self) -> int:
        """Length of w."""
        return (self._X.shape[1] + (self._offset == "feature")) * self._n_outputs

    def evaluate(self, w: np.ndarray) -> float:
        """The risk at w, from now on the point of :meth:`plane`."""
        return self.at(self.scores(w))

    def at(self, scores: np.ndarray) -> float:
        """The risk where the scores are these."""
        if self._offset == "eliminated":
            self.value, self.subgradient, self.minimizer = self._loss.without_offset(  # type: ignore[attr-defined]
                scores, self._y, self._weights, self.minimizer
            )
        else:
            self.value, self.subgradient = self._loss.evaluate(scores, self._y, self._weights)
        return self.value

    def plane(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """a and b of the plane ``<a, .> + b`` that touches the risk at w, the last point."""
        a = combination_of(self._X, self.subgradient)
        if self._offset == "feature":
            a = np.concatenate([a, self.subgradient.sum(axis=0, keepdims=True)])
        a = a.ravel()
        self._counters.inner_products += 1
        return a, self.value - float(matmul(a, w))

    def pieces_along(
        self, scores: np.ndarray, change: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray] | None:
        """The risk of ``scores + t change`` as a function of t > 0, piecewise linear."""
        if self._kinks is None:
            return None
        breakpoints, jumps = np.empty((2, self._kinks[0].size))
        slope, count = pieces_along(
            *self._kinks, self._weights, scores, change, breakpoints, jumps
        )  # fmt: skip
        return slope, breakpoints[:count], jumps[:count]

    @cached_property
    def _kinks(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self._offset == "eliminated" or not isinstance(self._loss, PiecewiseLinearLoss):
            return None
        return self._loss.kinks(self._y)

    def split(self, w: np.ndarray, minimizer: float) -> tuple[np.ndarray, Any]:
        """Weights and intercept of the predictor that w stands for."""
        weights, intercept = self._parts(w)
        if self._offset == "feature":
            return weights.copy(), intercept.copy()
        return weights.copy(), np.zeros(self._n_outputs) if self._n_outputs > 1 else minimizer

    def _parts(self, w: np.ndarray) -> tuple[np.ndarray, Any]:
        """Views of the weights of the features and of that of the constant one."""
        n_features = self._X.shape[1]
        weights = w.reshape(-1, self._n_outputs) if self._n_outputs > 1 else w
        return weights[:n_features], weights[n_features] if len(weights) > n_features else 0.0

    def scores(self, w: np.ndarray) -> np.ndarray:
        """The scores of the points."""
        weights, intercept = self._parts(w)
        if not w.any():
            return np.zeros((self._X.shape[0], *weights.shape[1:]))
        self._counters.inner_products += self._X.shape[0] * self._n_outputs
        scores = scores_of(self._X, weights)
        return scores + intercept if self._offset == "feature" else scores
