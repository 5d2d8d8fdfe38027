"""The progress of a study: a live display on a terminal, else a line per run, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ..jobs import Phase
from ..planning.forecast import (
    Forecast,
    Interval,
    Pair,
    eta_words,
    recorded_seconds,
    span,
)
from ..planning.plan import Run, kind_named
from ..results.journal import Entry
from ..results.records import EXPECTED_STATUSES, RecordBase
from ..words import REASON_LIMIT, plural, visible

# Seconds between two drawings of the live display.
_REDRAW_S = 0.2
# What a run does before its solver solves.
_DOING = {"import": "importing ", "data": "loading ", "compile": "compiling ", "tune": "tuning "}
# Machines that the live display shows.
_MOST_MACHINES = 20
#: Runs that are recorded, each with what is recorded.
Recorded = Sequence[tuple[Run, Entry | RecordBase]]
NO_PHASES: Mapping[str, Phase] = MappingProxyType({})


@dataclass(frozen=True)
class Running:
    """A run that has begun: when, and on which machine (empty: this one)."""

    key: str
    pair: Pair
    since: float
    machine: str = ""


class Progress:
    """Counts what happens while a study runs, and shows nothing.

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
        # Of each machine, how many runs have ended there.
        self.ended_on: Counter[str] = Counter()

    def say(self, line: str) -> None:
        """Show one line that stays."""

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        """These runs are to be run now; others are recorded, and show how long such runs take."""
        self.to_do, self.done, self.failed = len(pending), 0, 0
        self.left.update(Counter((run.task, run.solver) for run in pending))
        for run, entry in recorded:
            if entry.wall_s is not None:
                self.forecast.add((run.task, run.solver), recorded_seconds(entry))

    def started(self, run: Run, machine: str = "") -> None:
        """A run begins; ``machine`` is empty for this machine."""
        pair = (run.task, run.solver)
        self.left[pair] -= 1
        self.running[run.cell] = Running(run.key, pair, time.monotonic(), machine)
        # A cluster tells only by what it takes how many runs it does at a time.
        self.forecast.jobs = max(self.forecast.jobs, len(self.running))

    def ended(self, record: RecordBase) -> Running:
        """A run has ended; returns how it was running."""
        ran = self.running.pop((record.task, record.solver, record.seed))
        seconds = time.monotonic() - ran.since
        self.forecast.add(ran.pair, seconds - (record.compile_s or 0.0))
        self.done += 1
        self.failed += record.status not in EXPECTED_STATUSES
        self.ended_on[ran.machine] += 1
        return ran

    def recorded(self, run: Run, record: Entry) -> None:
        """Another command has recorded a run that was to be done here."""
        pair = (run.task, run.solver)
        self.left[pair] -= 1
        self.to_do -= 1
        self.forecast.add(pair, recorded_seconds(record))

    def refresh(self, phases: Mapping[str, Phase] = NO_PHASES) -> None:
        """Nothing happened for a moment; clocks may be redrawn.

        ``phases`` are those of the jobs at work, by the key of a run.
        """

    def close(self) -> None:
        """No more runs."""

    def machines(self) -> list[str]:
        """A line for each machine, if there are several."""
        running = Counter(ran.machine for ran in self.running.values())
        names = sorted({*running, *self.ended_on})
        if len(names) < 2:
            return []
        return [f"{name}: {running[name]} running, {self.ended_on[name]} done" for name in names]

    def remaining(self) -> Interval | None:
        """Seconds that are left; None before any run has ended."""
        now = time.monotonic()
        running = [(ran.pair, now - ran.since) for ran in self.running.values()]
        return self.forecast.remaining(self.left, running)

    def eta(self) -> str:
        """Words for the time that is left; empty if none is left, or before any run has ended."""
        remaining = self.remaining() if self.done < self.to_do else None
        return "" if remaining is None else eta_words(remaining)


class PlainProgress(Progress):
    """One line per finished run, for logs and pipes.

    By default on standard error; what a command prints as its result stays apart.
    """

    def __init__(self, jobs: int = 1, stream: TextIO | None = None) -> None:
        super().__init__(jobs)
        self._stream = sys.stderr if stream is None else stream

    def say(self, line: str) -> None:
        self._print(visible(line))

    def _print(self, line: str) -> None:
        try:
            print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            # The runs go on: their records are elsewhere, and tell the same.
            pass

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        super().begin(pending, recorded)
        if pending:
            self.say(f"{plural(len(pending), 'run')} to do")

    def ended(self, record: RecordBase) -> Running:
        ran, eta = super().ended(record), self.eta()
        left = f", on {ran.machine}" * bool(ran.machine) + f", {eta} left" * bool(eta)
        self.say(f"[{self.done}/{self.to_do}] {outcome_line(record)}{left}")
        return ran


class JsonProgress(PlainProgress):
    """One JSON object on one line for each event, for programs; ``docs/cluster.md`` lists them."""

    def say(self, line: str) -> None:
        self._emit("message", text=visible(line))

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        Progress.begin(self, pending, recorded)
        self._emit("begin", to_do=len(pending), recorded=len(recorded))

    def started(self, run: Run, machine: str = "") -> None:
        super().started(run, machine)
        self._emit("started", **_named(run), machine=machine)

    def ended(self, record: RecordBase) -> Running:
        ran = Progress.ended(self, record)
        left = self.remaining() if self.done < self.to_do else None
        self._emit(
            "ended",
            **_named(record),
            machine=ran.machine,
            status=record.status,
            reason=visible(record.reason, REASON_LIMIT),
            wall_s=record.wall_s,
            done=self.done,
            failed=self.failed,
            running=len(self.running),
            to_do=self.to_do,
            left_s=left,
        )
        return ran

    def recorded(self, run: Run, record: Entry) -> None:
        super().recorded(run, record)
        self._emit("recorded", **_named(run), status=record.status, to_do=self.to_do)

    def close(self) -> None:
        self._emit("end", done=self.done, failed=self.failed, to_do=self.to_do)

    def _emit(self, event: str, **values: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._print(json.dumps({"event": event, "time": now, **values}, ensure_ascii=False))


def _named(run: Run | RecordBase) -> dict[str, Any]:
    return {"task": run.task, "solver": run.solver, "seed": run.seed, "key": run.key}


class LiveProgress(Progress):
    """What runs right now, redrawn in place, under a line for each finished run."""

    def __init__(self, jobs: int = 1, console: Console | None = None) -> None:
        super().__init__(jobs)
        self._console = Console(stderr=True) if console is None else console
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._drawn = 0.0

    def say(self, line: str) -> None:
        # As Text: brackets in names are no markup.
        self._console.print(Text(visible(line)))

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        super().begin(pending, recorded)
        self.refresh()

    def started(self, run: Run, machine: str = "") -> None:
        super().started(run, machine)
        self.refresh()

    def ended(self, record: RecordBase) -> Running:
        ran = super().ended(record)
        style = "" if record.status in EXPECTED_STATUSES else "red"
        counter = f"[{self.done}/{self.to_do}] "
        self._console.print(Text(visible(counter + outcome_line(record)), style=style))
        return ran

    def refresh(self, phases: Mapping[str, Phase] = NO_PHASES) -> None:
        now = time.monotonic()
        if self.to_do and now - self._drawn > _REDRAW_S:
            self._drawn = now
            self._live.start()
            self._live.update(self._picture(now, phases), refresh=True)

    def close(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def _picture(self, now: float, phases: Mapping[str, Phase]) -> Group:
        lines = []
        for (task, solver, seed), ran in self.running.items():
            doing = _DOING.get(phases.get(ran.key, ""), "")
            words = f"  {task} · {solver} · seed {seed}  {doing}{span(now - ran.since)}"
            lines.append(Text(words))
        if self.machines():
            # Those of a cluster are too many for a terminal.
            lines = [Text(f"  {line}") for line in self.machines()[:_MOST_MACHINES]]
        eta = self.eta()
        left = self.to_do - self.done
        failed = f", {self.failed} failed" if self.failed else ""
        words = f"{left} of {self.to_do} runs left{failed}" + (f", {eta}" if eta else "")
        lines.append(Text(words))
        return Group(*lines)


def choose_progress(jobs: int) -> Progress:
    """The live display on a terminal, plain lines elsewhere."""
    return LiveProgress(jobs) if sys.stderr.isatty() else PlainProgress(jobs)


def outcome_line(record: RecordBase) -> str:
    """One finished run in one line."""
    name = f"{record.task} · {record.solver} · seed {record.seed}: {record.status}"
    line = ", ".join([name, *kind_named(record.kind).headline(record)])
    return f"{line} ({visible(record.reason, REASON_LIMIT)})" if record.reason else line
