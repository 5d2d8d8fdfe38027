"""The ratio of two sets of timings, with an interval that assumes no distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Fewer samples on a side say nothing.
FEWEST = 6
_Z = 1.959963984540054


class Estimate(NamedTuple):
    """A ratio, after / before, with its 95 % interval.

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

    The interval is the one that belongs to the test of Mann and Whitney, by its normal
    approximation. It holds for independent samples; samples of one process are alike, so take
    them in several rounds.

    Parameters
    ----------
    before, after : sequence of float
        Positive.

    Returns
    -------
    Estimate or None
        None with fewer than six samples on a side.
    """
    n, m = len(before), len(after)
    if min(n, m) < FEWEST:
        return None
    logs = np.sort(np.subtract.outer(np.log(after), np.log(before)).ravel())
    spread = _Z * np.sqrt(n * m * (n + m + 1) / 12)
    # The k-th smallest and the k-th largest of all n m differences.
    k = max(int(np.floor(n * m / 2 - spread)), 1)
    middle, low, high = np.exp([np.median(logs), logs[k - 1], logs[-k]])
    return Estimate(float(middle), float(low), float(high), (n, m))
