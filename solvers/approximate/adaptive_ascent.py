"""Dual coordinate ascent on dense features at adaptive frequencies, with shrinking."""

from __future__ import annotations

import numpy as np

from ..kernels.scoring import linear_scores
from ..numeric.ascent import NO_STEP, Ascent, best_value
from ..numeric.compiling import njit
from ..numeric.counters import Counters
from ..numeric.matrices import matmul, squared_norms
from ..numeric.rows import dot

# GD13: how fast preferences follow the gains, and their range.
_RATE, _LEAST, _MOST = 0.2, 1.0 / 20.0, 20.0
# The part of a visit that a point has at the start.
_HALF = 0.5
# A point is left out after so many visits without a step (the released program of G22).
_IDLE_VISITS = 5
# All points are looked at after so many draws, in units of n (the same).
_LOOK_AFTER = 4

_STATE = np.dtype(
    [
        ("mean_gain", np.float64),  # running mean of the rise of the dual in a draw; 0 at first
        ("violation", np.float64),  # the largest of the draws since the last look
    ]
)


class AdaptiveAscent(Ascent):
    """An ascent on ``sum_i alpha_i - 1/2 ||w||^2``, ``w = sum_i alpha_i y_i features_i``."""

    def __init__(
        self,
        features: np.ndarray,
        y: np.ndarray,
        bounds: np.ndarray,
        *,
        adaptive: bool,
        shrinking: bool,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(bounds, Counters(), shrinking=shrinking)
        n, n_features = features.shape
        self.features, self.y, self.adaptive, self.rng = features, y, adaptive, rng
        self.w, self._diag = np.zeros(n_features), squared_norms(features)
        # How often points are drawn, relative to each other; which are not left out at the moment.
        self.preference, self.active = np.ones(n), bounds > 0
        self._credit, self._idle = np.full(n, _HALF), np.zeros(n, dtype=np.int64)
        self._state = np.zeros(1, dtype=_STATE)[0]
        self._since_look = 0
        self._looked: tuple[np.ndarray, np.ndarray] | None = None  # since the last epoch

    def epoch(self) -> bool:
        """About as many draws as points are active, each with an exact step."""
        draws = visits(self.preference, self.active, self._credit)
        draws = draws[self.rng.permutation(len(draws))]
        self._state["violation"], self._looked = 0.0, None
        done = adaptive_steps(
            self.features, self.y, self._diag, self.bounds, draws, self.adaptive, self.shrinking,
            self.alpha, self.w, self.preference, self.active, self._idle, self._state,
        )  # fmt: skip
        self.n_iter += done
        self._since_look += done
        return False

    def end_epoch(self, tol: float) -> float:
        """Look at all points if those drawn violate little, or some have been left out for long.

        Points that violate are brought back. A point at its bound that does not violate would not
        move, so it stays left out. Returns the largest violation, if there was a look.
        """
        waiting = self._since_look >= _LOOK_AFTER * len(self.y)
        left_out = not self.active[self.order].all()
        if self._state["violation"] > tol and not (waiting and left_out):
            return np.inf
        _, violations = self._violations()
        returning = ~self.active & (violations > NO_STEP)
        self.active |= returning
        self._idle[returning] = 0
        seldom = (self.preference < 1.0) & (returning | (violations > tol))
        self.preference[seldom] = 1.0
        self._since_look = 0
        return float(violations.max())

    def margins(self) -> np.ndarray:
        return self.y * linear_scores(self.features, self.w)

    def gap(self) -> float:
        room, violations = self._violations()
        return float(matmul(room, violations)) / float(self.bounds.sum())

    def violation(self) -> float:
        return float(self._violations()[1].max())

    def _violations(self) -> tuple[np.ndarray, np.ndarray]:
        """How far each variable may go where its derivative leads, and how large that is.

        The gap is the sum of the products.
        """
        if self._looked is None:
            slopes = 1.0 - self.margins()
            room = np.where(slopes > 0, self.bounds - self.alpha, self.alpha)
            self._looked = room, np.where(room > 0, np.abs(slopes), 0.0)
        return self._looked


def visits(preference: np.ndarray, active: np.ndarray, credit: np.ndarray) -> np.ndarray:
    """The points of an epoch, each as often as its credit allows, in their order; credit in place.

    GD13: preferences are shares of as many visits as there are active points; what is
    left of a visit is kept for the next epoch.
    """
    chosen = np.flatnonzero(active)
    if not len(chosen):
        return chosen
    shares = preference[chosen]
    # Summed in their order, whatever their number.
    credit[chosen] += shares * len(chosen) / np.cumsum(shares)[-1]
    times = np.floor(credit[chosen])
    credit[chosen] -= times
    return np.repeat(chosen, times.astype(np.int64))


@njit(error_model="numpy")
def adaptive_steps(
    features, y, diag, bounds, draws, adaptive, shrinking, alpha, w, preference, active, idle, state
):  # fmt: skip
    """Exact dual coordinate steps at these points, in place; returns how many were looked at."""
    done, gained = 0, 0.0
    learning = state.mean_gain == 0.0
    for i in draws:
        # Left out since the epoch began.
        if not active[i]:
            continue
        done += 1
        row = features[i]
        slope = 1.0 - y[i] * dot(features, i, w)
        target = best_value(alpha[i], slope, diag[i], bounds[i])
        step, gain = target - alpha[i], 0.0
        if step != 0.0 and abs(slope) > NO_STEP:
            state.violation = max(state.violation, abs(slope))
            idle[i] = 0
            gain = step * (slope - 0.5 * diag[i] * step)
            alpha[i] = target
            for j in range(len(w)):
                w[j] += step * y[i] * row[j]
        elif shrinking:
            idle[i] += 1
            active[i] = idle[i] < _IDLE_VISITS
        gained += gain
        if adaptive and not learning:
            # GD13: draw it more often if it gained more than the others do, less often if less.
            change = np.exp(_RATE * (gain / state.mean_gain - 1.0))
            preference[i] = min(max(preference[i] * change, _LEAST), _MOST)
            state.mean_gain += (gain - state.mean_gain) / len(y)
    if learning and done:
        state.mean_gain = gained / done
    return done
