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

from marginbench.harness.forecast import Forecast, Pair, eta_words, recorded_seconds, span
from marginbench.harness.kinds import Run, kind_named
from marginbench.harness.outcomes import Ending
from marginbench.harness.records import EXPECTED_STATUSES, RecordBase
from marginbench.harness.words import REASON_LIMIT, plural, visible

# A forecast that took longer, in seconds, is made again only after so many times its own time.
_QUICK, _REST = 0.001, 20


class Progress(Protocol):
    """Told what happens; shows it."""

    def say(self, line: str) -> None:
        """Show one line that stays."""
        ...

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]] = ()) -> None:
        """These runs are to be run now; others are recorded, and tell how long such runs take."""
        ...

    def started(self, run: Run) -> None: ...

    def ended(self, record: RecordBase) -> None: ...

    def recorded(self, run: Run, record: RecordBase) -> None:
        """Another command has recorded a run that was to be done here."""
        ...

    def refresh(self) -> None:
        """Nothing happened for a moment; clocks may be redrawn."""
        ...

    def close(self) -> None: ...


class SilentProgress:
    """Shows nothing."""

    def say(self, line: str) -> None:
        pass

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]] = ()) -> None:
        pass

    def started(self, run: Run) -> None:
        pass

    def ended(self, record: RecordBase) -> None:
        pass

    def recorded(self, run: Run, record: RecordBase) -> None:
        pass

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass


class _Tally:
    """What has been run, what is running and what is left."""

    def __init__(self, jobs: int) -> None:
        self.forecast = Forecast(jobs)
        self.to_do = 0
        self.done = 0
        self.left: dict[Pair, int] = defaultdict(int)
        self.running: dict[tuple[str, str, int], tuple[Pair, float]] = {}
        self._eta, self._next_eta = "", 0.0

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]]) -> None:
        self.to_do, self.done = len(pending), 0
        for run in pending:
            self.left[Pair.of(run)] += 1
        for run, ending in recorded:
            if ending.solving_s is not None:
                self.forecast.add(Pair.of(run), ending.seconds, ending.solving_s)

    def started(self, run: Run) -> None:
        pair = Pair.of(run)
        self.left[pair] -= 1
        self.running[run.task, run.solver, run.seed] = pair, time.monotonic()

    def ended(self, record: RecordBase) -> None:
        pair, since = self.running.pop((record.task, record.solver, record.seed))
        self.forecast.add(pair, time.monotonic() - since, record.wall_s)
        self.done += 1

    def recorded(self, run: Run, record: RecordBase) -> None:
        pair = Pair.of(run)
        self.left[pair] -= 1
        self.to_do -= 1
        self.forecast.add(pair, recorded_seconds(record), record.wall_s)

    def eta(self) -> str:
        """Words for the time that is left; empty while nothing is known or nothing is left."""
        now = time.monotonic()
        if self.done == self.to_do:
            return ""
        if now >= self._next_eta:
            running = [(pair, now - since) for pair, since in self.running.values()]
            remaining = self.forecast.remaining(self.left, running)
            self._eta = "" if remaining is None else eta_words(remaining)
            took = time.monotonic() - now
            self._next_eta = now + _REST * took if took > _QUICK else now
        return self._eta


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

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]] = ()) -> None:
        self._tally.begin(pending, recorded)
        if pending:
            self.say(f"{plural(len(pending), 'run')} to do")

    def started(self, run: Run) -> None:
        self._tally.started(run)

    def ended(self, record: RecordBase) -> None:
        self._tally.ended(record)
        eta = self._tally.eta()
        left = f", {eta} left" if eta else ""
        self.say(f"[{self._tally.done}/{self._tally.to_do}] {outcome_line(record)}{left}")

    def recorded(self, run: Run, record: RecordBase) -> None:
        self._tally.recorded(run, record)

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

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]] = ()) -> None:
        self._tally.begin(pending, recorded)
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

    def recorded(self, run: Run, record: RecordBase) -> None:
        self._tally.recorded(run, record)

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
            for (task, solver, seed), (_, since) in tally.running.items()
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
