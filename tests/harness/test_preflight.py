"""What is asked of workers before a study is planned, in which order, and how failures end."""

from dataclasses import replace

import pytest

from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.evaluation.svm import ReferenceWork
from marginbench.harness.jobs import Ended, Outcome, Started, Waiting
from marginbench.harness.planning import preflight as module
from marginbench.harness.planning.preflight import DatasetWork, preflight

from .answers import DATA, REFERENCE, FakeExecutor

TASKS = [
    {"dataset": "digits", "C": 1.0},
    {"dataset": "digits", "C": 2.0, "gamma": 0.5},
    {"dataset": "checkers", "C": 1.0, "reference": False},
]


class Workers(FakeExecutor):
    """Answers all questions; ``eager`` ones take every job that there is before the first ends."""

    def __init__(self, eager=False):
        super().__init__(Outcome("done", replace(DATA, default_gamma=0.25)))
        self.eager, self.asked, self.first = eager, [], {}

    def execute(self, jobs):
        for job in list(jobs) if self.eager else jobs:
            self.asked.append(job)
            yield Started(job)
            yield Waiting()
            waiting = self.first.get(type(job.work), [])
            yield Ended(job, waiting.pop(0) if waiting else replace(self.answer(job)))


@pytest.fixture
def study(make_study):
    return make_study(task=TASKS, solver=[{"name": "Pegasos"}, {"name": "SBP"}])


@pytest.mark.parametrize("eager", [False, True])
def test_each_class_dataset_and_optimum_is_asked_for_once(study, eager):
    workers = Workers(eager)
    facts = preflight(study, workers, lambda line: None)
    tags = [job.tag for job in workers.asked]
    assert tags[:2] == ["importing Pegasos", "importing SBP"]
    assert set(tags[2:4]) == {"loading digits", "loading checkers"}
    assert tags[4:] == [
        f"computing the reference optimum of {task}" for task in ("digits", "digits-2")
    ]
    assert facts.references == {
        "digits": REFERENCE,
        "digits-2": REFERENCE,
        "checkers": "the task has reference = false",
    }
    jobs = [job for job in workers.asked if isinstance(job.work, ReferenceWork)]
    optima = [job.work for job in jobs]
    # The optimum is that of the data as they were loaded, with the width that follows from them.
    assert [work.problem.kernel["gamma"] for work in optima] == [0.25, 0.5]
    assert {work.problem.fingerprint for work in optima} == {DATA.fingerprint}
    # Half an hour of solving beside all limits of a run; two fifths of the memory for kernel rows.
    assert {(job.limits.seconds["solve"], job.limits.total) for job in jobs} == {(1800.0, 4300.0)}
    assert {work.cache_mb for work in optima} == {800.0}


def test_a_class_that_cannot_be_imported_ends_it_before_data_are_loaded(study):
    workers = Workers()
    workers.first[module.DescribeWork] = [Outcome("timeout", reason="took longer than 60 s")]
    with pytest.raises(SolverError, match=r"Pegasos: cannot be imported: took .*compile_timeout"):
        preflight(study, workers, lambda line: None)
    assert [job.tag for job in workers.asked] == ["importing Pegasos"]


def test_a_users_code_is_tried_and_run_apart_from_other_jobs(tmp_path, make_study, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text("from marginbench import SMO\nclass Mine(SMO): pass\ndef load(): pass\n")
    name, workers = f"{file}:Mine", Workers()
    study = make_study(
        task=TASKS,
        solver=[{"name": name}, {"name": name, "label": "strict", "params": {"tol": -1.0}}],
    )
    with pytest.raises(StudyError, match=r"^solver 'strict': tol must be"):
        preflight(study, workers, lambda line: None)
    assert [job.tag for job in workers.asked] == [f"importing {name}"]
    assert all(job.foreign for job in workers.asked)
    # What takes long is announced.
    monkeypatch.setattr(module, "_A_MOMENT", -1.0)
    study = make_study(task=[{"dataset": f"{file}:load", "C": 1.0}], solver=[{"name": "Pegasos"}])
    workers, told = Workers(), []
    preflight(study, workers, told.append)
    assert [job.foreign for job in workers.asked] == [False, True, True]
    assert told[1:] == [f"loading {file}:load ...", "computing the reference optimum of load ..."]


@pytest.mark.parametrize(
    ("losses", "unloaded", "reason"),
    [
        (3, {"digits", "digits-2"}, "digits: the process was killed by SIGKILL"),
        (2, set(), "failed: no gap below 1e-6"),
    ],
)
def test_what_cannot_be_had_is_a_reason_and_no_more(study, losses, unloaded, reason):
    """A worker that is lost once is replaced; data whose worker is lost twice cannot be loaded."""
    workers, told = Workers(), []
    lost = Outcome("crashed", reason="the process was killed by SIGKILL")
    workers.first = {
        DatasetWork: [replace(lost) for _ in range(losses)],
        ReferenceWork: [Outcome("failed", reason="ReferenceFailure: no gap below 1e-6")],
    }
    facts = preflight(study, workers, told.append)
    assert {task for task, data in facts.datasets.items() if isinstance(data, str)} == unloaded
    assert facts.references["digits"] == reason
    expected = f"no reference optimum of digits ({reason}); its runs go on without"
    assert told == ([] if "digits" in unloaded else [expected])
