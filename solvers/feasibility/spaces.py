"""The interface of the space that y belongs to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from ..numeric.counters import Counters
from .problem import FeasibilityProblem
from .proofs import inseparability_proof


class Space(ABC):
    """A problem's products, counted as a textbook run counts them, and its exact bounds."""

    n: int  # Entries of x
    # What the space is of; None for points that are known by kernel
    # entries only
    problem: FeasibilityProblem | None = None
    counters: Counters
    matvecs: int = 0  # Products of a matrix with a vector so far
    noise: float = 1e-12  # What bounds from running sums may be off by

    @abstractmethod
    def separates(self, y: np.ndarray, low: float) -> bool:
        """Whether the y of these coefficients separates, by more than rounding. Not counted."""

    @abstractmethod
    def bounds(self, y: np.ndarray, x: np.ndarray, low: float, up: float) -> tuple[float, float]:
        """phi_lo(y) and phi_up(x), recomputed where that is possible. Not counted."""

    def rounded_up(self, up: float) -> float:
        """``||A x||`` as it may be where running sums say ``up``, beyond :attr:`noise`."""
        return up

    def inseparability_proof(self, x: np.ndarray) -> np.ndarray | None:
        """A point that proves that nothing separates, x if it does; None if none is known.

        Not counted.
        """
        return None if self.problem is None else inseparability_proof(self.problem, x)


class ElementSpace(Space):
    """A space whose elements are arrays that may be added and scaled."""

    size: int  # Length of the vectors that :meth:`normal_product` takes

    @abstractmethod
    def image(self, x: np.ndarray) -> np.ndarray:
        """The element A x, a fresh array."""

    @abstractmethod
    def responses(self, y: np.ndarray) -> np.ndarray:
        """A'y, shape (n,)."""

    @abstractmethod
    def inner(self, y: np.ndarray, z: np.ndarray) -> float:
        """<y, z>."""

    def norm(self, y: np.ndarray) -> float:
        """||y||."""
        return math.sqrt(max(self.inner(y, y), 0.0))

    @abstractmethod
    def column(self, j: int) -> np.ndarray:
        """The element A_j, a fresh array."""

    @abstractmethod
    def coefficients(self, y: np.ndarray) -> np.ndarray:
        """What a result shows of an element."""

    @abstractmethod
    def normal_product(self, v: np.ndarray) -> np.ndarray:
        """A A'v or A'A v, for the spectral norm of A."""

    @abstractmethod
    def smooth(self, y: np.ndarray, mu: float, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """weights = softmax(-A'y / mu), in place; the least of A'y, and the element A weights."""
