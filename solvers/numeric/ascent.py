"""Dual coordinate ascent (HCL08), whatever holds w: exact steps, shrinking, the rules that end it.

The slope of a point is the derivative of the dual along its variable, 1 less the margin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from .compiling import njit
from .counters import Counters

#: Differences from the optimal margin that are not worth a step (LIBLINEAR's constant).
NO_STEP = 1e-12

_ASCENT_STATE = np.dtype(
    [
        ("active", np.int64),  # points that are left of the epoch
        ("highest", np.float64),  # the extreme slopes of this epoch
        ("lowest", np.float64),
        ("shrink_above", np.float64),  # thresholds from the last epoch
        ("shrink_below", np.float64),
    ]
)


class Ascent(ABC):
    """What dual ascents share: alpha, its bounds, the points in the order of an epoch."""

    def __init__(self, bounds: np.ndarray, counters: Counters, *, shrinking: bool) -> None:
        self.alpha, self.bounds, self.shrinking = np.zeros(len(bounds)), bounds, shrinking
        # A point without weight has alpha = 0 for good.
        self.order = np.flatnonzero(bounds > 0)
        self.state = np.zeros(1, dtype=_ASCENT_STATE)[0]
        self._begin_anew()
        self.counters = counters  # Charged by each look at all points, if that costs something
        self.n_iter = 0  # Draws done

    def _begin_anew(self) -> None:
        """Nothing is shrunk."""
        self.state["active"] = len(self.order)
        self.state["shrink_above"], self.state["shrink_below"] = np.inf, -np.inf

    @property
    def complete(self) -> bool:
        """Whether no point is left out at the moment."""
        return bool(self.state["active"] == len(self.order))

    def begin_epoch(self) -> int:
        """No slope has been met in this epoch; how many points are active."""
        self.state["highest"], self.state["lowest"] = -np.inf, np.inf
        return int(self.state["active"])

    def end_epoch(self, tol: float) -> float:
        """Set the thresholds of shrinking; bring all points back if those left are optimal.

        Returns how far the slopes that were met lie from 0 and from each other, if no point was
        left out.
        """
        highest, lowest = float(self.state["highest"]), float(self.state["lowest"])
        measure, complete = max(highest - lowest, highest, -lowest), self.complete
        if complete or measure > max(tol, NO_STEP):
            self.state["shrink_above"] = highest if highest > 0 else np.inf
            self.state["shrink_below"] = lowest if lowest < 0 else -np.inf
        else:
            self._begin_anew()
        return measure if complete else np.inf

    @property
    def knows_gap(self) -> bool:
        """Whether the gap is worth its price now."""
        return True

    @abstractmethod
    def margins(self) -> np.ndarray:
        """``y_i f(x_i)`` of all points."""

    @abstractmethod
    def gap(self) -> float:
        """Primal minus dual of all points, over the sum of the bounds; at most the violation."""

    def violation(self) -> float:
        """How far the projected slopes of all points lie from 0 and from each other."""
        slopes = 1.0 - self.margins()
        blocked = np.where(slopes > 0, self.alpha >= self.bounds, self.alpha <= 0)
        projected = np.where(blocked, 0.0, slopes)
        highest, lowest = projected.max(), projected.min()
        return float(max(highest - lowest, highest, -lowest))


@njit(error_model="numpy")
def best_value(alpha, slope, diag, bound):
    """The best value of one variable, if only it changed (HCL08 eq. 9, BSCA18 eq. 3)."""
    if diag > 0.0:
        return min(max(alpha + slope / diag, 0.0), bound)
    return bound if slope > 0.0 else 0.0


@njit(error_model="numpy")
def leaves(alpha, slope, bound, state):
    """Whether a point at its bound is left out: its slope points outward by more than any did."""
    at_zero, at_bound = alpha <= 0.0, alpha >= bound
    return (at_zero and slope < state.shrink_below) or (at_bound and slope > state.shrink_above)


@njit(error_model="numpy")
def meet(alpha, slope, bound, state):
    """The projected slope of a point that is visited, which counts for the epoch."""
    blocked = (alpha <= 0.0 and slope < 0.0) or (alpha >= bound and slope > 0.0)
    projected = 0.0 if blocked else slope
    state.highest = max(state.highest, projected)
    state.lowest = min(state.lowest, projected)
    return projected
