"""The state of SBP between iterations: w, its average, and a bound by the draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit

_PROGRESS = [
    ("n_iter", np.int64),
    ("squared_norm", np.float64),  # of w
    # The mean response of a draw at the average w, the strong concavity there; 0 if unknown
    ("concavity", np.float64),
]


class State(NamedTuple):
    """What the iterations change, in compiled code."""

    signs: np.ndarray  # float32, shape (n,): The labels
    diag: np.ndarray  # float64, shape (n,)
    train: np.ndarray  # int64, shape (n_train,): The points that are not held out
    burn_in: int
    responses: np.ndarray  # float64, shape (n,): c_j = y_j <w, Phi_j>
    response_sum: np.ndarray
    heights: np.ndarray  # float64, shape (n_train,): A buffer for those of the training points
    alpha: np.ndarray  # float64, shape (n,)
    alpha_sum: np.ndarray
    progress: np.void  # record: see ``_PROGRESS``
    groups: np.ndarray  # int64, shape (n,): Classes of which each has draws of its own
    # float32, shape (n_groups, n): y_i times the number of draws: exact, as far as whole numbers of
    # this type go
    signed_counts: np.ndarray
    # float64, shape (n_groups, n_groups): <v_g, v_h> for v_g = sum_{i in g} y_i count_i Phi_i
    products: np.ndarray
    n_draws: np.ndarray  # float64, shape (n_groups,)


class Iterates:
    """w in the unit ball, its responses and their averages: all, or with ``suffix`` the last."""

    def __init__(
        self,
        y: np.ndarray,
        diag: np.ndarray,
        train: np.ndarray,
        groups: np.ndarray,
        burn_in: int,
        *,
        suffix: bool,
    ) -> None:
        n, n_groups = len(y), int(groups.max()) + 1
        self.responses = np.zeros(n)
        self.state = State(
            signs=y.astype(np.float32),
            diag=diag,
            train=train,
            burn_in=burn_in,
            responses=self.responses,
            response_sum=np.zeros(n),
            heights=np.empty(len(train)),
            alpha=np.zeros(n),
            alpha_sum=np.zeros(n),
            progress=np.zeros(1, dtype=_PROGRESS)[0],
            groups=groups,
            signed_counts=np.zeros((n_groups, n), dtype=np.float32),
            products=np.zeros((n_groups, n_groups)),
            n_draws=np.zeros(n_groups),
        )
        self._suffix = suffix
        # How many iterates the sums of the last two powers of 2 hold, and these sums.
        nothing = 0, np.zeros(n), np.zeros(n)
        self._left_out, self._next_left_out = nothing, nothing

    @property
    def n_iter(self) -> int:
        """Iterations done."""
        return int(self.state.progress["n_iter"])

    def until_keeping(self) -> float:
        """Iterations to the next one after which :meth:`keep_sums` has to be called."""
        if not self._suffix:
            return np.inf
        burn_in = self.state.burn_in
        return burn_in + 2 ** max(self.n_iter - burn_in, 0).bit_length() - self.n_iter

    def keep_sums(self) -> bool:
        """After an iteration: keep the sums, and say so, if they hold a power of 2 of iterates."""
        n_counted = self.n_iter - self.state.burn_in
        if not self._suffix or n_counted <= 0 or n_counted & (n_counted - 1) != 0:
            return False
        self._left_out = self._next_left_out
        sums = self.state.alpha_sum.copy(), self.state.response_sum.copy()
        self._next_left_out = n_counted, *sums
        return True

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """alpha and the responses, averaged; the last ones as long as nothing is to be averaged.

        With ``suffix`` the first 2^(k-1) of at least 2^k and fewer than 2^(k+1) iterates are left
        out: a quarter to a half.
        """
        n_counted = self.n_iter - self.state.burn_in
        if n_counted <= 0:
            return self.state.alpha.copy(), self.responses.copy()
        alpha, responses = self.state.alpha_sum, self.state.response_sum
        if not self._suffix:
            return alpha / n_counted, responses / n_counted
        n_left_out, alpha_before, responses_before = self._left_out
        n_counted -= n_left_out
        # A point drawn no more has no part in the difference of its sums but rounding.
        alpha = np.maximum(alpha - alpha_before, 0.0)
        return alpha / n_counted, (responses - responses_before) / n_counted

    def replace_responses(self, responses: np.ndarray) -> None:
        """Go on with responses of the same iterate that were computed afresh."""
        self.responses[:] = responses
        squared_norm = float(np.einsum("i,i", self.state.alpha, responses))
        if squared_norm > 1:
            factor = 1.0 / np.sqrt(squared_norm)
            self.state.alpha[:] *= factor
            self.responses *= factor
        self.state.progress["squared_norm"] = min(squared_norm, 1.0)

    def bound(self, volume: float, noise: float) -> float:
        """U(p) = ||sum_i p_i y_i Phi_i|| + volume max_i p_i >= max f, at the draws' frequencies p.

        Within a group p is proportional to the counts of the draws. The groups' masses are fixed:
        with an unregularised bias the bound holds only if both classes have the same mass.
        Infinite as long as a group has no draws. ``noise`` bounds the error of a kernel entry.
        """
        n_draws, products = self.state.n_draws, self.state.products
        if not n_draws.all():
            return float("inf")
        masses = 1.0 / (len(n_draws) * n_draws)
        squared_norm = float(np.einsum("g,gh,h", masses, products, masses))
        largest = float((np.abs(self.state.signed_counts).max(axis=1) * masses).max())
        return float(np.sqrt(max(squared_norm, 0.0) + noise)) + volume * largest


@njit(error_model="numpy")
def move(state, drawn, rows, slots, step):
    """w <- w + step times the mean y_i Phi_i of the drawn one or two, back into the unit ball.

    SBP12 Algorithm 1, lines 7 to 12, and the sums of line 13; ``rows[slots[i]]`` is the kernel row
    of point i.
    """
    responses, response_sum, signs = state.responses, state.response_sum, state.signs
    progress, diag = state.progress, state.diag
    share = step / len(drawn)
    i, j = drawn[0], drawn[-1]
    row, other = rows[slots[i]], rows[slots[j]]
    signed, other_signed = share * signs[i], share * signs[j]
    # Line 8; for the second point its response after the move towards the first.
    grown = progress.squared_norm + (2 * share * responses[i] + share * share * diag[i])
    if len(drawn) > 1:
        response = responses[j] + signs[j] * (signed * row[j])
        grown += 2 * share * response + share * share * diag[j]
    # Lines 11 and 12: back into the ball.
    factor = 1.0 / np.sqrt(grown) if grown > 1 else 1.0
    progress.squared_norm = min(grown, 1.0)
    progress.n_iter += 1
    counted = 1.0 if progress.n_iter > state.burn_in else 0.0
    if len(drawn) > 1:
        for k in range(len(responses)):
            moved = signed * row[k] + other_signed * other[k]
            responses[k] = factor * (responses[k] + signs[k] * moved)
            response_sum[k] += counted * responses[k]
    else:
        for k in range(len(responses)):
            responses[k] = factor * (responses[k] + signs[k] * (signed * row[k]))
            response_sum[k] += counted * responses[k]
    alpha, alpha_sum = state.alpha, state.alpha_sum
    for k in drawn:
        alpha[k] += share  # line 7
        _count_draw(state, k, rows[slots[k]])
    for k in range(len(alpha)):
        alpha[k] *= factor
        alpha_sum[k] += counted * alpha[k]  # line 13


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
