"""Running studies: nothing is repeated, nothing is lost, and the exit code tells the truth."""

import json
import math
import shutil
import signal
from collections import Counter

import numpy as np
import pytest

from marginbench.harness.errors import InterruptedRunError, UserError
from marginbench.harness.execution import runner
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import Outcome
from marginbench.harness.planning.preflight import DescribeWork
from marginbench.harness.planning.report import preview
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.svm import Record
from marginbench.harness.study.select import select

from .answers import FakeExecutor, Told

TASK = {"dataset": "digits", "gamma": 0.1, "C": 1.0}
#: With all seeds of the study, although it is deterministic.
SMO = {"name": "SMO", "seeds": 9}


def records_of(results):
    return {(r.solver, r.seed): r for r in Journal(results).records() if isinstance(r, Record)}


@pytest.fixture
def two_solvers(make_study):
    return make_study(task=[TASK], solver=[SMO, {"name": "SDCA"}], seeds=2)


def written(folder):
    return {(path, path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.*")}


def test_nothing_is_run_again_but_failures_if_asked(tmp_path, two_solvers):
    bad = FakeExecutor(SDCA=Outcome("crashed", reason="killed by SIGSEGV"))
    first = run_study(two_solvers, tmp_path, executor=bad)
    assert (first.planned, first.already_recorded, len(bad.ran)) == (4, 0, 4)
    assert first.statuses == {"converged": 2, "crashed": 2}
    assert first.unexpected[0] == "digits / SDCA / seed 0: crashed (killed by SIGSEGV)"
    assert (first.exit_code, first.changed) == (1, True)
    # Failures count also when they are only found on disk.
    files, still, again = written(tmp_path), FakeExecutor(), FakeExecutor()
    second = run_study(two_solvers, tmp_path, executor=still)
    assert (second.planned, second.already_recorded, still.ran) == (4, 4, [])
    assert (second.statuses, second.exit_code, second.changed) == (first.statuses, 1, False)
    assert written(tmp_path) == files
    counts = [
        preview(two_solvers, tmp_path, FakeExecutor(), print, retry_failed=retry).counts
        for retry in (False, True)
    ]
    assert counts == [{"recorded": 4}, {"recorded": 2, "to do": 2}]
    third = run_study(two_solvers, tmp_path, executor=again, retry_failed=True)
    assert (third.statuses, third.exit_code, len(again.ran)) == ({"converged": 4}, 0, 2)
    # Of more seeds only the new ones are run.
    run_study(select(two_solvers, seeds=3), tmp_path, executor=still)
    assert [job.work.params.get("random_state") for job in still.ran] == [2, 2]


def test_what_is_recorded_of_a_run(tmp_path, two_solvers):
    found = {"C": 3.0, "tuning": "[]", "tuning_evals": 7}
    killed = Outcome("timeout", reason="too long", columns=found, phase="solve", solve_s=2.0)
    executor = FakeExecutor(SDCA=killed)
    run_study(two_solvers, tmp_path, executor=executor, jobs=2)
    # Of the study, the defaults, and what is allowed in all.
    limits = executor.ran[0].limits
    assert (limits.memory, limits.total, limits.cpu) == (2000.0, 60 + 1800 + 600 + 2 * 20, math.inf)
    assert limits.seconds["solve"] == 20.0
    record = records_of(tmp_path)["SMO", 1]
    assert json.loads(record.budget)["total_timeout"] == limits.total
    assert record.suboptimality == pytest.approx(0.05)
    assert (record.n_train, record.fingerprint, record.jobs) == (100, "f" * 64, 2)
    params = json.loads(record.params)
    assert (params["C"], params["gamma"], params["random_state"]) == (1.0, 0.1, 1)
    assert params["tol"] == 1e-3  # a default
    # What a run found before it was killed.
    record = records_of(tmp_path)["SDCA", 0]
    assert (record.status, record.C, record.tuning_evals, record.wall_s) == ("timeout", 3.0, 7, 2.0)
    described = json.loads((tmp_path / "study.json").read_text())
    assert described["seeds"] == [0, 1]
    assert described["tasks"][0]["citation"] == "cite"
    keys = [run["key"] for run in described["planned"]]
    assert [record.key for record in Journal(tmp_path).records()] == keys


@pytest.mark.parametrize(
    ("status", "limit", "before", "now", "repeated"),
    [
        ("timeout", "timeout", 20.0, 21.0, True),
        ("timeout", "timeout", 20.0, 19.0, False),
        ("timeout", "memory", 2000.0, 9000.0, False),
        ("memory", "memory", 2000.0, 9000.0, True),
        # No limit is the widest.
        ("timeout", "cpu_timeout", 1.0, None, True),
        ("timeout", "cpu_timeout", None, 1.0, False),
        # Then it follows from the others.
        ("timeout", "total_timeout", 100.0, None, True),
    ],
)
def test_a_raised_limit_gives_another_chance(
    tmp_path, make_study, status, limit, before, now, repeated
):
    study = make_study(task=[TASK])
    executor = FakeExecutor(SMO=Outcome(status, reason="x"))
    for value in (before, now):
        budget = study.budget.model_copy(update={limit: value})
        run_study(study.model_copy(update={"budget": budget}), tmp_path, executor=executor)
    assert len(executor.ran) == (2 if repeated else 1)


def test_of_several_commands_none_repeats_what_others_have_recorded(
    tmp_path, two_solvers, monkeypatch
):
    monkeypatch.setattr(runner, "EXCHANGE_S", 10.0)
    # On a busy machine a look takes long, and it would rest for longer than the runs take.
    monkeypatch.setattr(runner, "LOOK_REST", 1e-3)
    executor, other, exchanged = FakeExecutor(), FakeExecutor(), []

    class Meets(Told):
        def ended(self, record):
            if not other.ran:
                run_study(two_solvers, tmp_path, executor=other)

    options = {"exchange": lambda: exchanged.append(len(executor.ran)), "progress": Meets()}
    summary = run_study(two_solvers, tmp_path, executor=executor, **options)
    assert summary.statuses == {"converged": 4}
    assert len(executor.ran) + len(other.ran) == 4
    assert summary.already_recorded == len(other.ran) == 3
    # At the beginning and at the end: there was not enough time between them.
    assert exchanged == [0, 1]


def test_a_run_of_another_command_is_waited_for_and_taken_over_when_that_ends(
    tmp_path, two_solvers
):
    first = FakeExecutor()
    run_study(two_solvers, tmp_path, executor=first)
    shutil.rmtree(tmp_path / "journal")
    other = Journal(tmp_path)
    key = first.ran[0].tag
    other.append_start(key, ("digits", "SMO", 0))

    class Ends(Told):
        def say(self, line):
            super().say(line)
            if line.startswith("waiting"):
                other.close()

    executor, told = FakeExecutor(), Ends()
    assert run_study(two_solvers, tmp_path, executor=executor, progress=told).exit_code == 0
    assert told.lines == ["waiting for 1 run of other commands"]
    assert executor.ran[-1].tag == key


def test_without_a_reference_only_its_columns_are_missing(tmp_path, make_study):
    study = make_study(task=[TASK], solver=[{"name": "SMO"}, {"name": "SBP"}])
    executor = FakeExecutor()
    executor.reference = Outcome("timeout", reason="solving took longer than 1800 s")
    summary = run_study(study, tmp_path, executor=executor)
    records = records_of(tmp_path)
    assert summary.statuses == {"converged": 1, "failed": 1}
    assert "solving took longer than 1800 s" in records["SBP", 0].reason
    assert records["SMO", 0].suboptimality is None
    # Once there is one, what was recorded is compared with it, without another run.
    later = FakeExecutor()
    run_study(study, tmp_path, executor=later)
    assert [job.work.solver for job in later.ran] == ["SBP"]
    assert records_of(tmp_path)["SMO", 0].suboptimality == pytest.approx(0.05)


def test_a_deterministic_solver_runs_once(tmp_path, make_study):
    solvers = [{"name": "SMO"}, {**SMO, "label": "again", "seeds": 2}, {"name": "SDCA"}]
    # Where it is tuned, the seed decides which points values are tried on.
    tuned = {"dataset": "digits", "label": "tuned", "gamma": 0.1, "tune": {"C": [1.0, 10.0]}}
    study = make_study(task=[TASK, tuned], solver=solvers, seeds=3)
    # By the timeouts: 20 s for a fit; 680 s for tuning, of which 600 s are an evaluation's.
    assert preview(study, tmp_path, FakeExecutor(), print, jobs=2).solving_s == 14 * 10 + 8 * 340
    run_study(study, tmp_path, executor=FakeExecutor())
    found = json.loads((tmp_path / "study.json").read_text())
    planned = Counter(f"{run['task']} {run['solver']}" for run in found["planned"])
    once = {"digits SMO": 1, "digits again": 2, "digits SDCA": 3}
    assert planned == once | {"tuned SMO": 3, "tuned again": 2, "tuned SDCA": 3}
    assert [solver["deterministic"] for solver in found["solvers"]] == [True, True, False]
    # The whole study: nothing is missing from the page.
    assert found["of"]["runs"] == len(found["planned"])


def test_a_solver_from_outside_is_deterministic_only_if_it_says_so(tmp_path):
    file, found = tmp_path / "mine.py", {}
    file.write_text(
        "from marginbench import SMO\n"
        "class Inherits(SMO): pass\n"
        "class Says(SMO):\n    deterministic = True\n"
        "class SaysToo(Says): pass\n"
    )
    for name in ("Inherits", "Says", "SaysToo"):
        found[name] = DescribeWork(f"{file}:{name}", "svm").run(print).traits["deterministic"]
    assert found == {"Inherits": False, "Says": True, "SaysToo": True}


def test_only_values_that_are_known_are_checked(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from marginbench import Solver\n"
        "class Mine(Solver):\n"
        "    def __init__(self, nu, size=()):\n        self.nu, self.size = nu, size\n"
        "    def _check_parameters(self):\n"
        "        if self.nu < 0: raise ValueError('nu is below 0')\n"
        "        if isinstance(self.size, str): raise KeyError('a bug')\n"
        "    def _solve(self, problem, monitor): ...\n"
    )
    known = ({"nu": -1.0}, {"nu": -1.0, "size": np.ones(3)})
    # Values of the task, parameters that there are not, and bugs are told by the runs.
    unknown = ({"nu": "reference"}, {"nu": -1.0, "sizes": 1}, {}, {"nu": 1.0, "size": "broken"})
    found = DescribeWork(f"{file}:Mine", "svm", known + unknown).run(print)
    assert found.refusals == ("nu is below 0", "nu is below 0", "", "", "", "")


def test_a_folder_keeps_the_runs_of_one_study(tmp_path, make_study):
    first, other = make_study(name="first", task=[TASK]), make_study(name="other", task=[TASK])
    description = tmp_path / "study.json"
    run_study(first, tmp_path, executor=FakeExecutor())
    with pytest.raises(UserError, match="holds the study 'first'; choose another --out"):
        run_study(other, tmp_path, executor=FakeExecutor())
    description.write_text("{")  # damaged
    assert run_study(first, tmp_path, executor=FakeExecutor()).already_recorded == 1
    assert json.loads(description.read_text())["name"] == "first"


def test_an_interrupt_is_raised_where_nothing_is_half_done(tmp_path, two_solvers):
    executor = FakeExecutor()
    answer, handled = executor.answer, []

    def interrupted(job):
        signal.raise_signal(signal.SIGINT)
        handled.append(job)  # the signal has come, and this line is reached
        return answer(job)

    executor.answer = interrupted
    with pytest.raises(InterruptedRunError, match="before the first run") as caught:
        run_study(two_solvers, tmp_path, executor=executor)
    assert (caught.value.summary, len(handled), executor.closed) == (None, 1, True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    executor.answer = answer

    def exchange():
        if executor.ran:
            signal.raise_signal(signal.SIGINT)

    # After the last run it says what is recorded.
    with pytest.raises(InterruptedRunError) as caught:
        run_study(two_solvers, tmp_path, executor=executor, exchange=exchange)
    assert str(caught.value) == (
        f"interrupted; 4 of 4 runs are recorded in {tmp_path}; run the same command again to resume"
    )
    assert caught.value.summary.statuses == {"converged": 4}
