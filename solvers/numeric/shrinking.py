"""Dual coordinate ascent: the slopes met in an epoch, and which points the next one leaves out."""

from __future__ import annotations

import numpy as np

from marginbench.solvers.numeric.compiling import njit

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


@njit(error_model="numpy")
def begin_epoch(state):
    """No slope has been met in this epoch of an ascent."""
    state.highest, state.lowest = -np.inf, np.inf


@njit(error_model="numpy")
def end_epoch(state, n_points, tol):
    """Set the thresholds of shrinking; bring all points back if those left are optimal.

    Parameters
    ----------
    state : record
        See :func:`ascent_state`.
    n_points : int
        All that take part.
    tol : float

    Returns
    -------
    float
        The largest less the smallest slope of the epoch; infinite if a point was left out.
    """
    spread, complete = state.highest - state.lowest, state.active == n_points
    if complete or spread > max(tol, NO_STEP):
        state.shrink_above = state.highest if state.highest > 0.0 else np.inf
        state.shrink_below = state.lowest if state.lowest < 0.0 else -np.inf
    else:
        state.active, state.shrink_above, state.shrink_below = n_points, np.inf, -np.inf
    return spread if complete else np.inf
