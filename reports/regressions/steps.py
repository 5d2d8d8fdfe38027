"""Where a series of values changes for good, and where it leaves for one commit and comes back.

Counts are deterministic: every change beyond the bound is real. It is measured from the level since
the last step, so that many small changes in a row are told once they add up. A change that is gone
at the next commit is a *blip* and no step.

Times and memory vary from run to run. Their series is cut into parts of at least four commits, such
that the ranks within the parts differ least. Each cut must lower the squares of the ranks, in units
of their variance, by the square of the normal quantile of 5 % divided by the number of possible
cuts (Bonferroni); for a single cut this is Wilcoxon's rank sum test. Then each part is cut by its
own ranks, each cut moves to the best place between its neighbours, and cuts between medians that
differ within the bound are dropped. Ranks make single outliers harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from .measures import Watched

#: Pairs of neighbouring commits from which on a history tells its own noise.
FEWEST_PAIRS = 8
# Values between two cuts. Fewer on a side are not told apart even if completely separate.
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
    cuts = _cuts(numbers)
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


def _cuts(numbers: np.ndarray) -> list[int]:
    """Where a series is cut, by its own ranks and then by those of each part."""
    first = _parted(numbers)
    if not first:
        return []
    found = []
    for start, end in pairwise([0, *first, len(numbers)]):
        found += [start, *(start + cut for cut in _cuts(numbers[start:end]))]
    return _moved(numbers, found[1:])


def _parted(numbers: np.ndarray) -> list[int]:
    """The cuts that are worth their price, all at once, by dynamic programming."""
    total = len(numbers)
    ranks = _ranks(numbers)
    variance = float(np.var(ranks, ddof=1)) if total > 1 else 0.0
    possible = total - 2 * _FEWEST + 1
    if possible < 1 or variance == 0:
        return []
    price = variance * NormalDist().inv_cdf(_LEVEL / 2 / possible) ** 2
    sums, squares = (np.concatenate([[0.0], np.cumsum(each)]) for each in (ranks, ranks**2))
    best, origin = np.full(total + 1, np.inf), np.zeros(total + 1, dtype=int)
    best[0] = -price
    for end in range(_FEWEST, total + 1):
        starts = np.arange(0, end - _FEWEST + 1)
        within = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = best[starts] + price + within
        origin[end] = int(np.argmin(costs))
        best[end] = costs[origin[end]]
    cuts, place = [], total
    while (place := int(origin[place])) > 0:
        cuts.append(place)
    return cuts[::-1]


def _moved(numbers: np.ndarray, cuts: list[int]) -> list[int]:
    """Each cut at the place between its neighbours that tells their parts apart best."""
    moved = list(cuts)
    for i, _ in enumerate(cuts):
        start = moved[i - 1] if i else 0
        end = cuts[i + 1] if i + 1 < len(cuts) else len(numbers)
        ranks = _ranks(numbers[start:end])
        places = np.arange(_FEWEST, end - start - _FEWEST + 1)
        sums = np.cumsum(ranks)[places - 1] - places * np.mean(ranks)
        distance = np.abs(sums) / np.sqrt(places * (end - start - places))
        moved[i] = start + int(places[np.argmax(distance)])
    return moved


def _ranks(numbers: np.ndarray) -> np.ndarray:
    """From 1 on; equal values share the mean of theirs."""
    _, place, times = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(times) - (times - 1) / 2)[place]


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
