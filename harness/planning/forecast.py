"""How long the remaining runs of a study will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..results.journal import Entry
from ..results.records import RecordBase
from .plan import Run

# A forecast whose ends differ by less, as a fraction or in seconds, is shown as one number.
_NARROW = 0.25
_NARROW_S = 5.0


class Interval(NamedTuple):
    """Seconds from ``low`` to ``high``."""

    low: float
    high: float


class Pair(NamedTuple):
    """A solver on a task, by their labels."""

    task: str
    solver: str

    @classmethod
    def of(cls, run: Run) -> Pair:
        """The pair of a run."""
        return cls(run.task, run.solver)


class Forecast:
    """How long runs will take, from those that have ended.

    A pair of solver and task that has been run takes as long as the mean of its runs. One that has
    not takes as long as the same solver on other tasks, else as any run: an interval.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        # Of each pair that has been run: of how many runs, and the mean of their seconds.
        self._means: dict[Pair, tuple[int, float]] = {}

    def add(self, pair: Pair, seconds: float) -> None:
        """A run has ended after so many seconds, without those of compiling."""
        count, mean = self._means.get(pair, (0, 0.0))
        self._means[pair] = count + 1, mean + (seconds - mean) / (count + 1)

    def expected(self, pair: Pair) -> Interval | None:
        """Seconds that a run will take; None before any run has ended."""
        if not self._means:
            return None
        known = [pair] if pair in self._means else []
        known = known or [each for each in self._means if each.solver == pair.solver]
        seconds = [self._means[each][1] for each in known or self._means]
        return Interval(min(seconds), max(seconds))

    def remaining(
        self, left: Mapping[Pair, int], running: Iterable[tuple[Pair, float]] = ()
    ) -> Interval | None:
        """Seconds until all is done; None before any run has ended."""
        if not self._means:
            return None
        runs = [(self.expected(pair), 0.0, count) for pair, count in left.items() if count]
        runs += [(self.expected(pair), elapsed, 1) for pair, elapsed in running]
        ends = []
        for end in (0, 1):
            seconds = [(max(0.0, each[end] - gone), n) for each, gone, n in runs if each]
            # No run is spread over several jobs: the longest bounds the end as well.
            longest = max((each for each, _ in seconds), default=0.0)
            ends.append(max(sum(each * n for each, n in seconds) / self.jobs, longest))
        return Interval(*ends)


def recorded_seconds(record: RecordBase | Entry) -> float:
    """What a run took by its record, but for compiling: that need not be done again."""
    phases = (record.data_s, record.wall_s, record.evaluation_s)
    # Only some kinds of studies tune.
    return sum(filter(None, (*phases, getattr(record, "tuning_wall_s", None))))


def eta_words(left: Interval) -> str:
    """Words for the time that is left: "about 3 min 20 s", "about 3 to 9 min"."""
    width = left.high - left.low
    if width <= max(_NARROW_S, _NARROW * left.low):
        return f"about {span((left.low + left.high) / 2)}"
    unit, words = _unit(left.high)
    low, high = int(left.low // unit), int(-(-left.high // unit))
    return f"about {low} to {high} {words}" if low else f"at most {high} {words}"


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


def _unit(seconds: float) -> tuple[float, str]:
    """The unit in which a length of time is a number of one or two digits."""
    if seconds < 90:
        return 1.0, "s"
    return (60.0, "min") if seconds < 5400 else (3600.0, "h")
