"""Which points SBP's water covers, and how one of them is drawn (SBP12 sections 3.2 and 3.6)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ..numeric.compiling import njit
from ..numeric.water_level import water_level
from .two_basins import TwoBasins, fill, two_basin_level

# So many points near the level are expected to be drawn some time.
_NEIGHBOURS = 512


class DrawStream:
    """Uniform draws from some points, one after the other, known before they are taken.

    Attributes
    ----------
    known : ndarray of int64
        Candidates, soonest first.
    n_taken : int
        How many of them have been taken or rejected.
    """

    def __init__(self, rng: np.random.Generator, points: int | np.ndarray) -> None:
        self._rng = rng
        self._points = points
        self._n_points = points if isinstance(points, int) else len(points)
        self.known = np.empty(0, dtype=np.int64)
        self.n_taken = 0

    def upcoming(self, k: int) -> np.ndarray:
        """The next k candidates, int64, shape (k,); they are still to be taken."""
        while len(self.known) - self.n_taken < k:
            self._extend()
        return self.known[self.n_taken : self.n_taken + k].copy()

    def take(self, heights: np.ndarray, positive: np.ndarray, covered: Covered) -> int:
        """The first candidate that is covered; those before it are rejected for good."""
        while True:
            at = first_covered(self.known, self.n_taken, heights, positive, *covered)
            if at < len(self.known):
                self.n_taken = at + 1
                return int(self.known[at])
            self.n_taken = len(self.known)
            self._extend()

    def _extend(self) -> None:
        # The sequence does not depend on the size of the blocks.
        block = self._rng.integers(self._n_points, size=max(1024, self._n_points))
        if not isinstance(self._points, int):
            block = self._points[block]
        left = self.known[self.n_taken :]
        self.known = np.concatenate([left, block]) if len(left) else block
        self.n_taken = 0


class Covered(NamedTuple):
    """Which points may be drawn: for each class all below a height, and some at that height."""

    top_positive: float  # The largest height of a covered point of the class
    end_positive: int  # Of the points at that height those at positions below this
    top_negative: float
    end_negative: int


class Draws(Protocol):
    """How an iteration chooses the points it moves towards."""

    streams: tuple[DrawStream, ...]  # Where each of the points comes from
    covered: Covered | None  # What was covered at the last draw

    def draw(self, heights: np.ndarray) -> list[int]:
        """The points to move towards, all with the same weight."""

    def probable(self, heights: np.ndarray, count: int, left: int) -> np.ndarray:
        """The points that the next ``left`` draws would take if the water did not move."""

    def level(self, heights: np.ndarray) -> tuple[float, float]:
        """f(w) at the w with these responses, and the bias it is reached at."""


class OneBasinDraws:
    """One point, uniform among those under water."""

    def __init__(
        self, rng: np.random.Generator, positive: np.ndarray, volume: float, *, strict: bool
    ) -> None:
        self._positive = positive
        self._volume = volume
        self._strict = strict
        self._last_level = 0.0
        self.covered: Covered | None = None
        self.streams: tuple[DrawStream, ...] = (DrawStream(rng, len(positive)),)

    def draw(self, heights: np.ndarray) -> list[int]:
        """One covered point."""
        n = len(heights)
        top = self._last_level = water_level(heights, self._volume, self._last_level)
        if self._strict:
            # With nothing below the level it is the lowest height: then those at that height.
            top = max(np.nextafter(top, -np.inf), heights.min())
        self.covered = Covered(top, n, top, n)
        return [self.streams[0].take(heights, self._positive, self.covered)]

    def probable(self, heights: np.ndarray, count: int, left: int) -> np.ndarray:
        """See :class:`Draws`."""
        return _probable(self.streams, heights, self._positive, self.covered, count, left)

    def level(self, heights: np.ndarray) -> tuple[float, float]:
        """The water level, without a bias."""
        return float(water_level(heights, self._volume, 0.0)), 0.0


class TwoBasinDraws:
    """One point of each class, or one of either, uniform among the k of each that are covered.

    The least favourable distribution of SBP12 eq. 3.9 has the same mass on k points of each class.
    At a tie for the k-th place the first in the order of the points is covered.
    """

    def __init__(
        self, rng: np.random.Generator, positive: np.ndarray, volume: float, *, pairs: bool
    ) -> None:
        self._positive = positive
        self._members = np.flatnonzero(positive), np.flatnonzero(~positive)
        self._volume = volume
        self.basins = TwoBasins(positive, volume)
        self.covered: Covered | None = None
        if pairs:
            # Each has its own generator: looking ahead in one changes nothing in the other.
            self.streams: tuple[DrawStream, ...] = tuple(
                DrawStream(np.random.default_rng(rng.integers(2**63)), members)
                for members in self._members
            )
        else:
            self.streams = (DrawStream(rng, len(positive)),)

    def draw(self, heights: np.ndarray) -> list[int]:
        """A positive and a negative point, or one point."""
        covered = self.covered = Covered(*cover(self.basins.state, heights))
        return [stream.take(heights, self._positive, covered) for stream in self.streams]

    def probable(self, heights: np.ndarray, count: int, left: int) -> np.ndarray:
        """See :class:`Draws`; the points of the two classes take turns."""
        return _probable(self.streams, heights, self._positive, self.covered, count, left)

    def level(self, heights: np.ndarray) -> tuple[float, float]:
        """The water level and the bias."""
        positives, negatives = (heights[members] for members in self._members)
        levels = two_basin_level(positives, negatives, self._volume)
        return float(levels.level), float(levels.bias)


def _probable(
    streams: tuple[DrawStream, ...],
    heights: np.ndarray,
    positive: np.ndarray,
    covered: Covered | None,
    count: int,
    left: int,
) -> np.ndarray:
    """Covered candidates of all streams, in the order in which they will be taken; then neighbours.

    Candidates far ahead are judged by water that will have moved by then, and where few points are
    covered few are known. So the points nearest to the level follow, from below.
    """
    if covered is None:
        return np.empty(0, dtype=np.int64)
    kept = []
    for stream in streams:
        candidates = stream.upcoming(count // len(streams))
        top = np.where(positive[candidates], covered.top_positive, covered.top_negative)
        kept.append(candidates[heights[candidates] <= top][:left])
    turns = np.concatenate([np.arange(len(points)) for points in kept])
    ordered = np.concatenate(kept)[np.argsort(turns, kind="stable")]
    return np.append(ordered, _nearest(heights, positive, covered, min(_NEIGHBOURS, left)))


def _nearest(heights: np.ndarray, positive: np.ndarray, covered: Covered, count: int) -> np.ndarray:
    """The points that stand lowest over the last covered one of their class, lowest first."""
    over = heights - np.where(positive, covered.top_positive, covered.top_negative)
    nearest = np.arange(len(over))
    if count < len(over):
        nearest = np.argpartition(over, count)[:count]
    return nearest[np.argsort(over[nearest])]


@njit(error_model="numpy")
def first_covered(
    candidates,
    start,
    heights,
    positive,
    top_positive,
    end_positive,
    top_negative,
    end_negative,
):
    """Position of the first covered candidate from ``start`` on; len(candidates) if none is."""
    highest = max(top_positive, top_negative)
    for p in range(start, len(candidates)):
        i = candidates[p]
        if heights[i] > highest:
            continue
        top, end = (top_positive, end_positive) if positive[i] else (top_negative, end_negative)
        if heights[i] < top or (heights[i] == top and i < end):
            return p
    return len(candidates)


@njit(error_model="numpy")
def cover(basins, heights):
    """The fields of Covered, of two basins."""
    fill(basins, heights)
    standing, positive = basins.standing, basins.positive
    up, down = standing.last_positive, standing.last_negative
    end_up = end_down = len(heights)
    if standing.tied_positive:
        end_up = _tie_end(heights, positive, True, up, standing.rank)
    if standing.tied_negative:
        end_down = _tie_end(heights, positive, False, down, standing.rank)
    return up, end_up, down, end_down


@njit(error_model="numpy")
def _tie_end(heights, positive, side, top, rank):
    """The end of the first points at height ``top`` that make up ``rank`` covered points."""
    missing = rank
    for i in range(len(heights)):
        missing -= positive[i] == side and heights[i] < top
    for i in range(len(heights)):
        if positive[i] == side and heights[i] == top:
            missing -= 1
            if missing == 0:
                return i + 1
    return len(heights)
