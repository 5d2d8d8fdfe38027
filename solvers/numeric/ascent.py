"""Dual coordinate ascent (HCL08), whatever holds w: exact steps, shrinking, the rules that end it.

The slope of a point is the derivative of the dual along its variable, 1 less the margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import njit
from .validation import check_flag, check_iteration_limit, check_one_of, check_positive

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


def check_ascent(solver: Any) -> None:
    """Raise ValueError for a parameter of a solver by dual ascent that is out of range."""
    check_positive("C", solver.C)
    check_one_of("order", solver.order, ("permutation", "iid"))
    check_one_of("stopping", solver.stopping, ("gap", "gradient"))
    check_flag("shrinking", solver.shrinking)
    check_iteration_limit(solver.max_epochs)
    if solver.order == "iid" and (solver.stopping != "gap" or solver.shrinking):
        raise ValueError(
            "order='iid' does not visit every point in an epoch: set stopping='gap' and "
            "shrinking=False"
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


def begin_epoch(state: np.void) -> None:
    """No slope has been met in this epoch of an ascent."""
    state["highest"], state["lowest"] = -np.inf, np.inf


def end_epoch(state: np.void, n_points: int, tol: float) -> float:
    """Set the thresholds of shrinking; bring all points back if those left are optimal.

    Returns how far the slopes that were met lie from 0 and from each other, if no point was left
    out.
    """
    highest, lowest = float(state["highest"]), float(state["lowest"])
    measure = max(highest - lowest, highest, -lowest)
    complete = bool(state["active"] == n_points)
    if complete or measure > max(tol, NO_STEP):
        state["shrink_above"] = highest if highest > 0 else np.inf
        state["shrink_below"] = lowest if lowest < 0 else -np.inf
    else:
        state["active"] = n_points
        state["shrink_above"], state["shrink_below"] = np.inf, -np.inf
    return measure if complete else np.inf


@njit(error_model="numpy")
def best_value(alpha, slope, diag, bound):
    """The best value of one variable, if only it changed (HCL08 eq. 9)."""
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
