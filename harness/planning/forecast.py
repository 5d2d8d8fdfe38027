"""How long the remaining runs of a study will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Pair:
    """A solver on a task."""

    task: str  # labels
    solver: str
    size: float | None = None  # training points, where there are data
    limit: float = float("inf")  # seconds of solving that a run may take

    @classmethod
    def of(cls, run: Run) -> Pair:
        """The pair of a run."""
        seconds = run.limits.seconds
        limit = seconds.get("solve", float("inf")) + seconds.get("tune", 0.0)
        return cls(run.task, run.solver, run.n_train, limit)


class Forecast:
    """How long runs will take, from those that have ended.

    A pair of solver and task that has been run takes as long as the mean of its runs. One that has
    not takes as long as the same solver's other tasks, scaled by the number of training points to
    the power of one or two; else as long as other solvers on the same task; else as any run. None
    takes longer than its timeout and the largest overhead seen so far. Compilation, which a machine
    does once, counts with the least that any run took to have its code.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        # Of each pair that has been run: of how many runs, and the mean of their seconds.
        self._means: dict[tuple[str, str], tuple[int, float]] = {}
        self._sizes: dict[str, float | None] = {}
        self._overhead = 0.0
        self._least_compiling = float("inf")

    def add(
        self, pair: Pair, seconds: float, solving: float | None = None, compiling: float = 0.0
    ) -> None:
        """A run has ended after so many seconds, some spent in the solver and some compiling."""
        seconds -= compiling
        self._least_compiling = min(self._least_compiling, compiling)
        count, mean = self._means.get((pair.task, pair.solver), (0, 0.0))
        self._means[pair.task, pair.solver] = count + 1, mean + (seconds - mean) / (count + 1)
        self._sizes[pair.task] = pair.size
        if solving is not None:
            self._overhead = max(self._overhead, seconds - solving)

    def expected(self, pair: Pair) -> Interval | None:
        """Seconds that a run will take; None before any run has ended."""
        if not self._means:
            return None
        if (pair.task, pair.solver) in self._means:
            seconds = self._means[pair.task, pair.solver][1] + self._least_compiling
            return Interval(seconds, seconds)
        # Of the same solver on other tasks, of others on the same task, of any.
        scaled, on_task, others = list[float](), list[float](), list[float]()
        for (task, solver), (_, mean) in self._means.items():
            others.append(mean)
            on_task += [mean] * (task == pair.task)
            size = self._sizes[task]
            ratio = pair.size / size if size and pair.size else 1.0
            scaled += [mean * ratio, mean * ratio**2] * (solver == pair.solver)
        values, cap = scaled or on_task or others, pair.limit + self._overhead
        return Interval(*(min(each(values) + self._least_compiling, cap) for each in (min, max)))

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
