"""How long the remaining runs of a study will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TypeAlias

#: The labels of a task and of a solver.
Pair: TypeAlias = tuple[str, str]


class Forecast:
    """How long runs will take, from those that have ended.

    A pair of task and solver that has been run takes as long as the mean of its runs. One that has
    not takes as long as the same solver on other tasks, else as any run.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        # Of each pair that has been run: of how many runs, and their mean seconds.
        self._ended: dict[Pair, tuple[int, float]] = {}

    def add(self, pair: Pair, seconds: float | None) -> None:
        """A run has ended after so many seconds, without those of compiling; None: at once."""
        if seconds is not None:
            count, mean = self._ended.get(pair, (0, 0.0))
            self._ended[pair] = count + 1, mean + (seconds - mean) / (count + 1)

    def remaining(
        self, left: Mapping[Pair, int], running: Iterable[tuple[Pair, float]] = ()
    ) -> float | None:
        """Seconds until all is done; None before any run has ended."""
        means = {pair: mean for pair, (_, mean) in self._ended.items()}
        if not means:
            return None

        def expected(pair: Pair) -> float:
            if pair in means:
                return means[pair]
            alike = [mean for (_, solver), mean in means.items() if solver == pair[1]]
            return fmean(alike or means.values())

        runs = [(expected(pair), count) for pair, count in left.items() if count]
        runs += [(max(0.0, expected(pair) - gone), 1) for pair, gone in running]
        # No run is spread over several jobs: the longest bounds the end as well.
        longest = max((each for each, _ in runs), default=0.0)
        return max(sum(each * count for each, count in runs) / self.jobs, longest)


def span(seconds: float) -> str:
    """A length of time, as people say it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
