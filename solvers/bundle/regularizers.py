"""Regularisers of bundle methods, with what their dual needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ..numeric.matrices import matmul

# exp of more would overflow in a sum of squares; no minimum lies there.
_LARGEST_EXPONENT = 300.0


class Regularizer(ABC):
    """A convex function Omega of the weights, >= 0, that is 0 at the start of the method."""

    #: The inner solvers that can take it, the usual one first.
    inner: ClassVar[tuple[str, ...]]

    @abstractmethod
    def value(self, w: np.ndarray) -> float:
        """Omega(w)."""


class Legendre(Regularizer):
    """A strictly convex, smooth regulariser, known by its conjugate (BMRM07 section 3.3)."""

    inner: ClassVar[tuple[str, ...]] = ("line_search",)

    @abstractmethod
    def conjugate(self, mu: np.ndarray) -> float:
        """Omega*(mu) = sup over w of <mu, w> - Omega(w)."""

    @abstractmethod
    def primal(self, mu: np.ndarray) -> np.ndarray:
        """The w at which that is reached, the gradient of Omega*."""


class L2(Legendre):
    """1/2 ||w||^2."""

    inner = ("qp", "line_search")

    def value(self, w: np.ndarray) -> float:
        return 0.5 * float(matmul(w, w))

    def conjugate(self, mu: np.ndarray) -> float:
        return 0.5 * float(matmul(mu, mu))

    def primal(self, mu: np.ndarray) -> np.ndarray:
        return mu.copy()


class Entropy(Legendre):
    """sum_j w_j log w_j - w_j + 1 over w >= 0; it is 0 where all weights are 1."""

    def value(self, w: np.ndarray) -> float:
        return _negative_entropy(w) + float((1.0 - w).sum())

    def conjugate(self, mu: np.ndarray) -> float:
        return float(np.expm1(np.minimum(mu, _LARGEST_EXPONENT)).sum())

    def primal(self, mu: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(mu, _LARGEST_EXPONENT))


class SimplexEntropy(Legendre):
    """sum_j w_j log w_j + log dimension over w >= 0, sum w = 1; 0 where all weights are equal."""

    def value(self, w: np.ndarray) -> float:
        return _negative_entropy(w) + float(np.log(len(w)))

    def conjugate(self, mu: np.ndarray) -> float:
        top = mu.max()
        return float(top + np.log(np.exp(mu - top).mean()))

    def primal(self, mu: np.ndarray) -> np.ndarray:
        weights = np.exp(mu - mu.max())
        return weights / weights.sum()


class L1(Regularizer):
    """||w||_1; not strictly convex, so that the bounds on the number of iterations do not hold."""

    inner = ("lp",)

    def value(self, w: np.ndarray) -> float:
        return float(np.abs(w).sum())


def _negative_entropy(w: np.ndarray) -> float:
    """sum_j w_j log w_j, with 0 log 0 = 0."""
    return float((w * np.log(np.where(w > 0, w, 1.0))).sum())


REGULARIZERS: dict[str, type[Regularizer]] = {
    "l2": L2,
    "entropic": Entropy,
    "simplex_entropy": SimplexEntropy,
    "l1": L1,
}
