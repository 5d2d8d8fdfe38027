"""What happens while a study runs, for programs: one JSON object an event."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from ..planning.plan import Run
from ..results.journal import Entry
from ..results.records import RecordBase
from ..words import REASON_LIMIT, visible
from .jobs import Phase
from .outcomes import Ending
from .progress import NO_PHASES, Tally


class JsonProgress:
    """One JSON object on one line for each event; ``docs/cluster.md`` lists them.

    Parameters
    ----------
    jobs : int
        Runs at the same time.
    stream : text file
        Standard error by default.
    """

    def __init__(self, jobs: int = 1, stream: TextIO | None = None) -> None:
        self._tally = Tally(jobs)
        self._stream = sys.stderr if stream is None else stream

    def say(self, line: str) -> None:
        self._tell("message", text=visible(line))

    def begin(self, pending: Sequence[Run], recorded: Sequence[tuple[Run, Ending]] = ()) -> None:
        self._tally.begin(pending, recorded)
        self._tell("begin", to_do=len(pending), recorded=len(recorded))

    def started(self, run: Run, machine: str = "") -> None:
        self._tally.started(run, machine)
        self._tell(
            "started", task=run.task, solver=run.solver, seed=run.seed, key=run.key, machine=machine
        )

    def ended(self, record: RecordBase) -> None:
        tally = self._tally
        ran = tally.ended(record)
        left = tally.remaining() if tally.done < tally.to_do else None
        self._tell(
            "ended",
            task=record.task,
            solver=record.solver,
            seed=record.seed,
            key=record.key,
            machine=ran.machine,
            status=record.status,
            reason=visible(record.reason, REASON_LIMIT),
            wall_s=record.wall_s,
            done=tally.done,
            failed=tally.failed,
            running=len(tally.running),
            to_do=tally.to_do,
            left_s=None if left is None else [left.low, left.high],
        )

    def recorded(self, run: Run, record: Entry) -> None:
        self._tally.recorded(run, record)
        self._tell(
            "recorded",
            task=run.task,
            solver=run.solver,
            seed=run.seed,
            key=run.key,
            status=record.status,
            to_do=self._tally.to_do,
        )

    def refresh(self, phases: Mapping[str, Phase] = NO_PHASES) -> None:
        pass

    def close(self) -> None:
        self._tell("end", done=self._tally.done, failed=self._tally.failed, to_do=self._tally.to_do)

    def _tell(self, event: str, **values: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"event": event, "time": now, **values}, ensure_ascii=False)
        try:
            print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            # The runs go on: their records are elsewhere, and tell the same.
            pass
