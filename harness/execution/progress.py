"""The progress of a study: a live display on a terminal, else a line per run, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ..jobs import Phase
from ..planning.forecast import Forecast, Pair, span
from ..planning.plan import Run, kind_named
from ..results.journal import Entry
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..words import REASON_LIMIT, plural, visible

# Seconds between two drawings of the live display.
_REDRAW_S = 0.2
# What a run does before its solver solves.
_DOING = {"import": "importing ", "data": "loading ", "compile": "compiling ", "tune": "tuning "}
# Runs at work that the live display names: those of a cluster are too many for a terminal.
_MOST_RUNS = 20
#: Runs that are recorded, each with what is recorded.
Recorded = Sequence[tuple[Run, Entry]]


class Running(NamedTuple):
    """A run that has begun: when, and on which machine (empty: this one)."""

    key: str
    pair: Pair
    since: float
    machine: str = ""


class Progress:
    """Counts what happens while a study runs; :meth:`show` shows nothing here.

    Parameters
    ----------
    jobs : int
        Runs at the same time.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.forecast = Forecast(jobs)
        self.to_do = self.done = self.failed = 0
        self.left: dict[Pair, int] = defaultdict(int)
        self.running: dict[tuple[str, str, int], Running] = {}

    def show(self, event: str, run: Run | RecordBase | None = None, **values: Any) -> None:
        """Show what has happened, to a run or to all; ``docs/command-line.md`` lists the events."""

    def say(self, line: str) -> None:
        """Show one line that stays."""
        self.show("message", text=visible(line))

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        """These runs are to be run now; others are recorded, and show how long such runs take."""
        self.to_do, self.done, self.failed = len(pending), 0, 0
        self.left.update(Counter((run.task, run.solver) for run in pending))
        for run, entry in recorded:
            self.forecast.add((run.task, run.solver), entry.seconds)
        self.show("begin", to_do=self.to_do, recorded=len(recorded))

    def started(self, run: Run, machine: str = "") -> None:
        """A run begins; ``machine`` is empty for this machine."""
        pair = (run.task, run.solver)
        self.left[pair] -= 1
        self.running[run.cell] = Running(run.key, pair, time.monotonic(), machine)
        # A cluster tells only by what it takes how many runs it does at a time.
        self.forecast.jobs = max(self.forecast.jobs, len(self.running))
        self.show("started", run, machine=machine)

    def ended(self, record: RecordBase) -> None:
        """A run has ended."""
        ran = self.running.pop((record.task, record.solver, record.seed))
        self.forecast.add(ran.pair, time.monotonic() - ran.since - (record.compile_s or 0.0))
        self.done += 1
        self.failed += record.status not in EXPECTED_STATUSES
        self.show(
            "ended",
            record,
            machine=ran.machine,
            status=record.status,
            reason=visible(record.reason, REASON_LIMIT),
            wall_s=record.wall_s,
            done=self.done,
            failed=self.failed,
            running=len(self.running),
            to_do=self.to_do,
        )

    def recorded(self, run: Run, record: Entry) -> None:
        """Another command has recorded a run that was to be done here."""
        self.left[(run.task, run.solver)] -= 1
        self.to_do -= 1
        self.forecast.add((run.task, run.solver), record.seconds)
        self.show("recorded", run, status=record.status, to_do=self.to_do)

    def refresh(self, phases: Mapping[str, Phase] | None = None) -> None:
        """Nothing happened for a moment; clocks may be redrawn.

        ``phases`` are those of the jobs at work, by the key of a run.
        """

    def close(self) -> None:
        """No more runs."""
        self.show("end", done=self.done, failed=self.failed, to_do=self.to_do)

    def remaining(self) -> float | None:
        """Seconds that are left; None if none are, or before any run has ended."""
        now = time.monotonic()
        running = [(ran.pair, now - ran.since) for ran in self.running.values()]
        return self.forecast.remaining(self.left, running) if self.done < self.to_do else None

    def eta(self, words: str) -> str:
        """The time that is left in these words with {}; empty if it is none or unknown."""
        remaining = self.remaining()
        return "" if remaining is None else words.format(f"about {span(remaining)}")


class PlainProgress(Progress):
    """One line per finished run, for logs and pipes.

    By default on standard error; what a command prints as its result stays apart.
    """

    def __init__(self, jobs: int = 1, stream: TextIO | None = None) -> None:
        super().__init__(jobs)
        self._stream = sys.stderr if stream is None else stream

    def show(self, event: str, run: Run | RecordBase | None = None, **values: Any) -> None:
        if event == "message":
            self._print(values["text"])
        elif event == "begin" and self.to_do:
            self._print(f"{plural(self.to_do, 'run')} to do")
        elif isinstance(run, RecordBase):
            on = values["machine"] and f", on {values['machine']}"
            line = f"[{self.done}/{self.to_do}] {outcome_line(run)}{on}{self.eta(', {} left')}"
            self._print(visible(line))

    def _print(self, line: str) -> None:
        try:
            print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            # The runs go on: their records are elsewhere, and tell the same.
            pass


class JsonProgress(PlainProgress):
    """One JSON object on one line for each event, for programs."""

    def show(self, event: str, run: Run | RecordBase | None = None, **values: Any) -> None:
        shown = {"event": event, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        if run is not None:
            values = {
                name: getattr(run, name) for name in ("task", "solver", "seed", "key")
            } | values
        if event == "ended":
            values["left_s"] = self.remaining()
        self._print(json.dumps({**shown, **values}, ensure_ascii=False))


class LiveProgress(Progress):
    """What runs right now, redrawn in place, under a line for each finished run."""

    def __init__(self, jobs: int = 1, console: Console | None = None) -> None:
        super().__init__(jobs)
        self._console = Console(stderr=True) if console is None else console
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._drawn = 0.0

    def show(self, event: str, run: Run | RecordBase | None = None, **values: Any) -> None:
        # As Text: brackets in names are no markup.
        if event == "message":
            self._console.print(Text(values["text"]))
        elif event in ("begin", "started"):
            self.refresh()
        elif isinstance(run, RecordBase):
            style = "" if run.status in EXPECTED_STATUSES else "red"
            line = f"[{self.done}/{self.to_do}] {outcome_line(run)}"
            self._console.print(Text(visible(line), style=style))
        elif event == "end" and self._live.is_started:
            self._live.stop()

    def refresh(self, phases: Mapping[str, Phase] | None = None) -> None:
        now = time.monotonic()
        if self.to_do and now - self._drawn > _REDRAW_S:
            self._drawn = now
            self._live.start()
            self._live.update(self._picture(now, phases or {}), refresh=True)

    def _picture(self, now: float, phases: Mapping[str, Phase]) -> Group:
        lines = [
            f"  {task} · {solver} · seed {seed}  {_DOING.get(phases.get(ran.key, ''), '')}"
            f"{span(now - ran.since)}"
            for (task, solver, seed), ran in islice(self.running.items(), _MOST_RUNS)
        ]
        if len(self.running) > _MOST_RUNS:
            lines.append(f"  and {len(self.running) - _MOST_RUNS} more")
        failed = f", {self.failed} failed" if self.failed else ""
        left = f"{self.to_do - self.done} of {self.to_do} runs left{failed}{self.eta(', {}')}"
        return Group(*map(Text, [*lines, left]))


def choose_progress(jobs: int) -> Progress:
    """The live display on a terminal, plain lines elsewhere."""
    return LiveProgress(jobs) if sys.stderr.isatty() else PlainProgress(jobs)


def outcome_line(record: RecordBase) -> str:
    """One finished run in one line."""
    name = f"{record.task} · {record.solver} · seed {record.seed}: {record.status}"
    line = ", ".join([name, *kind_named(record.kind).headline(record)])
    return f"{line} ({visible(record.reason, REASON_LIMIT)})" if record.reason else line
