"""Which points SBP's water covers, and how one of them is drawn (SBP12 sections 3.2 and 3.6)."""

from __future__ import annotations

import numpy as np

from ..numeric.compiling import ZERO, njit
from ..numeric.water_level import lowest, water_level
from .two_basins import BasinState, fill, two_basin_level

# So many points near the level are expected to be drawn some time.
_NEIGHBOURS = 512


class DrawStream:
    """Uniform draws from some points, one after the other, known before they are taken.

    Draws from the covered points alone are made of them by rejection: see :func:`draw`. In its
    first ``passes`` over the points each comes once. Later ones are independent: without
    replacement the covered points are not drawn equally often, and a run does not converge.
    """

    def __init__(self, rng: np.random.Generator, points: np.ndarray, *, passes: int) -> None:
        self._rng = rng
        self._points = points
        self._passes = passes
        # Candidates, soonest first, and how many of them have been taken or rejected.
        self.candidates = np.empty(0, dtype=np.int64)
        self.n_taken = 0

    def upcoming(self, k: int) -> np.ndarray:
        """The next k candidates, int64, shape (k,); they are still to be taken."""
        while len(self.candidates) - self.n_taken < k:
            self.extend()
        return self.candidates[self.n_taken : self.n_taken + k]

    def extend(self) -> None:
        """Draw more candidates; the sequence does not depend on when."""
        n = len(self._points)
        if self._passes > 0:
            self._passes -= 1
            block = self._rng.permutation(n)
        else:
            block = self._rng.integers(n, size=max(1024, n))
        self.candidates = np.concatenate([self.candidates[self.n_taken :], self._points[block]])
        self.n_taken = 0


class Draws:
    """How an iteration chooses the points it moves towards, of those under water.

    Without bias one point, uniform among those below the level. With bias one of each class
    (``pairs``), or one of either, uniform among the k of each that are covered: the least
    favourable distribution of SBP12 eq. 3.9 has the same mass on k points of each class.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        basins: BasinState,
        *,
        with_bias: bool,
        pairs: bool,
        passes: int,
    ) -> None:
        self.basins = basins
        # None if both classes are one basin: what None excludes is not compiled.
        self.two_basins = basins if with_bias else None
        members = [np.arange(len(basins.positive))]
        rngs = [rng]
        if pairs:
            members = [basins.members, basins.others]
            # Each has its own generator: looking ahead in one changes nothing in the other.
            rngs = [np.random.default_rng(rng.integers(2**63)) for _ in members]
        self.streams = tuple(
            DrawStream(*of_class, passes=passes) for of_class in zip(rngs, members, strict=True)
        )

    def probable(self, heights: np.ndarray, count: int, left: int) -> np.ndarray:
        """The points that the next ``left`` draws would take if the water did not move.

        Candidates far ahead are judged by water that will have moved by then, and where few points
        are covered few are known. So the points nearest to the level follow, from below.
        """
        basins, standing = self.basins, self.basins.standing
        over = heights - np.where(
            basins.positive, standing["last_positive"], standing["last_negative"]
        )
        kept = []
        for stream in self.streams:
            candidates = stream.upcoming(count // len(self.streams))
            kept.append(candidates[over[candidates] <= 0][:left])
        turns = np.concatenate([np.arange(len(points)) for points in kept])
        ordered = np.concatenate(kept)[np.argsort(turns, kind="stable")]
        nearest = np.arange(len(over))
        size = min(_NEIGHBOURS, left)
        if size < len(over):
            nearest = np.argpartition(over, size)[:size]
        return np.append(ordered, nearest[np.argsort(over[nearest])])

    def level(self, heights: np.ndarray) -> tuple[float, float]:
        """f(w) at the w with these responses, and the bias it is reached at."""
        basins = self.basins
        if self.two_basins is None:
            return float(water_level(heights, basins.volume, 0.0)), 0.0
        levels = two_basin_level(heights[basins.members], heights[basins.others], basins.volume)
        return float(levels.level), float(levels.bias)

    def mean_covered(self, heights: np.ndarray) -> float:
        """The mean response of a draw at the w with these responses, without the bias."""
        basins = self.basins
        if self.two_basins is None:
            return float(heights[heights <= self.level(heights)[0]].mean())
        levels = two_basin_level(heights[basins.members], heights[basins.others], basins.volume)
        return float(levels.level) - basins.volume / (2 * levels.rank)


@njit(error_model="numpy")
def draw(basins, two_basins, heights, candidates, taken, drawn):
    """A covered point of each stream into ``drawn``, SBP12 Algorithm 1 lines 5 and 6.

    By rejection sampling: uniform candidates are passed over until one is covered. At a tie for the
    k-th place of a class the first in the order of the points is covered. Returns the stream that
    has run out of candidates, or -1; then those before are rejected for good.
    """
    standing, positive = basins.standing, basins.positive
    end_up = end_down = len(heights)
    if two_basins is None:
        top = standing.positive = water_level(heights, basins.volume, standing.positive)
        if basins.strict:
            # With nothing below the level it is the lowest height: then those at that height.
            top = max(np.nextafter(top, -np.inf), lowest(heights, ZERO))
        standing.last_positive, standing.last_negative = top, top
    else:
        fill(two_basins, heights)
        if standing.tied_positive or standing.tied_negative:
            end_up, end_down = _tie_ends(heights, positive, standing)
    up, down = standing.last_positive, standing.last_negative
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
def _tie_ends(heights, positive, standing):
    """The ends of the first points at the k-th height of each class that make up k covered ones."""
    up, down, end_up, end_down = standing.last_positive, standing.last_negative, 0, 0
    missing_up = missing_down = standing.rank
    for i in range(len(heights)):
        if positive[i]:
            missing_up -= heights[i] < up
        else:
            missing_down -= heights[i] < down
    for i in range(len(heights)):
        if positive[i] and heights[i] == up and missing_up > 0:
            missing_up, end_up = missing_up - 1, i + 1
        elif not positive[i] and heights[i] == down and missing_down > 0:
            missing_down, end_down = missing_down - 1, i + 1
    return end_up, end_down
