"""SBP12 Algorithm 1, compiled: the water, a draw of a point under it, the step, and the sums.

The lines that comments name are those of Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit
from ..numeric.water_level import water_level
from .two_basins import fill

#: What changes from one iteration to the next.
PROGRESS = np.dtype(
    [
        ("n_iter", np.int64),
        ("squared_norm", np.float64),  # of w
        # The mean response of a draw at the average w, the strong concavity there; 0 if unknown
        ("concavity", np.float64),
        ("level", np.float64),  # of a single basin
    ]
)


class State(NamedTuple):
    """w in the unit ball, its responses, their sums, and what the bound needs; changed in place."""

    signs: np.ndarray  # float32, shape (n,): The labels
    diag: np.ndarray  # float64, shape (n,)
    positive: np.ndarray  # bool, shape (n,)
    volume: float
    responses: np.ndarray  # float64, shape (n,): c_j = y_j <w, Phi_j>
    response_sum: np.ndarray
    alpha: np.ndarray  # float64, shape (n,)
    alpha_sum: np.ndarray
    progress: np.void  # record: See :data:`PROGRESS`
    groups: np.ndarray  # int64, shape (n,): Classes of which each has draws of its own
    # float32, shape (n_groups, n): y_i times the number of draws: exact, as far as whole numbers of
    # this type go
    signed_counts: np.ndarray
    # float64, shape (n_groups, n_groups): <v_g, v_h> for v_g = sum_{i in g} y_i count_i Phi_i
    products: np.ndarray
    n_draws: np.ndarray  # float64, shape (n_groups,)


@njit(error_model="numpy")
def iterate(state, basins, candidates, taken, rows, slots, radius, fast, drawn, is_drawn):
    """One iteration for each row of ``drawn``, where it puts its points.

    It ends early where a kernel row is not among ``rows`` (``slots[i]`` is -1): then the points of
    that iteration stand in ``drawn``, and the next call may begin with them (``is_drawn``). Returns
    how many were done, and the stream that has run out of candidates, or -1.
    """
    for t in range(len(drawn)):
        if not (is_drawn and t == 0):
            short = _draw(state, basins, candidates, taken, drawn[t])
            if short >= 0:
                return t, short
        for i in drawn[t]:
            if slots[i] < 0:
                return t, -1
        step = 1.0 / (radius * np.sqrt(state.progress.n_iter + 1))  # line 4
        if fast:
            # With w of length 1 a step shrinks it by the step times its response: as an SVM's step
            # does, regularised by the mean response.
            slope = state.progress.concavity * (state.progress.n_iter + 1)
            step = min(2 * step, 1.0 / slope) if slope > 0.0 else 2 * step
        _move(state, drawn[t], rows, slots, step)
    return len(drawn), -1


@njit(error_model="numpy")
def _draw(state, basins, candidates, taken, drawn):
    """A covered point of each stream into ``drawn`` (lines 5 and 6).

    By rejection sampling: uniform candidates are passed over until one is covered. At a tie for the
    k-th place of a class the first in the order of the points is covered. Returns the stream that
    has run out of candidates, or -1; then those before are rejected for good.
    """
    heights, positive = state.responses, state.positive
    end_up = end_down = len(heights)
    # Line 5: find_gamma, or find_gamma_and_bias. What None excludes is not compiled.
    if basins is None:
        up = down = state.progress.level = water_level(heights, state.volume, state.progress.level)
    else:
        fill(basins, heights)
        standing = basins.standing
        up, down = standing.last_positive, standing.last_negative
        if standing.tied_positive:
            end_up = _end_of_ties(heights, positive, True, up, standing.rank)
        if standing.tied_negative:
            end_down = _end_of_ties(heights, positive, False, down, standing.rank)
    # Line 6: j with c_j at most the level, or among the k lowest of its class.
    highest, after = max(up, down), taken.copy()
    for s in range(len(candidates)):
        points = candidates[s]
        p = taken[s]
        while p < len(points):
            i = points[p]
            if heights[i] <= highest:
                top, end = (up, end_up) if positive[i] else (down, end_down)
                if heights[i] < top or (heights[i] == top and i < end):
                    break
            p += 1
        if p == len(points):
            return s
        drawn[s], after[s] = points[p], p + 1
    # A slice would compile its error message for other lengths, which takes seconds.
    for s in range(len(candidates)):
        taken[s] = after[s]
    return -1


@njit(error_model="numpy")
def _end_of_ties(heights, positive, label, top, rank):
    """Where the first points of a class at its k-th height end that make up k covered ones."""
    missing = rank
    for i in range(len(heights)):
        missing -= positive[i] == label and heights[i] < top
    for i in range(len(heights)):
        if positive[i] == label and heights[i] == top:
            missing -= 1
            if missing == 0:
                return i + 1
    return 0


@njit(error_model="numpy")
def _move(state, drawn, rows, slots, step):
    """w <- w + step times the mean y_i Phi_i of the drawn one or two, back into the unit ball.

    Lines 7 to 13; ``rows[slots[i]]`` is the kernel row of point i.
    """
    responses, response_sum, signs = state.responses, state.response_sum, state.signs
    progress, diag = state.progress, state.diag
    share = step / len(drawn)
    i, j = drawn[0], drawn[-1]
    row, other = rows[slots[i]], rows[slots[j]]
    signed, other_signed = share * signs[i], share * signs[j]
    # Line 8, r_t^2; for the second point its response after the move towards the first.
    grown = progress.squared_norm + (2 * share * responses[i] + share * share * diag[i])
    if len(drawn) > 1:
        response = responses[j] + signs[j] * (signed * row[j])
        grown += 2 * share * response + share * share * diag[j]
    # Lines 11 and 12: back into the ball.
    factor = 1.0 / np.sqrt(grown) if grown > 1 else 1.0
    progress.squared_norm = min(grown, 1.0)
    progress.n_iter += 1
    # Lines 9 and 10 (eq. 3.4), line 12 for c, and its sum in line 13.
    if len(drawn) > 1:
        for k in range(len(responses)):
            moved = signed * row[k] + other_signed * other[k]
            responses[k] = factor * (responses[k] + signs[k] * moved)
            response_sum[k] += responses[k]
    else:
        for k in range(len(responses)):
            responses[k] = factor * (responses[k] + signs[k] * (signed * row[k]))
            response_sum[k] += responses[k]
    alpha, alpha_sum = state.alpha, state.alpha_sum
    for k in drawn:
        alpha[k] += share  # line 7
        _count_draw(state, k, rows[slots[k]])
    for k in range(len(alpha)):
        alpha[k] *= factor  # line 12
        alpha_sum[k] += alpha[k]  # line 13


@njit(error_model="numpy")
def _count_draw(state, i, row):
    """Count a draw of point i for the bound; its kernel row costs no evaluation."""
    group, sign = state.groups[i], state.signs[i]
    for other in range(len(state.signed_counts)):
        product = sign * _product(row, state.signed_counts[other])
        state.products[group, other] += product
        state.products[other, group] += product
    state.products[group, group] += state.diag[i]
    state.signed_counts[group, i] += sign
    state.n_draws[group] += 1


@njit(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _product(row, weights):
    total = 0.0
    for j in range(len(weights)):
        total += np.float64(row[j]) * np.float64(weights[j])
    return total
