"""What the user sees while a study runs: a live display on a terminal, else a line per run."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from marginbench.harness.kinds import Run, kind_named
from marginbench.harness.records import EXPECTED_STATUSES, RecordBase
from marginbench.harness.words import REASON_LIMIT, plural, visible


class Progress(Protocol):
    """Told what happens; shows it."""

    def say(self, line: str) -> None:
        """Show one line that stays."""
        ...

    def begin(self, pending: Sequence[Run]) -> None:
        """These runs are to be run now."""
        ...

    def started(self, run: Run) -> None: ...

    def ended(self, record: RecordBase) -> None: ...

    def refresh(self) -> None:
        """Nothing happened for a moment; clocks may be redrawn."""
        ...

    def close(self) -> None: ...


class SilentProgress:
    """Shows nothing."""

    def say(self, line: str) -> None:
        pass

    def begin(self, pending: Sequence[Run]) -> None:
        pass

    def started(self, run: Run) -> None:
        pass

    def ended(self, record: RecordBase) -> None:
        pass

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass


class Forecast:
    """How long the remaining runs will take: the mean of like runs, else of all.

    "Like" is the same solver on the same task, else the same solver, else any run.
    """

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs
        self._seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)

    def add(self, task: str, solver: str, seconds: float) -> None:
        """A run has ended."""
        for like in ((task, solver), (solver,), ()):
            self._seconds[like].append(seconds)

    def expected(self, task: str, solver: str) -> float | None:
        """Seconds that such a run will take; None before any has ended."""
        for like in ((task, solver), (solver,), ()):
            if self._seconds.get(like):
                known = self._seconds[like]
                return sum(known) / len(known)
        return None

    def remaining(self, left: dict[tuple[str, str], int]) -> float | None:
        """Seconds until so many runs of each (task, solver) are done."""
        total = 0.0
        for (task, solver), count in left.items():
            each = self.expected(task, solver)
            if each is None:
                return None
            total += count * each
        return total / self._jobs


class _Tally:
    """What has been run, what is running and what is left."""

    def __init__(self, jobs: int) -> None:
        self.forecast = Forecast(jobs)
        self.to_do = 0
        self.done = 0
        self.left: dict[tuple[str, str], int] = defaultdict(int)
        self.running: dict[tuple[str, str, int], float] = {}

    def begin(self, pending: Sequence[Run]) -> None:
        self.to_do, self.done = len(pending), 0
        for run in pending:
            self.left[run.task, run.solver] += 1

    def started(self, run: Run) -> None:
        self.running[run.task, run.solver, run.seed] = time.monotonic()

    def ended(self, record: RecordBase) -> None:
        since = self.running.pop((record.task, record.solver, record.seed))
        self.forecast.add(record.task, record.solver, time.monotonic() - since)
        self.left[record.task, record.solver] -= 1
        self.done += 1

    def eta(self) -> str:
        """Words for the time that is left; empty while nothing is known or nothing is left."""
        remaining = self.forecast.remaining(self.left)
        return "" if remaining is None or self.done == self.to_do else f"about {span(remaining)}"


class PlainProgress:
    """One line per finished run, for logs and pipes.

    Parameters
    ----------
    jobs : int
        Runs at the same time.
    stream : text file
        Standard error by default; what a command prints as its result stays apart.
    """

    def __init__(self, jobs: int = 1, stream: TextIO | None = None) -> None:
        self._tally = _Tally(jobs)
        self._stream = sys.stderr if stream is None else stream

    def say(self, line: str) -> None:
        try:
            print(visible(line), file=self._stream, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            # The runs go on: their records are elsewhere, and tell the same.
            pass

    def begin(self, pending: Sequence[Run]) -> None:
        self._tally.begin(pending)
        if pending:
            self.say(f"{plural(len(pending), 'run')} to do")

    def started(self, run: Run) -> None:
        self._tally.started(run)

    def ended(self, record: RecordBase) -> None:
        self._tally.ended(record)
        eta = self._tally.eta()
        left = f", {eta} left" if eta else ""
        self.say(f"[{self._tally.done}/{self._tally.to_do}] {outcome_line(record)}{left}")

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass


class LiveProgress:
    """What runs right now, redrawn in place, under a line for each finished run.

    Parameters
    ----------
    jobs : int
        Runs at the same time.
    """

    def __init__(self, jobs: int = 1, console: Console | None = None) -> None:
        self._tally = _Tally(jobs)
        self._console = Console(stderr=True) if console is None else console
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._drawn = 0.0

    def say(self, line: str) -> None:
        # As Text: brackets in names are no markup.
        self._console.print(Text(visible(line)))

    def begin(self, pending: Sequence[Run]) -> None:
        self._tally.begin(pending)
        self._live.start()
        self.refresh()

    def started(self, run: Run) -> None:
        self._tally.started(run)
        self.refresh()

    def ended(self, record: RecordBase) -> None:
        self._tally.ended(record)
        style = "" if record.status in EXPECTED_STATUSES else "red"
        counter = f"[{self._tally.done}/{self._tally.to_do}] "
        self._console.print(Text(visible(counter + outcome_line(record)), style=style))

    def refresh(self) -> None:
        now = time.monotonic()
        if self._live.is_started and now - self._drawn > 0.2:
            self._drawn = now
            self._live.update(self._picture(now), refresh=True)

    def close(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def _picture(self, now: float) -> Group:
        tally = self._tally
        lines = [
            Text(f"  {task} · {solver} · seed {seed}  {span(now - since)}")
            for (task, solver, seed), since in tally.running.items()
        ]
        eta = tally.eta()
        left = tally.to_do - tally.done
        lines.append(Text(f"{left} of {tally.to_do} runs left" + (f", {eta}" if eta else "")))
        return Group(*lines)


def choose_progress(jobs: int) -> Progress:
    """The live display on a terminal, plain lines elsewhere."""
    return LiveProgress(jobs) if sys.stderr.isatty() else PlainProgress(jobs)


def outcome_line(record: RecordBase) -> str:
    """One finished run in one line."""
    name = f"{record.task} · {record.solver} · seed {record.seed}: {record.status}"
    line = ", ".join([name, *kind_named(record.kind).headline(record)])
    return f"{line} ({visible(record.reason, REASON_LIMIT)})" if record.reason else line


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
