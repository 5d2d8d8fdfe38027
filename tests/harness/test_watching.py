"""A job's worker is watched: what it says, and its limits."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from marginbench.harness.evaluation.svm import FitWork, Problem, Search, configurations
from marginbench.harness.execution import local
from marginbench.harness.execution.local import JobWatch
from marginbench.harness.jobs import Job, Limits, Outcome, decoded, encoded
from marginbench.harness.results.svm import Checkpoint

PROBLEM = Problem("checkers", {}, {"name": "rbf", "gamma": 1.0}, 1.0, False)
PLAIN = FitWork(PROBLEM, "Pegasos", {}, 1.19)
SEARCH = Search(configurations({"C": [1.0, 10.0]}), params={"C": None, "tol": 0.1})
TUNED = FitWork(PROBLEM, "Pegasos", {"C": 1.0}, 1.19, search=SEARCH)
SPENT = {"tuning_wall_s": 1.0, "tuning_cpu_s": 1.0, "tuning_evals": 5}
FOUND = TUNED.columns_of({"C": 10.0}) | {"tuning": "[]"} | SPENT


class Worker(SimpleNamespace):
    """A process that has said what it is told to say, and takes two CPU seconds between looks."""

    alive, closed, cpu = True, "", 0.0

    def receive(self, until):
        return map(encoded, [self.messages.pop(0) for _ in range(len(self.messages))])

    def cpu_s(self):
        self.cpu += 2.0
        return self.cpu

    def resident_mb(self):
        return 1.0

    peak_mb = reset_peak = resident_mb

    def send(self, body):
        pass


def watched(work, folder, *messages, cpu=math.inf, **more):
    seconds = dict.fromkeys(("data", "compile", "solve", "evaluate"), 9.0) | more
    process = Worker(messages=list(messages), log=folder / "log")
    return JobWatch(Job("k", work, Limits(seconds, 1000.0, cpu=cpu)), process, fresh=False)


@pytest.mark.parametrize(
    ("phases", "ends"), [(["solve"], True), (["solve", "evaluate"], False), (["compile"], False)]
)
def test_only_the_cpu_time_of_solving_is_limited(tmp_path, monkeypatch, phases, ends):
    monkeypatch.setattr(local, "_PAUSE", 0.0)
    watch = watched(PLAIN, tmp_path, *({"phase": phase} for phase in phases), cpu=7.0)
    assert [watch.check() for _ in range(3)] == [None] * 3
    outcome = watch.check()
    assert (outcome is not None) == ends
    if ends:
        assert outcome.reason == "solving took more than 7 s of CPU time"


def test_what_tuning_found_is_in_the_outcome_however_it_ends(tmp_path):
    said = ({"phase": "tune"}, {"columns": FOUND}, {"phase": "solve"})
    outcome = watched(TUNED, tmp_path, *said, tune=9.0, solve=0.0).check()
    assert outcome.status == "timeout"
    assert outcome.columns["C"] == 10.0
    assert json.loads(outcome.columns["params"]) == {"C": 10.0, "tol": 0.1}
    assert outcome.columns["tuning_evals"] == 5
    outcome = watched(TUNED, tmp_path, {"phase": "tune"}, tune=0.0).check()
    assert (outcome.status, outcome.reason) == ("timeout", "tuning took longer than 0 s")


@pytest.mark.parametrize(
    "change",
    [{"test_error": 2.0}, {"odd": 2.0}, {"tuning": "none"}, {"tuning": "[1]"},
     {"tuning_evals": -5}, {"tuning_cpu_s": -0.1}],
)  # fmt: skip
def test_what_no_tuning_can_have_found_ends_the_run(tmp_path, change):
    outcome = watched(TUNED, tmp_path, {"columns": FOUND | change}).check()
    assert outcome.status == "crashed"
    assert outcome.reason.startswith("the process sent no valid message: ")


@pytest.mark.parametrize(
    ("status", "family", "resident_mb", "spoilt"),
    [
        ("done", 1, 200.0, False),
        ("failed", 1, 200.0, False),
        ("done", 2, 200.0, True),
        ("done", 1, 300.0, True),
        *((status, 1, 200.0, True) for status in ("timeout", "memory", "crashed")),
    ],
)
def test_a_worker_that_was_cut_short_or_keeps_a_child_or_memory_gets_no_other_job(
    tmp_path, status, family, resident_mb, spoilt
):
    watch = watched(PLAIN, tmp_path)
    watch.process.family = lambda: [watch.process] * family
    watch.process.resident_mb = lambda: resident_mb
    assert watch.spoiled(Outcome(status)) == spoilt


def test_messages_survive_the_way():
    scores = {"n_support": None, "train_error": 0.1, "primal": math.inf, "dual": None}
    clocks = {"wall_s": np.float64(0.1), "cpu_s": math.nan}
    checkpoint = Checkpoint(n_iter=3, counters={"kernel_evals": np.int64(7)}, **clocks, **scores)
    for message in ({"phase": "solve", "solve_s": 0.1}, {"checkpoint": checkpoint}):
        plain = re.sub(r"np\.\w+\((.*?)\)", r"\1", repr(message))
        assert repr(decoded(encoded(message), PLAIN)) == plain


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"[" * 100_000, b"\x80", b'{"phase": "odd"}',
     b'{"checkpoint": {"odd": 1}}'],
)  # fmt: skip
def test_bytes_that_are_no_message_are_refused(body):
    with pytest.raises(ValueError, match="Error"):
        decoded(body, PLAIN)
