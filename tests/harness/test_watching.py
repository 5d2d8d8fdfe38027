"""A job's worker is watched: what it says, and its limits."""

import json
import math

import numpy as np
import pytest

from marginbench.harness.evaluation.svm import FitWork, Problem, Search, configurations
from marginbench.harness.execution import local
from marginbench.harness.execution.local import JobWatch
from marginbench.harness.jobs import (
    CheckpointMessage,
    ColumnsMessage,
    Job,
    Limits,
    PhaseMessage,
    decoded,
    encoded,
)
from marginbench.harness.results.svm import Checkpoint

SECONDS = {"import": 9.0, "data": 9.0, "compile": 9.0, "solve": 9.0, "evaluate": 9.0}
PROBLEM = Problem("checkers", {}, {"name": "rbf", "gamma": 1.0}, 1.0, False)
PLAIN = FitWork(PROBLEM, "Pegasos", {}, 1.19)
TUNED = FitWork(
    PROBLEM,
    "Pegasos",
    {"C": 1.0},
    1.19,
    search=Search(configurations({"C": [1.0, 10.0]}), params={"C": None, "tol": 0.1}),
)
FOUND = TUNED.columns_of({"C": 10.0}) | {
    "tuning": "[]",
    "tuning_wall_s": 1.0,
    "tuning_cpu_s": 1.0,
    "tuning_evals": 5,
}


class Worker:
    """A process that has said what it is told to say."""

    alive, closed = True, ""

    def __init__(self, messages, log):
        self.log = log
        self._messages = messages

    def receive(self, until):
        while self._messages:
            yield encoded(self._messages.pop(0))

    def resident_mb(self):
        return 1.0

    def cpu_s(self, *, fresh=True):
        """Another two seconds whenever it is asked."""
        self.cpu = getattr(self, "cpu", 0.0) + 2.0
        return self.cpu

    def peak_mb(self):
        return 1.0

    def reset_peak(self):
        pass

    def send(self, body):
        pass


def watched(work, folder, *messages, **more):
    cpu = more.pop("cpu", math.inf)
    limits = Limits({**SECONDS, **more}, 1000.0, cpu=cpu)
    process = Worker(list(messages), folder / "log")
    return JobWatch(Job("k", work, limits), process, fresh=False)


def phase(name):
    return PhaseMessage(name)


def test_tuning_that_takes_too_long_is_ended(tmp_path):
    outcome = watched(TUNED, tmp_path, phase("tune"), tune=0.0).check()
    assert (outcome.status, outcome.reason) == ("timeout", "tuning took longer than 0 s")


@pytest.mark.parametrize(
    ("phases", "ends"),
    [(["solve"], True), (["solve", "evaluate"], False), (["compile"], False)],
)
def test_only_the_cpu_time_of_solving_is_limited(tmp_path, monkeypatch, phases, ends):
    monkeypatch.setattr(local, "_PAUSE", 0.0)
    watch = watched(PLAIN, tmp_path, *map(phase, phases), cpu=7.0)
    outcomes = [outcome for outcome in (watch.check() for _ in range(4)) if outcome is not None]
    told = {(outcome.status, outcome.reason) for outcome in outcomes}
    assert told == ({("timeout", "solving took more than 7 s of CPU time")} if ends else set())


def test_what_tuning_found_is_in_the_outcome_however_it_ends(tmp_path):
    found = ColumnsMessage(FOUND)
    watch = watched(TUNED, tmp_path, phase("tune"), found, phase("solve"), tune=9.0, solve=0.0)
    outcome = watch.check()
    assert outcome.status == "timeout"
    assert outcome.columns["C"] == 10.0
    assert json.loads(outcome.columns["params"]) == {"C": 10.0, "tol": 0.1}
    assert outcome.columns["tuning_evals"] == 5


@pytest.mark.parametrize(
    ("work", "change"),
    [
        (TUNED, {"test_error": 2.0}),
        (TUNED, {"odd": 2.0}),
        (TUNED, {"tuning": "none"}),
        (TUNED, {"tuning_evals": -5}),
    ],
)
def test_what_no_tuning_can_have_found_ends_the_run(tmp_path, work, change):
    outcome = watched(work, tmp_path, ColumnsMessage(FOUND | change)).check()
    assert outcome.status == "crashed"
    assert outcome.reason.startswith("the process sent no valid message: ")


def test_messages_survive_the_way(tmp_path):
    checkpoint = Checkpoint(
        n_iter=3,
        counters={"kernel_evals": np.int64(7)},
        wall_s=np.float64(0.1),
        cpu_s=math.nan,
        n_support=None,
        train_error=0.1,
        primal=math.inf,
        dual=None,
    )
    for message in (PhaseMessage("solve", 0.1), CheckpointMessage(checkpoint)):
        assert repr(decoded(encoded(message), PLAIN)) == repr(message).replace(
            "np.int64(7)", "7"
        ).replace("np.float64(0.1)", "0.1")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"[" * 100_000, b"\x80", b'{"type": "PhaseMessage", "phase": "odd"}',
     b'{"type": "CheckpointMessage", "checkpoint": {"odd": 1}}'],
)  # fmt: skip
def test_bytes_that_are_no_message_are_refused(body):
    with pytest.raises(ValueError, match="Error"):
        decoded(body, PLAIN)
