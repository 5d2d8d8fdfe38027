"""How long the remaining runs of a study will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..results.journal import Entry
from ..results.records import RecordBase
from .plan import Run

# A forecast whose ends differ by less, as a fraction or in seconds, is shown as one number.
_NARROW = 0.25
_NARROW_S = 5.0


@dataclass(frozen=True)
class Interval:
    """Seconds from ``low`` to ``high``."""

    low: float
    high: float

    def capped(self, cap: float) -> Interval:
        """The same, nowhere above the cap."""
        return Interval(min(self.low, cap), min(self.high, cap))

    def after(self, elapsed: float) -> Interval:
        """What is left of it when so many seconds have passed."""
        return Interval(max(0.0, self.low - elapsed), max(0.0, self.high - elapsed))


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
        # Of each pair that has been run: of how many runs, and the seconds of all.
        self._seconds: dict[tuple[str, str], tuple[int, float]] = {}
        self._sizes: dict[str, float | None] = {}
        self._overhead = 0.0
        self._least_compiling = float("inf")

    def add(
        self, pair: Pair, seconds: float, solving: float | None = None, compiling: float = 0.0
    ) -> None:
        """A run has ended after so many seconds, some spent in the solver and some compiling."""
        seconds -= compiling
        self._least_compiling = min(self._least_compiling, compiling)
        count, total = self._seconds.get((pair.task, pair.solver), (0, 0.0))
        self._seconds[pair.task, pair.solver] = count + 1, total + seconds
        self._sizes[pair.task] = pair.size
        if solving is not None:
            self._overhead = max(self._overhead, seconds - solving)

    def expected(self, pair: Pair) -> Interval | None:
        """Seconds that a run will take; None before any run has ended."""
        runs = self._seconds.get((pair.task, pair.solver))
        if runs:
            seconds = _mean(runs) + self._least_compiling
            return Interval(seconds, seconds)
        if not self._seconds:
            return None
        values = (
            list(self._scaled(pair))
            or [_mean(s) for (task, _), s in self._seconds.items() if task == pair.task]
            or [_mean(seconds) for seconds in self._seconds.values()]
        )
        values = [seconds + self._least_compiling for seconds in values]
        return Interval(min(values), max(values)).capped(pair.limit + self._overhead)

    def remaining(
        self, left: Mapping[Pair, int], running: Iterable[tuple[Pair, float]] = ()
    ) -> Interval | None:
        """Seconds until all is done; None before any run has ended."""
        if not self._seconds:
            return None
        runs = [(self._certain(pair), count) for pair, count in left.items() if count]
        runs += [(self._certain(pair).after(elapsed), 1) for pair, elapsed in running]
        # No run is spread over several jobs: the longest bounds the end as well.
        return Interval(
            max(self._share(each.low * n for each, n in runs), *_longest(e.low for e, _ in runs)),
            max(self._share(each.high * n for each, n in runs), *_longest(e.high for e, _ in runs)),
        )

    def _share(self, seconds: Iterable[float]) -> float:
        return sum(seconds) / self.jobs

    def _certain(self, pair: Pair) -> Interval:
        expected = self.expected(pair)
        assert expected is not None
        return expected

    def _scaled(self, pair: Pair) -> Iterable[float]:
        """The times of the same solver on other tasks, if they grew with the training points."""
        for (task, solver), seconds in self._seconds.items():
            if solver == pair.solver:
                size, ratio = self._sizes[task], 1.0
                if size and pair.size:
                    ratio = pair.size / size
                yield from (_mean(seconds) * ratio, _mean(seconds) * ratio**2)


def _mean(runs: tuple[int, float]) -> float:
    count, total = runs
    return total / count


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


def _longest(seconds: Iterable[float]) -> tuple[float]:
    return (max(seconds, default=0.0),)


def _unit(seconds: float) -> tuple[float, str]:
    """The unit in which a length of time is a number of one or two digits."""
    if seconds < 90:
        return 1.0, "s"
    return (60.0, "min") if seconds < 5400 else (3600.0, "h")
