"""Dual coordinate ascent: the slopes met in an epoch, and which points the next one leaves out."""

from __future__ import annotations

import numpy as np

from .compiling import njit

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


def ascent_state(n_points: int) -> np.void:
    """The state of an ascent before its first epoch: nothing is shrunk."""
    state = np.zeros(1, dtype=_ASCENT_STATE)[0]
    state["active"], state["shrink_above"], state["shrink_below"] = n_points, np.inf, -np.inf
    return state


def violation(alpha: np.ndarray, bounds: np.ndarray, margins: np.ndarray) -> float:
    """The same measure of the slopes of all points at one and the same alpha.

    The duality gap over the sum of the bounds is no more than that.
    """
    slopes = 1.0 - margins
    blocked = np.where(slopes > 0, alpha >= bounds, alpha <= 0)
    projected = np.where(blocked, 0.0, slopes)
    highest, lowest = projected.max(), projected.min()
    return float(max(highest - lowest, highest, -lowest))


@njit(error_model="numpy")
def begin_epoch(state):
    """No slope has been met in this epoch of an ascent."""
    state.highest, state.lowest = -np.inf, np.inf


@njit(error_model="numpy")
def end_epoch(state, n_points, tol):
    """Set the thresholds of shrinking; bring all points back if those left are optimal."""
    measure = max(state.highest - state.lowest, state.highest, -state.lowest)
    complete = state.active == n_points
    if complete or measure > max(tol, NO_STEP):
        state.shrink_above = state.highest if state.highest > 0.0 else np.inf
        state.shrink_below = state.lowest if state.lowest < 0.0 else -np.inf
    else:
        state.active, state.shrink_above, state.shrink_below = n_points, np.inf, -np.inf
    return measure if complete else np.inf
