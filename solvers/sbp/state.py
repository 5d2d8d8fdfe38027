"""The state of SBP between iterations: the iterate, its average, and a bound by the draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..numeric.compiling import njit

_PROGRESS = [
    ("n_iter", np.int64),
    ("squared_norm", np.float64),
    ("scale", np.float64),
    ("weight", np.float64),
]


class PathState(NamedTuple):
    """The iterate and the sums over the iterates, see :class:`Path`; compiled code changes it.

    alpha is ``scale * values``. Since a value of the scale holds for all points at once, the sum of
    alpha over the iterations is ``total + weight * values - lag`` at O(1) in an iteration,
    with the weight the sum of the scales so far; ``lag`` corrects for what was added to the values
    later. Both are folded into plain numbers before the scale gets small, so that no digits cancel.
    """

    signs: np.ndarray  # float32, shape (n,): The labels
    diag: np.ndarray  # float64, shape (n,)
    burn_in: int
    responses: np.ndarray  # float64, shape (n,)
    response_sum: np.ndarray
    values: np.ndarray  # float64, shape (n,)
    lag: np.ndarray
    total: np.ndarray
    progress: np.void  # record: ``n_iter``; ``squared_norm``, that of w; ``scale`` and ``weight``


class Path:
    """The iterate w in the unit ball, its responses c_j = y_j <w, Phi_j>, and their averages."""

    def __init__(
        self, y: np.ndarray, diag: np.ndarray, burn_in: int = 0, *, suffix: bool = False
    ) -> None:
        n = len(y)
        self.y = y
        self.diag = diag
        self.burn_in = burn_in
        self.responses = np.zeros(n)
        progress = np.array([(0, 0.0, 1.0, 0.0)], dtype=_PROGRESS)[0]
        self.state = PathState(
            signs=y.astype(np.float32),
            diag=diag,
            burn_in=burn_in,
            responses=self.responses,
            response_sum=np.zeros(n),
            values=np.zeros(n),
            lag=np.zeros(n),
            total=np.zeros(n),
            progress=progress,
        )
        self._suffix = suffix
        # How many iterates the sums of the last two powers of 2 hold, and these sums.
        nothing = 0, np.zeros(n), np.zeros(n)
        self._left_out, self._next_left_out = nothing, nothing

    @property
    def n_iter(self) -> int:
        """Iterations done."""
        return int(self.state.progress["n_iter"])

    @property
    def squared_norm(self) -> float:
        """||w||^2."""
        return float(self.state.progress["squared_norm"])

    @squared_norm.setter
    def squared_norm(self, value: float) -> None:
        self.state.progress["squared_norm"] = value

    def alpha(self) -> np.ndarray:
        """alpha, a fresh array of shape (n,)."""
        return np.asarray(self.state.progress["scale"] * self.state.values)

    def alpha_sum(self) -> np.ndarray:
        """The sum of alpha over the iterations that count, a fresh array of shape (n,)."""
        state, weight = self.state, self.state.progress["weight"]
        return np.asarray(state.total + (weight * state.values - state.lag))

    def move(self, drawn: Sequence[int], rows: Sequence[np.ndarray], step: float) -> None:
        """w <- projection on the unit ball of w + step times the mean y_i Phi_i of the drawn i."""
        if len(drawn) == 1:
            move_one(self.state, drawn[0], rows[0], step)
        else:
            move_two(self.state, drawn[0], drawn[1], rows[0], rows[1], step)
        self.mark()

    def until_mark(self) -> float:
        """Iterations to the next one after which :meth:`mark` has to be called."""
        if not self._suffix:
            return np.inf
        n_counted = max(self.n_iter - self.burn_in, 0)
        return self.burn_in + 2 ** n_counted.bit_length() - self.n_iter

    def mark(self) -> None:
        """After an iteration: keep the sums if the number of iterates in them is a power of 2."""
        n_counted = self.n_iter - self.burn_in
        if self._suffix and n_counted > 0 and n_counted & (n_counted - 1) == 0:
            self._left_out = self._next_left_out
            sums = self.alpha_sum(), self.state.response_sum.copy()
            self._next_left_out = n_counted, *sums

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """alpha and the responses, averaged; the last ones as long as nothing is to be averaged.

        With ``suffix`` the first 2^(k-1) of at least 2^k and fewer than 2^(k+1) iterates are left
        out: a quarter to a half.
        """
        n_counted = self.n_iter - self.burn_in
        if n_counted <= 0:
            return self.alpha(), self.responses.copy()
        alpha, responses = self.alpha_sum(), self.state.response_sum
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
        self.squared_norm = float(np.einsum("i,i", self.alpha(), responses))
        if self.squared_norm > 1:
            factor = 1.0 / np.sqrt(self.squared_norm)
            _shrink(self.state, factor)
            self.responses *= factor
            self.squared_norm = 1.0


class BoundState(NamedTuple):
    """What the draws so far add up to, see :class:`DrawBound`; compiled code changes it."""

    signs: np.ndarray  # float32, shape (n,): The labels
    diag: np.ndarray  # float64, shape (n,)
    groups: np.ndarray  # int64, shape (n,)
    # float32, shape (n_groups, n): y_i times the number of draws: exact, as far as whole numbers of
    # this type go
    signed_counts: np.ndarray
    # float64, shape (n_groups, n_groups): <v_g, v_h> for v_g = sum_{i in g} y_i count_i Phi_i
    products: np.ndarray
    totals: np.ndarray  # float64, shape (n_groups,): Draws


class DrawBound:
    """U(p) = ||sum_i p_i y_i Phi_i|| + volume max_i p_i >= max f, at the draws' frequencies p.

    Within a group of points p is proportional to the counts of the draws. The groups' masses are
    fixed: with an unregularised bias the bound holds only if both classes have the same mass.
    """

    def __init__(self, y: np.ndarray, diag: np.ndarray, groups: np.ndarray, volume: float) -> None:
        n_groups = int(groups.max()) + 1
        self._volume = volume
        self.state = BoundState(
            signs=y.astype(np.float32),
            diag=diag,
            groups=groups,
            signed_counts=np.zeros((n_groups, len(y)), dtype=np.float32),
            products=np.zeros((n_groups, n_groups)),
            totals=np.zeros(n_groups),
        )

    def value(self) -> float:
        """U(p); infinite as long as a group has no draws."""
        totals, products = self.state.totals, self.state.products
        if not totals.all():
            return float("inf")
        masses = 1.0 / (len(totals) * totals)
        squared_norm = float(np.einsum("g,gh,h", masses, products, masses))
        largest = float((np.abs(self.state.signed_counts).max(axis=1) * masses).max())
        return float(np.sqrt(max(squared_norm, 0.0))) + self._volume * largest


@njit(error_model="numpy")
def _add(path, i, amount):
    """alpha_i += amount."""
    added = amount / path.progress.scale
    path.values[i] += added
    path.lag[i] += added * path.progress.weight


@njit(error_model="numpy")
def _shrink(path, factor):
    """alpha *= factor, for a factor of at most 1."""
    progress = path.progress
    progress.scale *= factor
    if progress.scale < 0.5:
        values, lag, total = path.values, path.lag, path.total
        for i in range(len(values)):
            total[i] += progress.weight * values[i] - lag[i]
            values[i] *= progress.scale
            lag[i] = 0.0
        progress.scale, progress.weight = 1.0, 0.0


@njit(error_model="numpy")
def move_one(path, i, row, step):
    """:meth:`Path.move` towards one point: lines 7 to 13 of SBP12 Algorithm 1."""
    grown = _grown(path, i, path.responses[i], path.progress.squared_norm, step)
    factor, counted = _begin(path, grown)
    signed = step * path.signs[i]
    _move_one(path.responses, path.response_sum, path.signs, row, signed, factor, counted)
    _add(path, i, step)
    _end(path, factor, counted)


@njit(error_model="numpy")
def move_two(path, i, j, row, other_row, step):
    """:meth:`Path.move` towards two points, half as far towards each."""
    responses, signs = path.responses, path.signs
    share = step / 2
    signed, other_signed = share * signs[i], share * signs[j]
    grown = _grown(path, i, responses[i], path.progress.squared_norm, share)
    # The response after the move towards the first.
    grown = _grown(path, j, responses[j] + signs[j] * (signed * row[j]), grown, share)
    factor, counted = _begin(path, grown)
    _move_two(
        responses, path.response_sum, signs, row, other_row, signed, other_signed, factor, counted
    )
    _add(path, i, share)
    _add(path, j, share)
    _end(path, factor, counted)


@njit(error_model="numpy")
def _grown(path, i, response, squared_norm, share):
    """||w||^2 after a step to a point with this response (SBP12 Algorithm 1, line 8)."""
    return squared_norm + (2 * share * response + share * share * path.diag[i])


@njit(error_model="numpy")
def _begin(path, grown):
    """Count an iteration; the factor that leads back into the ball, and 1 if w is averaged.

    SBP12 Algorithm 1, lines 11 and 12.
    """
    progress = path.progress
    progress.n_iter += 1
    progress.squared_norm = min(grown, 1.0)
    factor = 1.0 / np.sqrt(grown) if grown > 1 else 1.0
    return factor, 1.0 if progress.n_iter > path.burn_in else 0.0


@njit(error_model="numpy")
def _end(path, factor, counted):
    if factor < 1:
        _shrink(path, factor)
    if counted > 0:
        path.progress.weight += path.progress.scale


@njit(error_model="numpy")
def _move_one(responses, response_sum, signs, row, signed, factor, counted):
    for j in range(len(responses)):
        responses[j] = factor * (responses[j] + signs[j] * (signed * row[j]))
        response_sum[j] += counted * responses[j]


@njit(error_model="numpy")
def _move_two(
    responses, response_sum, signs, row, other_row, signed, other_signed, factor, counted
):
    for j in range(len(responses)):
        moved = signed * row[j] + other_signed * other_row[j]
        responses[j] = factor * (responses[j] + signs[j] * moved)
        response_sum[j] += counted * responses[j]


@njit(error_model="numpy")
def add_draw(bound, i, row):
    """Count a draw of point i, whose kernel row is given; costs no evaluation."""
    group, sign = bound.groups[i], bound.signs[i]
    for other in range(len(bound.signed_counts)):
        product = sign * _product(row, bound.signed_counts[other])
        bound.products[group, other] += product
        bound.products[other, group] += product
    bound.products[group, group] += bound.diag[i]
    bound.signed_counts[group, i] += sign
    bound.totals[group] += 1


@njit(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _product(row, weights):
    total = 0.0
    for j in range(len(weights)):
        total += np.float64(row[j]) * np.float64(weights[j])
    return total
