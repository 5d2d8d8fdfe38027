"""Running studies: nothing is repeated, nothing is lost, and the exit code tells the truth."""

import json
import shutil
import signal
from collections import Counter

import numpy as np
import pytest

from marginbench.harness.errors import InterruptedRunError, StudyError, UserError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import Ended, Outcome
from marginbench.harness.planning.preflight import DatasetWork, DescribeWork, describe_solver
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


def test_a_second_call_repeats_and_writes_nothing(tmp_path, two_solvers):
    first, second = FakeExecutor(), FakeExecutor()
    before = run_study(two_solvers, tmp_path, executor=first)
    assert (before.planned, before.already_recorded, len(first.ran)) == (4, 0, 4)
    files = {path: path.stat() for path in tmp_path.rglob("*") if path.is_file()}
    after = run_study(two_solvers, tmp_path, executor=second)
    assert (after.planned, after.already_recorded, len(second.ran)) == (4, 4, 0)
    assert before.statuses == after.statuses == {"converged": 4}
    assert (before.exit_code, before.changed, after.exit_code, after.changed) == (0, True, 0, False)
    kept = {path: path.stat() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in kept.items()} == {
        path: (stat.st_ino, stat.st_mtime_ns) for path, stat in files.items()
    }
    # Of more seeds only the new ones are run.
    run_study(select(two_solvers, seeds=3), tmp_path, executor=second)
    seeds = [job.work.params.get("random_state") for job in second.ran]
    assert seeds == [2, 2]


def test_what_is_recorded_of_a_run(tmp_path, two_solvers):
    run_study(two_solvers, tmp_path, executor=FakeExecutor(), jobs=2)
    record = records_of(tmp_path)["SMO", 1]
    assert record.suboptimality == pytest.approx(0.05)
    assert (record.reference_primal, record.reference_hash) == (10.0, "r" * 64)
    assert (record.n_train, record.fingerprint, record.jobs) == (100, "f" * 64, 2)
    params = json.loads(record.params)
    assert (params["C"], params["gamma"], params["random_state"]) == (1.0, 0.1, 1)
    assert params["tol"] == 1e-3  # a default
    described = json.loads((tmp_path / "study.json").read_text())
    assert described["seeds"] == [0, 1]
    assert described["tasks"][0]["kernel"] == {"name": "rbf", "gamma": 0.1}
    assert described["tasks"][0]["citation"] == "cite"
    keys = [run["key"] for run in described["planned"]]
    assert [record.key for record in Journal(tmp_path).records()] == keys


def test_failures_count_for_the_exit_code_until_they_are_run_again_as_asked(tmp_path, two_solvers):
    bad = FakeExecutor(SDCA=Outcome("crashed", reason="killed by SIGSEGV"))
    summary = run_study(two_solvers, tmp_path, executor=bad)
    assert summary.statuses == {"converged": 2, "crashed": 2}
    assert summary.unexpected[0] == "digits / SDCA / seed 0: crashed (killed by SIGSEGV)"
    assert summary.exit_code == 1
    # ... also when the failures are only found on disk.
    still, again = FakeExecutor(), FakeExecutor()
    assert run_study(two_solvers, tmp_path, executor=still).exit_code == 1
    summary = run_study(two_solvers, tmp_path, executor=again, retry_failed=True)
    assert (len(still.ran), len(again.ran)) == (0, 2)
    assert (summary.statuses, summary.exit_code) == ({"converged": 4}, 0)


@pytest.mark.parametrize(
    ("status", "limit", "before", "now", "repeated"),
    [
        ("timeout", "timeout", 20.0, 21.0, True),
        ("timeout", "timeout", 20.0, 19.0, False),
        ("timeout", "memory", 2000.0, 9000.0, False),
        ("memory", "memory", 2000.0, 9000.0, True),
        ("memory", "timeout", 20.0, 99.0, False),
        ("timeout", "cpu_timeout", 1.0, 2.0, True),
        # No limit is the widest.
        ("timeout", "cpu_timeout", 1.0, None, True),
        ("timeout", "cpu_timeout", None, 1.0, False),
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


class Yields(FakeExecutor):
    """Gives others their turn after each run."""

    def __init__(self, turn):
        super().__init__()
        self.turn = turn

    def execute(self, jobs):
        for event in super().execute(jobs):
            yield event
            if isinstance(event, Ended) and self.ran:
                self.turn()


def test_of_several_commands_none_repeats_what_others_have_recorded(
    tmp_path, two_solvers, monkeypatch
):
    monkeypatch.setattr("marginbench.harness.execution.runner.EXCHANGE_S", 10.0)
    other, exchanged = FakeExecutor(), []
    executor = Yields(lambda: other.ran or run_study(two_solvers, tmp_path, executor=other))
    # The other command comes while a run of this one is not recorded yet, and so does it, too.
    options = {"exchange": lambda: exchanged.append(len(executor.ran))}
    summary = run_study(two_solvers, tmp_path, executor=executor, **options)
    assert summary.statuses == {"converged": 4}
    assert len(executor.ran) + len(other.ran) == 4
    assert summary.already_recorded == len(other.ran) == 3
    # At the beginning and at the end: there was not enough time between them.
    assert exchanged == [0, 1]


def test_each_command_begins_with_a_share_of_its_own(tmp_path, two_solvers):
    other = Journal(tmp_path)
    other.append_plan(two_solvers.name, {})
    executor = FakeExecutor()
    run_study(two_solvers, tmp_path, executor=executor)
    other.close()
    # Its file is the second one, and so is its share.
    shares = [int(job.tag[:8], 16) % 2 for job in executor.ran]
    assert len(shares) == 4
    assert shares == sorted(shares, reverse=True)


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
    assert [job.tag for job in executor.ran][-1] == key
    assert len(executor.ran) == 4


def test_unsupported_combinations_are_skipped_with_a_reason(tmp_path, make_study):
    study = make_study(
        task=[TASK, {**TASK, "label": "bias", "fit_intercept": True}],
        solver=[{"name": "Pegasos"}, {"name": "LIBSVM"}],
    )
    executor = FakeExecutor()
    summary = run_study(study, tmp_path, executor=executor)
    skipped = {(r.task, r.solver): r.reason for r in Journal(tmp_path).records() if r.reason}
    assert skipped.keys() == {("digits", "LIBSVM"), ("bias", "Pegasos")}
    assert skipped["digits", "LIBSVM"].startswith("LIBSVM always fits a bias, which the task has")
    assert summary.statuses == {"skipped": 2, "converged": 2}
    assert (summary.exit_code, len(executor.ran)) == (0, 2)


def test_data_that_cannot_be_loaded_fail_their_runs_only(tmp_path, make_study):
    class OneBroken(FakeExecutor):
        def answer(self, job):
            if isinstance(job.work, DatasetWork) and job.work.dataset == "adult":
                return Outcome("data", reason="adult: cannot fetch a9a")
            return super().answer(job)

    study = make_study(task=[TASK, {**TASK, "dataset": "adult"}])
    summary = run_study(study, tmp_path, executor=OneBroken())
    assert summary.statuses == {"converged": 1, "failed": 1}
    assert summary.data_errors == ("adult: cannot fetch a9a",)
    assert summary.exit_code == 3
    again = FakeExecutor()
    summary = run_study(study, tmp_path, executor=again)  # now they can be had
    assert (summary.statuses, summary.exit_code) == ({"converged": 2}, 0)


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


@pytest.mark.parametrize("params", [{"class_weight": "balanced"}, {"max_iter": 0}])
def test_parameters_are_checked_before_anything_runs(tmp_path, make_study, params):
    executor = FakeExecutor()
    study = make_study(task=[TASK], solver=[{"name": "SMO", "params": params}])
    with pytest.raises(StudyError, match=f"solver 'SMO': '?{next(iter(params))}"):
        run_study(study, tmp_path, executor=executor)
    assert executor.ran == []


def test_a_deterministic_solver_runs_once(tmp_path, make_study):
    solvers = [{"name": "SMO"}, {**SMO, "label": "again", "seeds": 2}, {"name": "SDCA"}]
    # Where it is tuned, the seed decides which points values are tried on.
    tuned = {"dataset": "digits", "label": "tuned", "gamma": 0.1, "tune": {"C": [1.0, 10.0]}}
    study = make_study(task=[TASK, tuned], solver=solvers, seeds=3)
    run_study(study, tmp_path, executor=FakeExecutor())
    found = json.loads((tmp_path / "study.json").read_text())
    planned = Counter(f"{run['task']} {run['solver']}" for run in found["planned"])
    once = {"digits SMO": 1, "digits again": 2, "digits SDCA": 3}
    assert planned == once | {"tuned SMO": 3, "tuned again": 2, "tuned SDCA": 3}
    assert [solver["deterministic"] for solver in found["solvers"]] == [True, True, False]
    # The whole study: nothing is missing from the page.
    assert found["of"]["runs"] == len(found["planned"])


def test_a_solver_from_outside_is_deterministic_only_if_it_says_so(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from marginbench import SMO\n"
        "class Inherits(SMO): pass\n"
        "class Says(SMO):\n    deterministic = True\n"
        "class SaysToo(Says): pass\n"
    )
    found = {
        name: describe_solver(DescribeWork(f"{file}:{name}", "svm")).traits["deterministic"]
        for name in ("Inherits", "Says", "SaysToo")
    }
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
    given = (
        {"nu": -1.0},
        {"nu": 1.0, "size": np.ones(3)},
        {"nu": "reference"},  # of the task
        {"nu": -1.0, "sizes": 1},  # an unknown parameter is told as such
        {},
        {"nu": 1.0, "size": "broken"},  # the runs tell
    )
    found = describe_solver(DescribeWork(f"{file}:Mine", "svm", given))
    assert found.refusals == ("nu is below 0", "", "", "", "", "")


def test_a_folder_keeps_the_runs_of_one_study(tmp_path, make_study):
    first = make_study(name="first", task=[TASK], solver=[{"name": "SMO"}], seeds=1)
    run_study(first, tmp_path, executor=FakeExecutor())
    before = (tmp_path / "study.json").read_bytes()
    other = make_study(name="other", task=[TASK], solver=[{"name": "SDCA"}], seeds=1)
    with pytest.raises(UserError, match="holds the study 'first'; choose another --out"):
        run_study(other, tmp_path, executor=FakeExecutor())
    assert (tmp_path / "study.json").read_bytes() == before
    assert list(records_of(tmp_path)) == [("SMO", 0)]
    (tmp_path / "study.json").write_text("{")  # damaged: the records tell
    with pytest.raises(UserError, match="holds the study 'first'"):
        run_study(other, tmp_path, executor=FakeExecutor())
    assert run_study(first, tmp_path, executor=FakeExecutor()).already_recorded == 1
    assert json.loads((tmp_path / "study.json").read_text())["name"] == "first"


def test_what_a_run_found_before_it_was_killed_is_recorded(tmp_path, make_study):
    found = {"C": 3.0, "tuning": "[]", "tuning_evals": 7}
    killed = Outcome("timeout", reason="too long", columns=found, phase="solve", solve_s=2.0)
    run_study(make_study(task=[TASK]), tmp_path, executor=FakeExecutor(SMO=killed))
    record = records_of(tmp_path)["SMO", 0]
    assert (record.status, record.C, record.tuning_evals, record.wall_s) == ("timeout", 3.0, 7, 2.0)


def test_an_interrupt_keeps_what_is_recorded(tmp_path, two_solvers):
    executor, results = FakeExecutor(), tmp_path / "a"
    executor.interrupt_after = 3
    with pytest.raises(InterruptedRunError, match="3 of 4 runs are recorded") as caught:
        run_study(two_solvers, results, executor=executor, command="marginbench run small")
    assert "run the same command again to resume: marginbench run small" in str(caught.value)
    summary = caught.value.summary
    assert (summary.statuses, summary.results) == ({"converged": 3}, results)
    assert executor.closed
    rest = FakeExecutor()
    assert run_study(two_solvers, results, executor=rest).statuses == {"converged": 4}
    assert len(rest.ran) == 1


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
    assert caught.value.summary is None
    assert len(handled) == 1
    assert executor.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
