"""An engine in a session: planned here, run there, and recorded as what it was."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.errors import EngineError
from marginbench.harness.execution.engines.engine import DaskExecutor
from marginbench.harness.execution.engines.machines import Machine, this_program
from marginbench.harness.execution.engines.news import Gone, Joined, Left, News, Replied, Reply
from marginbench.harness.execution.engines.parcels import Parcel
from marginbench.harness.execution.jobs import Ended, Event, Executor, Job, Limits, Outcome, Started
from marginbench.harness.execution.session import run_study
from marginbench.harness.planning.preflight import DatasetInfo, DatasetWork, DescribeWork
from marginbench.harness.results.store import RecordStore
from marginbench.harness.study.svm import Study

SETTING = {"processor": "Xeon", "cores_logical": 8, "memory_mb": 32_000}
FOUND = {"status": "budget", "n_iter": 5, "wall_s": 0.5, "test_error": 0.1}


class FakeLink:
    """Stands for a cluster: answers what it is told to, in turn."""

    def __init__(self, *news: list[News] | Reply) -> None:
        self.script = list(news)
        self.inbox: list[News] = []
        self.sent: dict[str, Parcel] = {}
        self.recalled: list[str] = []

    def news(self, seconds: float) -> list[News]:
        found, self.inbox = self.inbox, []
        if not found and self.script and isinstance(self.script[0], list):
            found = self.script.pop(0)
        return found

    def send(self, address: str, number: str, parcel: Parcel) -> None:
        self.sent[number] = parcel
        if self.script and isinstance(self.script[0], Reply):
            self.inbox.append(Replied(number, self.script.pop(0)))

    def recall(self, number: str) -> None:
        self.recalled.append(number)


class FakeEngine:
    """An engine on such a link."""

    def __init__(self, link: FakeLink) -> None:
        self.link = link
        self.opened_times = 0
        self.said: list[str] = []
        self.wrong = ""

    def check(self) -> None:
        if self.wrong:
            raise EngineError(self.wrong)

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        self.opened_times += 1
        yield DaskExecutor(self.link, "tcp://there", self.said.append)  # type: ignore[arg-type]


class Planner:
    """Answers what is asked before planning; there are no runs for it."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        for job in jobs:
            yield Started(job)
            if isinstance(job.work, DatasetWork):
                found: Any = DatasetInfo("f" * 64, 100, 50, 3, False, 2, "", "")
            else:
                assert isinstance(job.work, DescribeWork)
                found = job.work.run(lambda message: None)
            yield Ended(job, Outcome("done", found))

    def close(self) -> None:
        pass


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    task = {"dataset": "digits", "gamma": 0.1, "C": 1.0, "reference": False}
    return make_study(task=[task], solver=[{"name": "Pegasos"}], seeds=2)


def joined(name: str) -> Joined:
    return Joined(f"tcp://{name}", Machine(name, dict(SETTING), this_program()))


def test_records_are_of_the_machine_where_the_run_took_place(study: Study, tmp_path: Path) -> None:
    done = [Reply(Outcome("done", dict(FOUND))) for _ in range(2)]
    engine = FakeEngine(FakeLink([joined("node1")], *done))
    summary = run_study(study, tmp_path, executor=Planner(), engine=engine)
    assert summary.statuses == {"budget": 2}
    store = RecordStore(tmp_path / "runs")
    records = [store.read(path) for path in store.paths()]
    assert [json.loads(record.environment) for record in records] == [SETTING] * 2
    assert {record.jobs for record in records} == {1}
    # No host is named where all went well.
    assert not any("node1" in str(record.row()) for record in records)
    # Nothing is left to do: no cluster is started for it.
    again = FakeEngine(FakeLink())
    run_study(study, tmp_path, executor=Planner(), engine=again)
    assert (engine.opened_times, again.opened_times) == (1, 0)


def test_a_scheduler_that_is_gone_ends_the_command_and_recalls_what_runs(
    study: Study, tmp_path: Path
) -> None:
    done = Reply(Outcome("done", dict(FOUND)))
    link = FakeLink([joined("node1")], done, [Gone("OSError: no route")])
    with pytest.raises(EngineError) as raised:
        run_study(study, tmp_path, executor=Planner(), engine=FakeEngine(link))
    assert str(raised.value) == (
        "tcp://there: the Dask scheduler is gone (OSError: no route); what is recorded stays: run "
        "the same command again to resume"
    )
    assert raised.value.exit_code == 4
    assert len(RecordStore(tmp_path / "runs").paths()) == 1
    # The one of which nothing had come back.
    assert link.recalled == list(link.sent)[1:]


def test_what_keeps_a_cluster_from_opening_is_told_before_anything_is_planned(
    study: Study, tmp_path: Path
) -> None:
    engine = FakeEngine(FakeLink())
    engine.wrong = "tcp://there: no Dask scheduler answers there"
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        run_study(study, tmp_path, executor=Planner(), engine=engine)
    assert not (tmp_path / "study.json").exists()


def test_a_run_lost_with_its_worker_is_recorded_once(study: Study, tmp_path: Path) -> None:
    link = FakeLink(
        [joined("node1")],
        [Left("tcp://node1"), joined("node2")],
        Reply(Outcome("done", dict(FOUND))),
        Reply(Outcome("done", dict(FOUND))),
    )
    engine = FakeEngine(link)
    summary = run_study(study, tmp_path, executor=Planner(), engine=engine)
    assert summary.statuses == {"budget": 2}
    assert len(link.sent) == 3
    assert engine.said == ["worker node1 (tcp://node1) was lost; its run is begun again"]


def test_more_jobs_go_to_the_workers_that_are_known() -> None:
    """Of a study that several commands share, runs are put off and asked for again."""
    replies = [Reply(Outcome("done", {"n": n})) for n in range(3)]
    executor = DaskExecutor(FakeLink([joined("node1")], *replies), "tcp://there", print)  # type: ignore[arg-type]
    work, limits = DescribeWork("SMO", "svm"), Limits({}, 1000.0)
    for tags in (["a", "b"], [], ["c"]):
        events = executor.execute(Job(tag, work, limits) for tag in tags)
        assert [event.job.tag for event in events if isinstance(event, Ended)] == tags
