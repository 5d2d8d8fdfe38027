"""Compiled loops of the linear methods over the rows of a dense or a CSR matrix.

Every loop takes ``rows``, a dense matrix or the three arrays of a CSR matrix, and is compiled for
each.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .compiling import njit
from .matrices import Matrix, squared_norms
from .row_access import (
    add,
    add_with_norm,
    dot,
    fetch,
    fetch_bounds,
    prefetch,
)
from .shrinking import NO_STEP

#: A dense matrix, or data, indices and indptr of a CSR matrix.
Rows = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]

# Points of an epoch are brought into the cache so many draws ahead; where a row begins, twice that.
_AHEAD = 3

# The scale of w = scale v stays above this: the sums of the average lose as many digits.
_SMALLEST_SCALE = 1e-5
# Probabilities do not sink to where they lose digits; no sum notices.
_LEAST_PROBABILITY = 1e-290

_SUBGRADIENT_STATE = np.dtype(
    [
        ("steps", np.float64),
        ("scale", np.float64),
        ("squared_norm", np.float64),  # of v
        ("scale_sum", np.float64),  # of the scales since v was last rescaled
    ]
)


def subgradient_state() -> np.void:
    """The state of a run of :func:`subgradient_steps` before its first step."""
    state = np.zeros(1, dtype=_SUBGRADIENT_STATE)[0]
    state["scale"] = 1.0
    return state


def row_arrays(X: Matrix) -> Rows:
    """What the loops below take for a dense or CSR matrix."""
    return (X.data, X.indices, X.indptr) if sparse.issparse(X) else X


def finite_squared_norms(X: Matrix) -> np.ndarray:
    """||x_i||^2, float64, shape (n,); ValueError if one overflows."""
    norms = _row_norms(X.data, X.indptr) if sparse.issparse(X) else squared_norms(X)
    if not np.isfinite(norms).all():
        raise ValueError("the squared norms of these points overflow float64: scale the features")
    return norms


@njit(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _row_norms(data, indptr):
    """The squared norms of the rows of a CSR matrix, float64, shape (n,)."""
    norms = np.empty(len(indptr) - 1)
    for i in range(len(norms)):
        total = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += np.float64(data[p]) * np.float64(data[p])
        norms[i] = total
    return norms


@njit(error_model="numpy")
def subgradient_steps(rows, y, factors, lam, radius, batches, v, correction, total, state):
    """Pegasos steps of these batches; w = state.scale v. All in place."""
    size = batches.shape[1]
    violators = np.empty(size, dtype=np.int64)
    for b in range(len(batches)):
        state.steps += 1.0
        t = state.steps
        # All margins of a batch belong to the same w.
        n_violators = 0
        for i in batches[b]:
            if y[i] * state.scale * dot(rows, i, v) < 1.0:
                violators[n_violators] = i
                n_violators += 1
        if t > 1.0:  # w = 0 at first
            state.scale *= 1.0 - 1.0 / t
        if state.scale < _SMALLEST_SCALE:
            _rescale(v, correction, total, state)
        for k in range(n_violators):
            i = violators[k]
            step = y[i] * factors[i] / (lam * t * size * state.scale)
            state.squared_norm += add_with_norm(rows, i, step, v)
            if len(total):
                add(rows, i, state.scale_sum * step, correction)
        norm = state.scale * np.sqrt(max(state.squared_norm, 0.0))
        if norm > radius:
            state.scale *= radius / norm
        state.scale_sum += state.scale


@njit(error_model="numpy")
def _rescale(v, correction, total, state):
    """Bring the scale back to 1, and the sum of the iterates up to date."""
    for j in range(len(total)):
        total[j] += state.scale_sum * v[j] - correction[j]
        correction[j] = 0.0
    state.scale_sum = 0.0
    squared_norm = 0.0
    for j in range(len(v)):
        v[j] *= state.scale
        squared_norm += v[j] * v[j]
    state.scale = 1.0
    state.squared_norm = squared_norm


@njit(error_model="numpy")
def ascent_steps(rows, y, diag, bounds, order, first, last, shrinking, alpha, w, state):
    """Exact dual coordinate steps for the positions from ``first`` on, in place."""
    position, done = first, 0
    while position < state.active and done < last:
        i = order[position]
        done += 1
        if position + 2 * _AHEAD < len(order):
            fetch_bounds(rows, order[position + 2 * _AHEAD])
        if position + _AHEAD < len(order):
            coming = order[position + _AHEAD]
            fetch(rows, coming)
            prefetch(y, coming)
            prefetch(diag, coming)
            prefetch(bounds, coming)
            prefetch(alpha, coming)
        # The derivative of the dual along alpha_i.
        slope = 1.0 - y[i] * dot(rows, i, w)
        at_zero, at_bound = alpha[i] <= 0.0, alpha[i] >= bounds[i]
        if shrinking and (
            (at_zero and slope < state.shrink_below) or (at_bound and slope > state.shrink_above)
        ):
            state.active -= 1
            end = state.active
            order[position], order[end] = order[end], order[position]
            continue
        position += 1
        if (at_zero and slope < 0.0) or (at_bound and slope > 0.0):
            projected = 0.0
        else:
            projected = slope
        state.highest = max(state.highest, projected)
        state.lowest = min(state.lowest, projected)
        if abs(projected) <= NO_STEP:
            continue
        if diag[i] > 0.0:
            target = min(max(alpha[i] + slope / diag[i], 0.0), bounds[i])
        else:
            target = bounds[i]
        add(rows, i, (target - alpha[i]) * y[i], w)
        alpha[i] = target
    return position, done


@njit(error_model="numpy")
def margins_of(rows, y, w):
    """y_i <w, x_i> of every point, float64, shape (n,)."""
    margins = np.empty(len(y))
    for i in range(len(y)):
        margins[i] = y[i] * dot(rows, i, w)
    return margins


@njit(error_model="numpy")
def primal_dual_steps(rows, columns, capacity, rate, step, draws, u, p, w_sum, p_sum):
    """SIMBA's steps on signed points ``z_i = y_i x_i`` with ``||z_i|| <= 1``, in place."""
    gains, near = np.empty(len(p)), np.empty(len(p))
    threshold, width = 0.0, 4.0 * rate
    for t in range(len(draws)):
        add(rows, _draw(p, draws[t, 0], False), step, u)
        squared_norm = 0.0
        for j in range(len(u)):
            squared_norm += u[j] * u[j]
        length = max(1.0, np.sqrt(squared_norm))
        for j in range(len(u)):
            w_sum[j] += u[j] / length
        # The threshold moves little from step to step: it is looked for near the last one first.
        before = threshold
        threshold = _fill_slacks(p, capacity, before, width, near, gains)
        if before > 0.0:
            width = max(0.9 * width, 4.0 * abs(threshold / before - 1.0))
        if squared_norm > 0.0:
            # One coordinate, drawn with probability w_j^2 / ||w||^2, estimates every <w, z_i>.
            j = _draw(u, draws[t, 1] * squared_norm, True)
            add(columns, j, squared_norm / (length * u[j]), gains)
        total = 0.0
        for i in range(len(p)):
            p_sum[i] += p[i]
            gain = rate * min(max(gains[i], -1.0 / rate), 1.0 / rate)
            p[i] = max(p[i] * (1.0 - gain + gain * gain), _LEAST_PROBABILITY)
            total += p[i]
        for i in range(len(p)):
            p[i] /= total


@njit(error_model="numpy")
def _draw(masses, level, squared):
    """The first index at which the running sum of the masses (or their squares) passes a level."""
    reached, found = 0.0, 0
    for j in range(len(masses)):
        mass = masses[j] * masses[j] if squared else masses[j]
        if mass > 0.0:
            found = j
            reached += mass
            if reached > level:
                break
    return found


@njit(error_model="numpy")
def _fill_slacks(p, capacity, guess, width, near, slacks):
    """The slacks in [0, 2] of sum at most ``capacity`` that maximise p'slacks.

    Returns the probability from which points have slack; ``guess`` is that of similar p, and
    ``near`` a buffer of the length of p.
    """
    n_full = int(min(capacity / 2.0, len(p)))
    if n_full == len(p) or capacity <= 0.0:
        slacks[:] = 2.0 if n_full == len(p) else 0.0
        return guess
    threshold = _kth_largest(p, n_full, guess * (1.0 - width), guess * (1.0 + width), near)
    left = capacity
    for i in range(len(p)):
        above = p[i] > threshold
        slacks[i] = 2.0 if above else 0.0
        left -= slacks[i]
    for i in range(len(p)):
        if p[i] == threshold:
            slacks[i] = min(left, 2.0)
            left -= slacks[i]
            if left <= 0.0:
                break
    return threshold


@njit(error_model="numpy")
def _kth_largest(p, k, low, high, near):
    """The value of rank k, from 0; quick if it lies between ``low`` and ``high``."""
    n_above, n_near = 0, 0
    for i in range(len(p)):
        n_above += p[i] > high
        if (p[i] <= high) & (p[i] >= low):
            near[n_near] = p[i]
            n_near += 1
    if n_above <= k < n_above + n_near:
        return _select(near[:n_near], k - n_above, 0.5 * (low + high))
    near[:] = p
    return _select(near, k, p[0])


@njit(error_model="numpy")
def _select(values, k, pivot):
    """The value of rank k, from 0, by counting: equal values, which are many, cost nothing."""
    while True:
        n_above, n_equal = 0, 0
        for i in range(len(values)):
            n_above += values[i] > pivot
            n_equal += values[i] == pivot
        if n_above <= k < n_above + n_equal:
            return pivot
        upper, kept = k < n_above, 0
        if not upper:
            k -= n_above + n_equal
        for i in range(len(values)):
            value = values[i]
            if (value > pivot) if upper else (value < pivot):
                values[kept] = value
                kept += 1
        values = values[:kept]
        first, middle, last = values[0], values[kept // 2], values[kept - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
