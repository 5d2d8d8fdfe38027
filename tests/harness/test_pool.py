"""The local pool may prepare a job while the end of the one before is dealt with."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from marginbench.harness.execution.local import LocalPool
from marginbench.harness.jobs import Ended, Job, Limits, PhaseMessage, Started, Work

pytestmark = pytest.mark.posix


@dataclass(frozen=True)
class Clocked(Work):
    """Leaves a note that it is prepared; its result is the time at which its clocks start."""

    note: Path
    fails: bool = False

    def run(self, send):
        self.note.touch()
        send(PhaseMessage("solve"))
        if self.fails:
            raise ValueError("as told")
        return time.monotonic()


def test_clocks_of_a_job_start_when_the_one_before_is_dealt_with(tmp_path):
    notes = [tmp_path / name for name in ("fails", "first", "second")]
    drawn = []
    told = []

    def jobs():
        for note in notes:
            drawn.append(note.name)
            yield Job(note.name, Clocked(note, note.name == "fails"), Limits({}, 1000.0))

    with LocalPool(1, tmp_path / "logs") as pool:
        for event in pool.execute(jobs()):
            if isinstance(event, Started):
                told.append(("started", event.job.tag))
            if not isinstance(event, Ended):
                continue
            told.append((event.outcome.status, event.job.tag))
            if event.job.tag == "fails":
                # What it has come to may be of importance to the limits of the next one.
                assert drawn == ["fails"]
            elif event.job.tag == "first":
                assert drawn == ["fails", "first", "second"]
                until = time.monotonic() + 60.0
                while not notes[2].exists() and time.monotonic() < until:
                    time.sleep(0.01)
                assert notes[2].exists()
                time.sleep(0.1)
                dealt_with = time.monotonic()
            else:
                assert event.outcome.value >= dealt_with
    assert told == [
        ("started", "fails"),
        ("failed", "fails"),
        ("started", "first"),
        ("done", "first"),
        ("started", "second"),
        ("done", "second"),
    ]
