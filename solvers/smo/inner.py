"""SMO on a working set with its kernel matrix in memory: compiled loops, without and with bias.

Selections look at whole arrays. The largest of many floats is found through their bits as whole
numbers, whose order is that of the floats: compilers vectorise that, and not a maximum of floats.
"""

from __future__ import annotations

import numpy as np

from ..numeric.ascent import best_value
from ..numeric.compiling import njit

# LIBSVM's curvature floor for a pair whose kernel is not positive definite.
TAU = 1e-12
# Reordering sums is harmless here; infinities are in use, so finiteness may not be assumed.
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}
_SIGN_FREE = np.int64(0x7FFFFFFFFFFFFFFF)
_LOWEST = np.int64(-0x8000000000000000)
_BLOCK = 256
# The stopping rule costs a pass: it is looked at every so many steps.
_CHECK_EVERY = 16


@njit(error_model="numpy")
def solve_pairs(K, m, alpha, F, y, C, diag, tol, max_steps):
    """Two variables at a time, by the second-order rule, until no pair violates by more than tol.

    FCL05 WSS 2 with y' alpha kept. Changes ``alpha`` and ``F`` (both of shape (m,)) in place.
    """
    # 0 where a variable may go up (down), else an infinity that takes it out of every maximum.
    not_up, not_down = np.empty_like(F), np.empty(m, np.float32)
    for t in range(m):
        _mark(t, alpha, y, C, not_up, not_down)
    reach = F + not_up
    narrow, own = F.itemsize == 4, diag.astype(np.float32)
    gain = np.empty(m, np.float32)
    steps = 0
    while steps < max_steps:
        if narrow:
            i = _largest_positive(reach.view(np.int32))
            if not reach[i] >= 0.0:
                i = _largest(reach.astype(np.float64).view(np.int64))
        else:
            i = _largest(reach.view(np.int64))
        if steps % _CHECK_EVERY == 0 and F[i] - _lowest(F, not_down) <= tol:
            break
        row_i = K[i, :m]
        _pair_gains(F, not_down, row_i, own, F[i], own[i], gain)
        j = _largest_positive(gain.view(np.int32))
        if not gain[j] > 0.0:
            break
        row_j = K[j, :m]
        curvature = diag[i] + diag[j] - 2.0 * row_i[j]
        step = move_pair(alpha, F, y, C, i, j, curvature)
        _mark(i, alpha, y, C, not_up, not_down)
        _mark(j, alpha, y, C, not_up, not_down)
        _subtract_pair(F, reach, not_up, row_i, row_j, F.dtype.type(step))
        steps += 1
    return steps


@njit(error_model="numpy")
def solve_singles(K, m, alpha, F, y, C, diag, tol, max_steps):
    """One variable at a time, the one of the largest exact gain, until none violates by > tol.

    Parameters and result as :func:`solve_pairs`, for the problem without bias.
    """
    gain = np.empty(m, np.float32)
    steps = 0
    while steps < max_steps:
        if steps % _CHECK_EVERY == 0 and _worst_single(alpha, F, y, C) <= tol:
            break
        _single_gains(alpha, F, y, C, diag, gain)
        i = _largest_positive(gain.view(np.int32))
        if not gain[i] > 0.0:
            break
        step = best_value(alpha[i], y[i] * F[i], diag[i], C[i]) - alpha[i]
        alpha[i] = min(max(alpha[i] + step, 0.0), C[i])
        _subtract_row(F, K[i, :m], step * y[i])
        steps += 1
    return steps


@njit(error_model="numpy")
def move_pair(alpha, F, y, C, i, j, curvature):
    """Solve for the pair (i up, j down) exactly; the step along y_i, -y_j."""
    if curvature <= 0.0:
        curvature = TAU
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


@njit(error_model="numpy", fastmath={"contract"}, nogil=True)
def subtract_rows(F, storage, slots, coef, start, stop):
    """F -= sum_p coef_p storage[slots_p], from column start to stop, with float64 sums."""
    width = 4096
    for begin in range(start, stop, width):
        end = min(begin + width, stop)
        part = F[begin:end]
        p = 0
        while p + 4 <= len(slots):
            a, b, c, d = coef[p], coef[p + 1], coef[p + 2], coef[p + 3]
            row_a, row_b = storage[slots[p], begin:end], storage[slots[p + 1], begin:end]
            row_c, row_d = storage[slots[p + 2], begin:end], storage[slots[p + 3], begin:end]
            for t in range(len(part)):
                part[t] -= a * row_a[t] + b * row_b[t] + c * row_c[t] + d * row_d[t]
            p += 4
        while p < len(slots):
            a = coef[p]
            row_a = storage[slots[p], begin:end]
            for t in range(len(part)):
                part[t] -= a * row_a[t]
            p += 1


@njit(error_model="numpy")
def _mark(t, alpha, y, C, not_up, not_down):
    """Note whether variable t may still move along +y (up) and along -y (down)."""
    below, above = alpha[t] < C[t], alpha[t] > 0.0
    up, down = (below, above) if y[t] > 0.0 else (above, below)
    not_up[t] = 0.0 if up else -np.inf
    not_down[t] = 0.0 if down else np.inf


@njit()
def _largest(bits):
    """First position of the largest float64, given as their bits."""
    top = _LOWEST
    for t in range(len(bits)):
        b = bits[t]
        top = max(top, b ^ ((b >> 63) & _SIGN_FREE))
    for start in range(0, len(bits), _BLOCK):
        found = 0
        for t in range(start, min(start + _BLOCK, len(bits))):
            b = bits[t]
            found += (b ^ ((b >> 63) & _SIGN_FREE)) == top
        if found:
            for t in range(start, len(bits)):
                b = bits[t]
                if (b ^ ((b >> 63) & _SIGN_FREE)) == top:
                    return t
    return 0


@njit()
def _largest_positive(bits):
    """First position of the largest float32, given as their bits; anywhere if all are < 0."""
    top = np.int32(-1)
    for t in range(len(bits)):
        top = max(top, bits[t])
    for start in range(0, len(bits), _BLOCK):
        found = 0
        for t in range(start, min(start + _BLOCK, len(bits))):
            found += bits[t] == top
        if found:
            for t in range(start, len(bits)):
                if bits[t] == top:
                    return t
    return 0


@njit()
def _lowest(F, not_down):
    """The smallest F among the variables that may go down."""
    low = np.inf
    for t in range(len(F)):
        low = min(low, F[t] + not_down[t])
    return low


@njit(error_model="numpy", fastmath=_FAST)
def _pair_gains(F, not_down, row_i, diag, F_i, diag_i, gain):
    """Second-order gain of each variable as the partner of i (FCL05 eq. 9); 0 for none."""
    zero, two, floor = np.float32(0.0), np.float32(2.0), np.float32(TAU)
    for t in range(len(F)):
        difference = max(np.float32(F_i - F[t]) - not_down[t], zero)
        curvature = max(diag_i + diag[t] - two * np.float32(row_i[t]), floor)
        gain[t] = difference * difference / curvature


@njit(error_model="numpy", fastmath=_FAST)
def _subtract_pair(F, reach, not_up, row_i, row_j, step):
    """F -= step (row_i - row_j), all in the type of F."""
    of_type = F.dtype.type
    for t in range(len(F)):
        value = of_type(F[t] - step * (of_type(row_i[t]) - of_type(row_j[t])))
        F[t] = value
        reach[t] = value + not_up[t]


@njit(error_model="numpy")
def _worst_single(alpha, F, y, C):
    """The largest violation of a condition without bias."""
    worst = 0.0
    for t in range(len(alpha)):
        slope = y[t] * F[t]
        if (slope > 0.0 and alpha[t] < C[t]) or (slope < 0.0 and alpha[t] > 0.0):
            worst = max(worst, abs(slope))
    return worst


@njit(error_model="numpy", fastmath=_FAST)
def _single_gains(alpha, F, y, C, diag, gain):
    """Exact gain of each variable's clipped step."""
    for t in range(len(alpha)):
        slope = y[t] * F[t]
        curvature = max(diag[t], 1e-300)
        step = min(max(alpha[t] + slope / curvature, 0.0), C[t]) - alpha[t]
        gain[t] = max(np.float32(step * (slope - 0.5 * step * curvature)), np.float32(0.0))


@njit(error_model="numpy", fastmath=_FAST)
def _subtract_row(F, row, coef):
    for t in range(len(F)):
        F[t] -= coef * row[t]
