"""Where a series of values changes for good, and where it leaves for one commit and comes back.

Counts are deterministic: every change beyond the bound is real. It is measured from the level since
the last step, so that many small changes in a row are told once they add up. A change that is gone
at the next commit is a *blip* and no step.

Times and memory vary from run to run. Binary segmentation splits their series where the rank sums
of the two sides differ most, if Wilcoxon's test tells them apart at 5 % in spite of the number of
possible splits (Bonferroni) and the medians differ beyond the bound; then each side likewise. Ranks
make single outliers harmless. Five commits on either side are the fewest that can be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from marginbench.reports.regressions.measures import Watched

#: Pairs of neighbouring commits from which on a history tells its own noise.
FEWEST_PAIRS = 8
# With fewer values on a side even completely separate ones are not told apart.
_FEWEST = 4
_LEVEL = 0.05

#: Values by commit; None where there is none.
Values = Sequence[float | None]


class Step(NamedTuple):
    """A change that stays.

    Attributes
    ----------
    place : int
        The first commit of the new level.
    before, after : float
        The levels; of noisy values their medians.
    """

    place: int
    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        """After / before; None where that is not a positive finite number."""
        return self.after / self.before if self.before > 0 and self.after > 0 else None


class Changes(NamedTuple):
    """The steps of a series, and the places of its blips."""

    steps: tuple[Step, ...] = ()
    blips: frozenset[int] = frozenset()


def counted(values: Values, measure: Watched) -> Changes:
    """The steps and blips of deterministic values.

    Parameters
    ----------
    values : sequence of float or None
        In the order of commits; gaps are passed over.
    measure : Watched
        Whose bound is exceeded.
    """
    known = _known(values)
    if not known:
        return Changes()
    steps, blips = [], set()
    level = known[0][1]
    following = [*known[1:], None]
    for (place, value), after in zip(known, following, strict=True):
        if not _beyond(measure, level, value):
            continue
        if after is not None and not _beyond(measure, level, after[1]):
            blips.add(place)
        else:
            steps.append(Step(place, level, value))
            level = value
    return Changes(tuple(steps), frozenset(blips))


def noisy(values: Values, measure: Watched) -> Changes:
    """The steps of values that vary from run to run.

    Parameters
    ----------
    values : sequence of float or None
    measure : Watched
    """
    known = _known(values)
    numbers = np.array([value for _, value in known])
    cuts = _cuts(numbers, 0, measure)
    steps = _between(numbers, cuts)
    # The levels beside a cut may be nearer to each other than the sides of the whole.
    while near := [step for step in steps if not _beyond(measure, step.before, step.after)]:
        cuts.remove(near[0].place)
        steps = _between(numbers, cuts)
    return Changes(tuple(step._replace(place=known[step.place][0]) for step in steps))


def _between(numbers: np.ndarray, cuts: Sequence[int]) -> list[Step]:
    """The steps from median to median of the parts of a series."""
    medians = [float(np.median(part)) for part in np.split(numbers, cuts) if len(part)]
    return [Step(cut, *levels) for cut, levels in zip(cuts, pairwise(medians), strict=True)]


def _cuts(numbers: np.ndarray, start: int, measure: Watched) -> list[int]:
    """Where to split a part of a series that begins at ``start``."""
    cut = _split(numbers)
    if cut is None or not _beyond(
        measure, float(np.median(numbers[:cut])), float(np.median(numbers[cut:]))
    ):
        return []
    left = _cuts(numbers[:cut], start, measure)
    return [*left, start + cut, *_cuts(numbers[cut:], start + cut, measure)]


def _split(numbers: np.ndarray) -> int | None:
    """The split with the most extreme rank sum; None if that is no evidence of two levels."""
    total = len(numbers)
    cuts = np.arange(_FEWEST, total - _FEWEST + 1)
    if not len(cuts):
        return None
    values, place, times = np.unique(numbers, return_inverse=True, return_counts=True)
    if len(values) == 1:
        return None
    # Equal values share the mean of their ranks.
    ranks = (np.cumsum(times) - (times - 1) / 2)[place]
    sums = np.cumsum(ranks)[cuts - 1]
    ties = float(np.sum(times**3 - times))
    variance = cuts * (total - cuts) / 12 * (total + 1 - ties / (total * (total - 1)))
    distance = np.maximum(np.abs(sums - cuts * (total + 1) / 2) - 0.5, 0) / np.sqrt(variance)
    best = int(np.argmax(distance))
    p = 2 * NormalDist().cdf(-float(distance[best]))
    return int(cuts[best]) if p * len(cuts) <= _LEVEL else None


def noise(values: Values, steps: Iterable[Step] = ()) -> float:
    """The relative change between neighbouring commits that is usual in a series.

    It is the upper fence of the absolute logarithms of their ratios: the third quartile plus three
    times the distance of the quartiles. Pairs across a step are left out.

    Parameters
    ----------
    values : sequence of float or None
    steps : iterable of Step
        Those of the series.

    Returns
    -------
    float
        0 with fewer than :data:`FEWEST_PAIRS` pairs.
    """
    places = [step.place for step in steps]
    logs = [
        abs(np.log(after / before))
        for (i, before), (j, after) in pairwise(_known(values))
        if before > 0 and after > 0 and not any(i < place <= j for place in places)
    ]
    if len(logs) < FEWEST_PAIRS:
        return 0.0
    low, high = np.percentile(logs, [25, 75])
    return float(np.expm1(high + 3 * (high - low)))


def _known(values: Values) -> list[tuple[int, float]]:
    return [(place, value) for place, value in enumerate(values) if value is not None]


def _beyond(measure: Watched, before: float, after: float) -> bool:
    return abs(measure.beyond(before, after)) > 1
