"""The ratio of two sets of timings, with an interval that assumes no distribution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

#: Below this number on a side, no interval holds at the level.
FEWEST = 5
#: How often an interval may miss. Many times are looked at together, and each is told by its own.
_MISSES = 0.01


class Estimate(NamedTuple):
    """A ratio, after / before, with its 99 % interval.

    Attributes
    ----------
    ratio, low, high : float
    n : tuple of int
        How many samples there are before and after.
    """

    ratio: float
    low: float
    high: float
    n: tuple[int, int]

    @property
    def told(self) -> bool:
        """Whether the interval excludes no change."""
        return self.low > 1 or self.high < 1


def ratio(before: Sequence[float], after: Sequence[float]) -> Estimate | None:
    """The median of all ratios of a sample after to one before (Hodges and Lehmann, 1963).

    The interval is the one that belongs to the test of Mann and Whitney, by its exact distribution.
    It holds for independent samples. With five on each side it reaches from the smallest ratio to
    the largest.

    Parameters
    ----------
    before, after : sequence of float
        Positive.

    Returns
    -------
    Estimate or None
        None with fewer than five samples on a side.
    """
    n, m = len(before), len(after)
    if min(n, m) < FEWEST:
        return None
    logs = np.sort(np.subtract.outer(np.log(after), np.log(before)).ravel())
    k = _place(n, m)
    middle, low, high = np.exp([np.median(logs), logs[k - 1], logs[-k]])
    return Estimate(float(middle), float(low), float(high), (n, m))


@cache
def _place(n: int, m: int) -> int:
    """Which of the sorted differences bounds the interval: the k-th from either end."""
    # ways[u]: in how many orders of n + m samples u pairs are the wrong way round. It is the
    # Gaussian binomial coefficient, the product of (1 - x^(n + i)) / (1 - x^i) for i = 1, ..., m.
    size = n * m + 1
    ways = [1] + [0] * (size - 1)
    for i in range(1, m + 1):
        for u in range(size - 1, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, size):
            ways[u] += ways[u - i]
    orders, tail, k = sum(ways), 0, 0
    while 2 * (tail + ways[k]) <= _MISSES * orders:
        tail += ways[k]
        k += 1
    return max(k, 1)
