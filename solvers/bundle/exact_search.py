"""The search of OCAS: the exact minimum on the line to each proposal, and a cut a fixed way on."""

from __future__ import annotations

import numpy as np

from ..numeric.matrices import matmul
from .lines import zero_of_slope
from .risk import Risk
from .search import LinePoint, PrimalSearch

# Values of the risk that differ by this part are equal.
_ROUNDING = 1e-14
_MOST_TANGENTS = 100


class ExactSearch(PrimalSearch):
    """The best point, moved to the minimum of J on the line to each proposal, exactly.

    The risk is to be piecewise linear. J is then a convex piecewise quadratic function on the line,
    whose breakpoints are known unless an offset is eliminated ([FS09]_ section 3). Of an eliminated
    offset each piece has a tangent, and the search ends at the one that holds the minimum.

    J rises from the best point towards the proposal, so that a plane taken between them lies above
    the model's minimum at the proposal: no other place is needed, however little the bound rises.

    References
    ----------
    .. [FS09] Franc, Sonnenburg: Optimized cutting plane algorithm for large-scale risk
       minimization. JMLR 10, 2009. BibTeX key ``franc2009optimized``.
    """

    def __init__(
        self, risk: Risk, lam: float, w: np.ndarray, objective: float, *, share: float
    ) -> None:
        super().__init__(risk, lam, w, objective)
        self._share = share

    def step(self, proposal: np.ndarray, *, stalled: bool) -> np.ndarray:
        """Move the best point and return that of the next plane, at which the risk then stands."""
        return self._towards(proposal, self._share)

    def _minimum(self, towards: np.ndarray, change: np.ndarray) -> tuple[float, LinePoint]:
        """How far the minimum of J is, in lengths of the way, and the risk there."""
        start = self._lam * float(matmul(self.w, towards))
        growth = self._lam * float(matmul(towards, towards))
        if growth == 0.0:
            return 0.0, self._here
        pieces = self._risk.pieces_along(self._scores, change)
        if pieces is None:
            return self._by_tangents(change, start, growth)
        slope, breakpoints, jumps = pieces
        length = float(zero_of_slope(start + slope, growth, breakpoints, jumps))
        return length, self._at(self._scores + length * change) if length else self._here

    def _by_tangents(
        self, change: np.ndarray, start: float, growth: float
    ) -> tuple[float, LinePoint]:
        """The same without known breakpoints: two tangents of the risk close in on the minimum.

        The minimum of the quadratic above the tangents at both ends of a bracket becomes one of
        them, unless the risk lies on a tangent there: then it is that of J.
        """

        def at(length: float) -> _Tangent:
            point = self._at(self._scores + length * change)
            return _Tangent(length, point, float(matmul(point.subgradient, change)))

        near = _Tangent(0.0, self._here, float(matmul(self._here.subgradient, change)))
        if start + near.slope >= 0.0:
            return 0.0, self._here
        far = at(1.0)
        while start + growth * far.length + far.slope < 0.0:
            near, far = far, at(2.0 * far.length)
        width, slow = far.length - near.length, 0
        for _ in range(_MOST_TANGENTS):
            length = lowest = _lowest(near, far, start, growth)
            if slow == 2:
                length, slow = 0.5 * (near.length + far.length), 0
            if not near.length < length < far.length:
                break
            tangent = at(length)
            model = max(near.value(length), far.value(length))
            above = tangent.point.value - model
            # In the middle of the bracket the risk may lie on a tangent far from the minimum.
            if length == lowest and above <= _ROUNDING * abs(tangent.point.value):
                return length, tangent.point
            if start + growth * length + tangent.slope < 0.0:
                near = tangent
            else:
                far = tangent
            slow = slow + 1 if far.length - near.length > 0.5 * width else 0
            width = far.length - near.length
        heights = [
            end.point.value + end.length * (start + 0.5 * growth * end.length)
            for end in (near, far)
        ]
        best = near if heights[0] <= heights[1] else far
        return best.length, best.point


class _Tangent:
    """The risk at a length of the way, and its slope there."""

    def __init__(self, length: float, point: LinePoint, slope: float) -> None:
        self.length, self.point, self.slope = length, point, slope

    def value(self, length: float) -> float:
        """Of the tangent at another length; no more than the risk."""
        return self.point.value + self.slope * (length - self.length)


def _lowest(near: _Tangent, far: _Tangent, start: float, growth: float) -> float:
    """Where ``start t + 1/2 growth t^2`` plus the larger of two tangents is least."""
    # On the tangent of the near end, on that of the far end (to its left), or where they meet.
    of_near, of_far = -(start + near.slope) / growth, -(start + far.slope) / growth
    if far.slope <= near.slope:
        return of_near
    met = (near.value(0.0) - far.value(0.0)) / (far.slope - near.slope)
    return min(max(met, of_far), of_near)
