"""SMO on a working set with its kernel matrix in memory: one loop, without and with bias."""

from __future__ import annotations

import numpy as np

from ..numeric.ascent import best_value
from ..numeric.compiling import njit
from ..numeric.extremes import largest

# LIBSVM's curvature floor for a pair whose kernel is not positive definite.
TAU = 1e-12
# Reordering sums is harmless here; infinities are in use, so finiteness may not be assumed.
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}
# The stopping rule costs a pass: it is looked at every so many steps.
_CHECK_EVERY = 16


@njit(error_model="numpy")
def solve(K, alpha, F, y, C, diag, with_bias, tol, max_steps):
    """Two variables at a time until no condition is violated by more than tol.

    With a bias they are the pair of FCL05's second-order rule, which keeps y' alpha. Without one
    they are the variable of the largest exact gain and the one that adds most to it, solved for
    together (SHS11): one at a time would go to and fro between points that are close together.
    Changes ``alpha`` and ``F``, of shape (m,), in place; returns the steps.
    """
    m = len(F)
    # 0 where a variable may go up (down), else an infinity that takes it out of every maximum.
    not_up, not_down, reach = np.empty_like(F), np.empty_like(F), np.empty_like(F)
    gain, own, nothing = np.empty(m, np.float32), np.empty(m, np.float32), np.zeros_like(K[0])
    for t in range(m):
        _mark(t, alpha, y, C, not_up, not_down)
        reach[t], own[t] = F[t] + not_up[t], diag[t]
    steps = 0
    while steps < max_steps:
        if steps % _CHECK_EVERY == 0:
            # As in Dual.violation: with a bias FCL05's m(alpha) - M(alpha).
            highest, lowest = reach[largest(reach)], _lowest(F, not_down)
            if (highest - lowest if with_bias else max(highest, -lowest)) <= tol:
                break
        if with_bias:
            # FCL05: i is the highest F of those that may go up, j gains most with it.
            i = largest(reach)
            _pair_gains(F, not_down, K[i], own, F[i], own[i], gain)
        else:
            # SHS11: i gains most alone, j most beside it.
            _gains(alpha, F, y, C, diag, nothing, 0.0, 0.0, gain)
            i = largest(gain)
            if not gain[i] > 0.0:
                break
            alone = best_value(alpha[i], y[i] * F[i], diag[i], C[i])
            follows = 1.0 / diag[i] if 0.0 < alone < C[i] else 0.0
            _gains(alpha, F, y, C, diag, K[i], (alone - alpha[i]) * y[i], follows, gain)
            gain[i] = 0.0
        j = largest(gain)
        if gain[j] > 0.0:
            if with_bias:
                step_i = move_pair(alpha, F, y, C, i, j, diag[i] + diag[j] - 2.0 * K[i, j])
                step_j = -step_i
            else:
                step_i, step_j = _move_both(alpha, F, y, C, diag, i, j, y[i] * y[j] * K[i, j])
            _mark(j, alpha, y, C, not_up, not_down)
        elif with_bias:
            break
        else:
            # Nothing is gained beside i: it moves alone.
            step_i, step_j = (alone - alpha[i]) * y[i], 0.0
            alpha[i] = alone
        _mark(i, alpha, y, C, not_up, not_down)
        _subtract(F, reach, not_up, K[i], K[j], F.dtype.type(step_i))
        if not with_bias:
            _subtract(F, reach, not_up, K[j], nothing, F.dtype.type(step_i + step_j))
        steps += 1
    return steps


@njit(error_model="numpy")
def move_pair(alpha, F, y, C, i, j, curvature):
    """Solve for the pair (i up, j down) exactly; the step along y_i, -y_j."""
    curvature = curvature if curvature > 0.0 else TAU
    room_i = C[i] - alpha[i] if y[i] > 0.0 else alpha[i]
    room_j = alpha[j] if y[j] > 0.0 else C[j] - alpha[j]
    step = min((F[i] - F[j]) / curvature, room_i, room_j)
    # A clipped variable lands exactly on its bound: a rounding remainder would keep it free.
    if step >= room_i:
        alpha[i] = C[i] if y[i] > 0.0 else 0.0
    else:
        alpha[i] += y[i] * step
    if step >= room_j:
        alpha[j] = 0.0 if y[j] > 0.0 else C[j]
    else:
        alpha[j] -= y[j] * step
    return step


@njit(error_model="numpy")
def _move_both(alpha, F, y, C, diag, i, j, q_ij):
    """Solve for two variables exactly, each between its bounds; their steps along y."""
    slope_i, slope_j, old_i, old_j = y[i] * F[i], y[j] * F[j], alpha[i], alpha[j]
    determinant = diag[i] * diag[j] - q_ij * q_ij
    inside = determinant > TAU * diag[i] * diag[j]
    if inside:
        alpha[i] += (slope_i * diag[j] - slope_j * q_ij) / determinant
        alpha[j] += (slope_j * diag[i] - slope_i * q_ij) / determinant
        inside = 0.0 <= alpha[i] <= C[i] and 0.0 <= alpha[j] <= C[j]
    if not inside:
        # One of them ends at a bound, and the other where it is best beside it.
        most = -np.inf
        for side in range(4):
            if side < 2:
                new_i = side * C[i]
                new_j = best_value(old_j, slope_j - q_ij * (new_i - old_i), diag[j], C[j])
            else:
                new_j = (side - 2) * C[j]
                new_i = best_value(old_i, slope_i - q_ij * (new_j - old_j), diag[i], C[i])
            by_i, by_j = new_i - old_i, new_j - old_j
            gain = by_i * (slope_i - 0.5 * diag[i] * by_i - q_ij * by_j)
            gain += by_j * (slope_j - 0.5 * diag[j] * by_j)
            if gain > most:
                most, alpha[i], alpha[j] = gain, new_i, new_j
    return (alpha[i] - old_i) * y[i], (alpha[j] - old_j) * y[j]


@njit(error_model="numpy")
def _mark(t, alpha, y, C, not_up, not_down):
    """Note whether variable t may still move along +y (up) and along -y (down)."""
    below, above = alpha[t] < C[t], alpha[t] > 0.0
    up, down = (below, above) if y[t] > 0.0 else (above, below)
    not_up[t] = 0.0 if up else -np.inf
    not_down[t] = 0.0 if down else np.inf


@njit()
def _lowest(F, not_down):
    """The smallest F among the variables that may go down."""
    low = np.inf
    for t in range(len(F)):
        low = min(low, F[t] + not_down[t])
    return low


@njit(error_model="numpy", fastmath=_FAST)
def _pair_gains(F, not_down, row_i, diag, F_i, diag_i, gain):
    """Second-order gain of each variable as the partner of i (FCL05); 0 for none."""
    zero, two, floor = np.float32(0.0), np.float32(2.0), np.float32(TAU)
    for t in range(len(F)):
        difference = max(np.float32(F_i - F[t]) - not_down[t], zero)
        curvature = max(diag_i + diag[t] - two * np.float32(row_i[t]), floor)
        gain[t] = difference * difference / curvature


@njit(error_model="numpy", fastmath=_FAST)
def _subtract(F, reach, not_up, row_i, row_j, step):
    """F -= step (row_i - row_j), all in the type of F."""
    of_type = F.dtype.type
    for t in range(len(F)):
        value = of_type(F[t] - step * (of_type(row_i[t]) - of_type(row_j[t])))
        F[t] = value
        reach[t] = value + not_up[t]


@njit(error_model="numpy", fastmath=_FAST)
def _gains(alpha, F, y, C, diag, row_i, step_i, follows, gain):
    """Exact gain of each variable's clipped step, once variable i has moved by step_i along y_i.

    With ``follows``, 1 / Q_ii, i goes on to where it is best beside the step; with 0 it stays.
    """
    for t in range(len(alpha)):
        slope = y[t] * (F[t] - step_i * row_i[t])
        curvature = max(diag[t] - row_i[t] * row_i[t] * follows, TAU * diag[t], 1e-300)
        step = min(max(alpha[t] + slope / curvature, 0.0), C[t]) - alpha[t]
        gain[t] = max(np.float32(step * (slope - 0.5 * step * curvature)), np.float32(0.0))
