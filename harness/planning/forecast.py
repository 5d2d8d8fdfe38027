"""How long the remaining runs of a study will take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

# A forecast whose ends differ by less, as a fraction or in seconds, is shown as one number.
_NARROW = 0.25
_NARROW_S = 5.0
#: The labels of a task and of a solver.
Pair: TypeAlias = tuple[str, str]
#: The least and the most seconds.
Interval: TypeAlias = tuple[float, float]


class Forecast:
    """How long runs will take, from those that have ended.

    A pair of task and solver that has been run takes as long as the mean of its runs. One that has
    not takes as long as the same solver on other tasks, else as any run: an interval.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        # Of each pair that has been run: of how many runs, and their seconds together.
        self._ended: dict[Pair, tuple[int, float]] = {}

    def add(self, pair: Pair, seconds: float | None) -> None:
        """A run has ended after so many seconds, without those of compiling; None: at once."""
        if seconds is None:
            return
        count, total = self._ended.get(pair, (0, 0.0))
        self._ended[pair] = count + 1, total + seconds

    def remaining(
        self, left: Mapping[Pair, int], running: Iterable[tuple[Pair, float]] = ()
    ) -> Interval | None:
        """Seconds until all is done; None before any run has ended."""
        means = {pair: total / count for pair, (count, total) in self._ended.items()}
        if not means:
            return None

        def bound(of: Callable[[Iterable[float]], float]) -> float:
            """What is left if runs of unknown length take the least or the most that may be."""

            def expected(pair: Pair) -> float:
                if pair in means:
                    return means[pair]
                alike = [mean for (_, solver), mean in means.items() if solver == pair[1]]
                return of(alike or means.values())

            runs = [(expected(pair), count) for pair, count in left.items() if count]
            runs += [(max(0.0, expected(pair) - gone), 1) for pair, gone in running]
            # No run is spread over several jobs: the longest bounds the end as well.
            longest = max((each for each, _ in runs), default=0.0)
            return max(sum(each * count for each, count in runs) / self.jobs, longest)

        return bound(min), bound(max)


def eta_words(left: Interval) -> str:
    """Words for the time that is left: "about 3 min 20 s", "about 3 min 00 s to 8 min 50 s"."""
    low, high = left
    if high - low <= max(_NARROW_S, _NARROW * low):
        return f"about {span((low + high) / 2)}"
    return f"about {span(low)} to {span(high)}"


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
