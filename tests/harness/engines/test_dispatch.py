"""Which worker gets which job, and what becomes of the jobs of workers that are lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from marginbench.harness.errors import EngineError
from marginbench.harness.execution.engines import dispatch
from marginbench.harness.execution.engines.dispatch import Dispatch, Order
from marginbench.harness.execution.engines.machines import Machine, Program
from marginbench.harness.execution.jobs import Ended, Job, Limits, Outcome
from marginbench.harness.planning.preflight import DatasetWork

HERE = Program("1.0", "c0de", {"python": "3.13", "numpy": "2.0"})


def job(tag: str) -> Job:
    return Job(tag, DatasetWork("digits", {}), Limits({}, 1.0))


def machine(name: str, program: Program = HERE, **changes: Any) -> Machine:
    setting = {"processor": "Xeon", "cores_logical": 8, "memory_mb": 32_000, **changes}
    return Machine(name, setting, program)


@pytest.fixture(autouse=True)
def all_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for more workers."""
    monkeypatch.setattr(dispatch, "_SETTLED", -1.0)
    monkeypatch.setattr(dispatch, "_SETTLED_QUEUE", -1.0)


class Desk:
    """A dispatch with what it has said and which jobs it has drawn."""

    def __init__(self, tags: str, **options: Any) -> None:
        self.drawn: list[str] = []
        self.said: list[str] = []
        self.desk = Dispatch(self.jobs(tags), HERE, self.said.append, **options)

    def jobs(self, tags: str) -> Iterator[Job]:
        for tag in tags:
            self.drawn.append(tag)
            yield job(tag)

    def orders(self) -> dict[str, Order]:
        return {order.address: order for order in self.desk.orders()}

    def reply(self, order: Order, outcome: Outcome | None = None, **more: Any) -> list[Ended]:
        return list(self.desk.replied(order.number, outcome, **more))


def test_each_free_worker_gets_one_job_and_no_more_are_drawn() -> None:
    desk = Desk("abcd")
    desk.desk.joined("tcp://1", machine("one"))
    desk.desk.joined("tcp://2", machine("two"))
    orders = desk.orders()
    assert [order.job.tag for order in orders.values()] == ["a", "b"] == desk.drawn
    assert orders["tcp://2"].started is not None
    assert orders["tcp://2"].started.machine == "two"
    assert desk.orders() == {}
    (ended,) = desk.reply(orders["tcp://1"], Outcome("done", 1))
    assert (ended.job.tag, ended.outcome.value) == ("a", 1)
    assert '"processor":"Xeon"' in ended.outcome.setting["environment"]
    assert [order.job.tag for order in desk.orders().values()] == ["c"]


def test_workers_on_one_machine_share_it_and_their_records_say_so() -> None:
    desk = Desk("ab")
    desk.desk.joined("tcp://1", machine("one"))
    desk.desk.joined("tcp://2", machine("one"))
    desk.desk.joined("tcp://3", machine("two"))
    (ended,) = desk.reply(desk.orders()["tcp://1"], Outcome("done"))
    assert ended.outcome.setting["jobs"] == 2


def test_the_run_of_a_lost_worker_is_begun_again_once_and_then_has_crashed() -> None:
    desk = Desk("a")
    for name in ("one", "two", "three"):
        desk.desk.joined(f"tcp://{name}", machine(name))
    first = desk.orders()["tcp://one"]
    assert list(desk.desk.left("tcp://one")) == []
    (second,) = desk.orders().values()
    # It has been started before, for whoever counts.
    assert (second.job.tag, second.started) == ("a", None)
    # A late reply of the worker that was given up changes nothing.
    assert desk.reply(first, Outcome("done", "too late")) == []
    (ended,) = desk.reply(second)
    assert ended.outcome.status == "crashed"
    assert ended.outcome.reason == "the worker on one was lost, then that on two"
    assert desk.desk.is_done
    assert desk.said == ["worker one (tcp://one) was lost; its run is begun again"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(HERE, version="2.0"), "has marginbench 2.0, the command has 1.0"),
        (replace(HERE, code="other"), "has other code of marginbench 1.0 than the command"),
        (
            replace(HERE, libraries={"python": "3.13", "numpy": "1.0"}),
            "has numpy 1.0, the command has 2.0",
        ),
        (replace(HERE, libraries={"python": "3.13"}), "has numpy none, the command has 2.0"),
    ],
)
def test_a_worker_with_another_program_gets_no_job_and_is_named_once(
    other: Program, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk("a")
    desk.desk.joined("tcp://1", machine("one", other))
    assert desk.orders() == {}
    (line,) = desk.said
    assert line == f"worker tcp://1 gets no runs: one {words}; install the same there"
    monkeypatch.setattr(dispatch, "_NONE_FITS", 0.0)
    with pytest.raises(EngineError, match=r"none of 1 worker can be used: one has"):
        desk.desk.check()
    # Another one that is fit does the work.
    desk.desk.joined("tcp://2", machine("two"))
    assert list(desk.orders()) == ["tcp://2"]
    desk.desk.check()


def test_a_run_whose_data_a_machine_lacks_goes_to_another_machine() -> None:
    desk = Desk("ab")
    desk.desk.joined("tcp://1", machine("one"))
    lacking = desk.orders()["tcp://1"]
    assert desk.reply(lacking, Outcome("data", reason="mine.csv: no such file")) == []
    assert desk.said == ["worker one (tcp://1): mine.csv: no such file (on one)"]
    desk.desk.joined("tcp://2", machine("two"))
    assert list(desk.desk.given_up()) == []
    orders = desk.orders()
    assert {address: order.job.tag for address, order in orders.items()} == {
        "tcp://1": "b",
        "tcp://2": "a",
    }
    # It is told once, for however many runs.
    assert desk.reply(orders["tcp://1"], Outcome("data", reason="mine.csv: no such file")) == []
    assert len(desk.said) == 1
    # The other one lacks them too: then that is how the run ends.
    assert desk.reply(orders["tcp://2"], Outcome("data", reason="mine.csv: no such file")) == []
    (ended,) = desk.desk.given_up()
    assert ended.outcome.status == "data"
    assert ended.outcome.reason == "mine.csv: no such file (on two)"


def test_a_run_that_fits_no_machine_has_failed() -> None:
    desk = Desk("a")
    desk.desk.joined("tcp://1", machine("one"))
    assert desk.reply(desk.orders()["tcp://1"], unfit="the module mine is missing") == []
    (ended,) = desk.desk.given_up()
    assert (ended.outcome.status, ended.outcome.reason) == (
        "failed",
        "one: the module mine is missing",
    )


def test_a_machine_whose_disk_is_full_gets_no_more_jobs() -> None:
    desk = Desk("ab")
    desk.desk.joined("tcp://1", machine("one"))
    assert desk.reply(desk.orders()["tcp://1"], Outcome("storage", reason="disk full")) == []
    assert desk.orders() == {}
    desk.desk.joined("tcp://2", machine("two"))
    assert [order.job.tag for order in desk.orders().values()] == ["a"]


def test_a_run_waits_for_machines_that_may_still_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_SETTLED_QUEUE", 60.0)
    desk = Desk("a", expected=2)
    desk.desk.joined("tcp://1", machine("one"))
    assert desk.reply(desk.orders()["tcp://1"], Outcome("data", reason="no such file")) == []
    assert list(desk.desk.given_up()) == []
    desk.desk.joined("tcp://2", machine("two"))
    assert list(desk.orders()) == ["tcp://2"]


def test_timing_takes_the_most_frequent_model_and_one_run_a_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch, "_SETTLED_QUEUE", 60.0)
    desk = Desk("abcdef", timing=True, expected=5)
    workers = {"1": "one", "2": "one", "3": "two"}
    for number, name in workers.items():
        desk.desk.joined(f"tcp://{number}", machine(name, memory_mb=32_010))
    desk.desk.joined("tcp://4", machine("big", cores_logical=64))
    # Not before all are there.
    assert desk.orders() == {}
    desk.desk.joined("tcp://5", machine("big", cores_logical=64))
    orders = desk.orders()
    assert list(orders) == ["tcp://1", "tcp://3"]
    assert desk.said == ["timing on 2 of 3 machines: Xeon, 8 cores, 32 GB"]
    (ended,) = desk.reply(orders["tcp://1"], Outcome("done"))
    assert ended.outcome.setting["jobs"] == 1
    # One that comes later and is alike joins in.
    desk.desk.joined("tcp://6", machine("three"))
    assert sorted(desk.orders()) == ["tcp://1", "tcp://6"]
