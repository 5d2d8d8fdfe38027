"""The objectives and bounds of a bundle method, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# About so many iterations, evenly spread on a logarithmic axis, stand for all of a long run.
_MOST_NOTED = 200


@dataclass(frozen=True)
class BundleStep:
    """An iteration of a bundle method."""

    n_iter: int
    gamma: float  # J(w_t) less the lower bound of the optimum, in units of J
    epsilon: float  # The smallest J so far less the lower bound
    lower_bound: float


@dataclass(frozen=True)
class BundleTrace:
    """What each iterate was worth; entry t belongs to the iterate of iteration t, 0 to the start.

    Attributes
    ----------
    objective : ndarray of float64, shape (n_iter + 1,)
        J(w_t), the regularised risk.
    lower_bound : ndarray of float64, shape (n_iter + 1,)
        The minimum of the planes' bound, no larger than the optimum.
    """

    objective: np.ndarray
    lower_bound: np.ndarray

    @property
    def gamma(self) -> np.ndarray:
        """gamma_t = J(w_t) less the lower bound, shape (n_iter + 1,)."""
        return self.objective - self.lower_bound

    @property
    def epsilon(self) -> np.ndarray:
        """epsilon_t: the smallest objective so far less the lower bound, shape (n_iter + 1,)."""
        return np.minimum.accumulate(self.objective) - self.lower_bound

    def noted(self) -> list[BundleStep]:
        """The iterations that go into a run's record: the start, the last, and some 200 between."""
        last = len(self.objective) - 1
        spread = np.geomspace(1, max(last, 1), _MOST_NOTED).round().astype(int)
        gamma, epsilon = self.gamma, self.epsilon
        return [
            BundleStep(int(t), float(gamma[t]), float(epsilon[t]), float(self.lower_bound[t]))
            for t in np.unique(np.append(0, spread))
            if t <= last
        ]
