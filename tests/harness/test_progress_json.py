"""Events for programs: one JSON object a line."""

from __future__ import annotations

import io
import json
from typing import Any

from marginbench.harness.execution.progress import JsonProgress, PlainProgress
from marginbench.harness.jobs import Limits
from marginbench.harness.planning.plan import Details, Run
from marginbench.harness.planning.preflight import DatasetWork
from marginbench.harness.results.svm import Record


def planned(seed: int) -> Run:
    details = Details(DatasetWork("digits", {}), {})
    return Run(f"key{seed}", "digits", "SMO", seed, Limits({}, 1.0), lambda _: details)


def record(seed: int, **values: Any) -> Record:
    return Record(
        key=f"key{seed}", study="s", task="digits", dataset="d", solver="SMO", solver_class="c",
        seed=seed, **values,
    )  # fmt: skip


def test_a_study_as_events() -> None:
    stream = io.StringIO()
    progress = JsonProgress(stream=stream)
    progress.say("two\nlines")
    progress.begin([planned(0), planned(1)])
    progress.started(planned(0), "node1")
    progress.ended(record(0, status="crashed", reason="lost"))
    progress.started(planned(1), "node2")
    progress.refresh()
    progress.ended(record(1, status="converged", wall_s=1.5))
    progress.close()
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        *("message", "begin", "started", "ended", "started", "ended", "end")
    ]
    assert all(event["time"].endswith("+00:00") for event in events)
    assert events[1]["to_do"] == 2
    first, last = events[3], events[5]
    assert (first["machine"], first["status"], first["reason"]) == ("node1", "crashed", "lost")
    assert (first["done"], first["failed"], first["running"], first["to_do"]) == (1, 1, 0, 2)
    assert len(first["left_s"]) == 2
    assert (last["key"], last["wall_s"], last["left_s"]) == ("key1", 1.5, None)
    assert (events[6]["done"], events[6]["failed"]) == (2, 1)


def test_a_line_names_the_machine_of_a_cluster() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream=stream)
    progress.begin([planned(0)])
    progress.started(planned(0), "node1")
    progress.ended(record(0, status="converged"))
    assert stream.getvalue().splitlines()[-1].endswith("converged, on node1")
