"""A search along the line from the best point so far to the planes' proposal."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..numeric.matrices import matmul
from .regularizers import L2
from .risk import Risk

# The next plane touches the risk this part of the way from the best point to the proposal.
_SHARE = 0.1
# The search ends within this part of the way.
_PRECISION = 0.05
# A longer step would multiply the rounding of the scores too much: theirs are computed anew.
_FAR = 10.0


class LinePoint(NamedTuple):
    """The risk at a point of a line.

    Attributes
    ----------
    slope : float
        Of J along the line, in units of its length.
    value : float
        The risk.
    subgradient : ndarray of float64
        Of the scores.
    minimizer : float
        The eliminated offset.
    """

    slope: float
    value: float
    subgradient: np.ndarray
    minimizer: float


class PrimalSearch:
    """The best point, moved to the minimum of J on the line to each proposal.

    Scores are linear in w, so that a step costs no product with the points ([FS08]_ section 3). The
    plane is then taken near the best point instead of at the proposal, where planes jump about.

    References
    ----------
    .. [FS08] Franc, Sonnenburg: Optimized cutting plane algorithm for support vector machines.
       ICML 2008. BibTeX key ``franc2008optimized``.
    """

    def __init__(self, risk: Risk, lam: float, w: np.ndarray, objective: float) -> None:
        self._risk, self._lam = risk, lam
        self._regularizer = L2()
        self.w, self._scores = w, risk.scores(w)
        self.objective = objective
        self._here = LinePoint(0.0, risk.value, risk.subgradient.copy(), risk.minimizer)

    @property
    def minimizer(self) -> float:
        """The eliminated offset of the best point."""
        return self._here.minimizer

    def step(self, proposal: np.ndarray, *, stalled: bool) -> np.ndarray:
        """Move the best point and return that of the next plane, at which the risk then stands."""
        share = 1.0 if stalled else _SHARE
        return self._towards(proposal, share)

    def _towards(self, proposal: np.ndarray, share: float) -> np.ndarray:
        """Search the line to the proposal; the next plane is this part of the way from the best."""
        scores = self._risk.scores(proposal)
        towards, change = proposal - self.w, scores - self._scores
        length, point = self._minimum(towards, change)
        w = self.w + length * towards
        moved = self._scores + length * change
        if length > _FAR:
            moved = self._risk.scores(w)
            point = self._at(moved)
        objective = point.value + self._lam * self._regularizer.value(w)
        if objective < self.objective:
            self.w, self._scores, self.objective = w, moved, objective
            self._here = point
        self._risk.at(self._scores + share * (scores - self._scores))
        return self.w + share * (proposal - self.w)

    def _minimum(self, towards: np.ndarray, change: np.ndarray) -> tuple[float, LinePoint]:
        """How far the minimum of J is, in lengths of the way, and the risk there."""
        start = self._lam * float(matmul(self.w, towards))
        growth = self._lam * float(matmul(towards, towards))

        # Asked for more than once: the root finder starts with the slopes at both ends.
        @cache
        def at(length: float) -> LinePoint:
            # Computed anew, a slope that is all rounding could have the other sign.
            point = self._at(self._scores + length * change) if length else self._here
            along = float((point.subgradient * change).sum())
            return point._replace(slope=start + length * growth + along)

        if at(0.0).slope >= 0:
            return 0.0, self._here
        near, far = 0.0, 1.0
        while at(far).slope < 0:
            near, far = far, 2.0 * far
            if far > 1e6:
                return near, at(near)
        length = float(brentq(lambda length: at(length).slope, near, far, xtol=_PRECISION * far))
        return length, at(length)

    def _at(self, scores: np.ndarray) -> LinePoint:
        value = self._risk.at(scores)
        return LinePoint(0.0, value, self._risk.subgradient.copy(), self._risk.minimizer)
