"""Searches along the line from the best point so far to the planes' proposal.

:class:`PrimalSearch` is for any convex risk, :class:`ExactSearch` that of OCAS for piecewise linear
ones: the exact minimum, and a cut a fixed way on. Both search the primal; the line search of BMRM07
Algorithm 2, in the dual, is ``bmrm.LineSearch``.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from .regularizers import L2
from .risk import Risk

# The next plane touches the risk this part of the way from the best point to the proposal.
_SHARE = 0.1
# The search ends within this part of the way.
_PRECISION = 0.05
# A longer step would multiply the rounding of the scores too much: theirs are computed anew.
_FAR = 10.0
# Values of the risk that differ by this part are equal.
_ROUNDING = 1e-14
_MOST_TANGENTS = 100


class LinePoint(NamedTuple):
    """The risk at a point of a line, and its tangent there."""

    value: float
    subgradient: np.ndarray  # float64: Of the scores
    minimizer: float  # The eliminated offset
    length: float = 0.0  # Of the way to the point, in units of that to the proposal
    slope: float = 0.0  # Of the risk along the line

    def tangent(self, length: float) -> float:
        """The height of the tangent at another length; no more than the risk."""
        return self.value + self.slope * (length - self.length)


class PrimalSearch:
    """The best point, moved to the minimum of J on the line to each proposal.

    Scores are linear in w, so that a step costs no product with the points ([FS08]_ section 3). The
    plane is then taken near the best point instead of at the proposal, where planes jump about.
    """

    #: Where the bound hardly rises, the plane is taken at the proposal.
    _leaps: ClassVar[bool] = True

    def __init__(
        self, risk: Risk, lam: float, w: np.ndarray, objective: float, *, share: float = _SHARE
    ) -> None:
        self._risk, self._lam, self._share = risk, lam, share
        self._regularizer = L2()
        self.w, self._scores = w, risk.scores(w)
        self.objective = objective
        self._here = LinePoint(risk.value, risk.subgradient.copy(), risk.minimizer)

    @property
    def minimizer(self) -> float:
        """The eliminated offset of the best point."""
        return self._here.minimizer

    def step(self, proposal: np.ndarray, *, stalled: bool) -> np.ndarray:
        """Move the best point and return that of the next plane, at which the risk then stands."""
        share = 1.0 if stalled and self._leaps else self._share
        scores = self._risk.scores(proposal)
        towards, change = proposal - self.w, scores - self._scores
        # J along the line: the regulariser's slope at t is start + growth t.
        start = self._lam * float(matmul(self.w, towards))
        growth = self._lam * float(matmul(towards, towards))
        point = self._minimum(change, start, growth)
        w = self.w + point.length * towards
        moved = self._scores + point.length * change
        if point.length > _FAR:
            moved = self._risk.scores(w)
            point = self._point(moved, 0.0)
        objective = point.value + self._lam * self._regularizer.value(w)
        if objective < self.objective:
            self.w, self._scores, self.objective = w, moved, objective
            self._here = point._replace(length=0.0)
        self._risk.at(self._scores + share * (scores - self._scores))
        return self.w + share * (proposal - self.w)

    def _minimum(self, change: np.ndarray, start: float, growth: float) -> LinePoint:
        """The risk at the minimum of J along the line."""

        # Asked for more than once: the root finder starts with the slopes at both ends.
        @cache
        def at(length: float) -> LinePoint:
            # Computed anew, a slope that is all rounding could have the other sign.
            point = self._point(self._scores + length * change, length) if length else self._here
            return point._replace(slope=float((point.subgradient * change).sum()))

        def slope(length: float) -> float:
            return start + length * growth + at(length).slope

        if slope(0.0) >= 0:
            return self._here
        near, far = 0.0, 1.0
        while slope(far) < 0:
            near, far = far, 2.0 * far
            if far > 1e6:
                return at(near)
        return at(float(brentq(slope, near, far, xtol=_PRECISION * far)))

    def _point(self, scores: np.ndarray, length: float) -> LinePoint:
        value = self._risk.at(scores)
        return LinePoint(value, self._risk.subgradient.copy(), self._risk.minimizer, length)


class ExactSearch(PrimalSearch):
    """The best point, moved to the minimum of J on the line to each proposal, exactly.

    The risk is to be piecewise linear. J is then a convex piecewise quadratic function on the line,
    whose breakpoints are known unless an offset is eliminated ([FS09]_ section 3). Of an eliminated
    offset each piece has a tangent, and the search ends at the one that holds the minimum.

    J rises from the best point towards the proposal, so that a plane taken between them lies above
    the model's minimum at the proposal: no other place is needed, however little the bound rises.
    """

    _leaps = False

    def _minimum(self, change: np.ndarray, start: float, growth: float) -> LinePoint:
        if growth == 0.0:
            return self._here
        if self._risk.kinks is None:
            return self._by_tangents(change, start, growth)
        breakpoints, jumps = np.empty((2, self._risk.kinks[0].size))
        slope, count = pieces_along(*self._risk.kinks, self._scores, change, breakpoints, jumps)
        length = zero_of_slope(slope + start, growth, breakpoints[:count], jumps[:count])
        return self._point(self._scores + length * change, length) if length else self._here

    def _by_tangents(self, change: np.ndarray, start: float, growth: float) -> LinePoint:
        """The same without known breakpoints: two tangents of the risk close in on the minimum.

        The minimum of the quadratic above the tangents at both ends of a bracket becomes one of
        them, unless the risk lies on a tangent there: then it is that of J.
        """

        def at(length: float) -> LinePoint:
            point = self._point(self._scores + length * change, length) if length else self._here
            return point._replace(slope=float(matmul(point.subgradient, change)))

        def falls(point: LinePoint) -> bool:
            return start + growth * point.length + point.slope < 0.0

        near = at(0.0)
        if not falls(near):
            return near
        far = at(1.0)
        while falls(far):
            near, far = far, at(2.0 * far.length)
        width, slow = far.length - near.length, 0
        for _ in range(_MOST_TANGENTS):
            length = lowest = _lowest(near, far, start, growth)
            if slow == 2:
                length, slow = 0.5 * (near.length + far.length), 0
            if not near.length < length < far.length:
                break
            point = at(length)
            above = point.value - max(near.tangent(length), far.tangent(length))
            # In the middle of the bracket the risk may lie on a tangent far from the minimum.
            if length == lowest and above <= _ROUNDING * abs(point.value):
                return point
            near, far = (point, far) if falls(point) else (near, point)
            slow = slow + 1 if far.length - near.length > 0.5 * width else 0
            width = far.length - near.length
        return min(
            (near, far),
            key=lambda end: end.value + end.length * (start + 0.5 * growth * end.length),
        )


def _lowest(near: LinePoint, far: LinePoint, start: float, growth: float) -> float:
    """Where ``start t + 1/2 growth t^2`` plus the larger of two tangents is least."""
    # On the tangent of the near end, on that of the far end (to its left), or where they meet.
    of_near, of_far = -(start + near.slope) / growth, -(start + far.slope) / growth
    if far.slope <= near.slope:
        return of_near
    met = (near.tangent(0.0) - far.tangent(0.0)) / (far.slope - near.slope)
    return min(max(met, of_far), of_near)


@njit(error_model="numpy")
def pieces_along(kinks, left, weights, scores, change, breakpoints, jumps):
    """Slope of a weighted mean of piecewise linear losses along ``scores + t change``, t > 0."""
    slope, count = 0.0, 0
    for i in range(len(scores)):
        step = change[i]
        if step == 0.0:
            continue
        passed = 0.0
        for j in range(kinks.shape[1]):
            way = kinks[i, j] - scores[i]
            passed += 1.0 if way < 0.0 or (way == 0.0 and step > 0.0) else 0.0
            ahead = way / step
            # Stored in any case: a branch that nothing predicts would cost more.
            breakpoints[count] = ahead
            jumps[count] = weights[i] * abs(step)
            count += 1 if ahead > 0.0 else 0
        slope += weights[i] * step * (left[i] + passed)
    return slope, count


def zero_of_slope(slope: float, growth: float, breakpoints: np.ndarray, jumps: np.ndarray) -> float:
    """The least t >= 0 at which ``slope + growth t``, plus the jumps up to t, is not negative.

    The minimum of the convex function that has this derivative (FS09 section 3).
    """
    order = np.argsort(breakpoints)
    points = np.append(breakpoints[order], np.inf)
    before = slope + np.append(0.0, np.cumsum(jumps[order]))
    k = int(np.searchsorted(before[1:] + growth * points[:-1], 0.0))
    least = points[k - 1] if k else 0.0
    return float(min(points[k], max(-before[k] / growth, least)))
