"""Solvers from outside in a study: what the task decides of them, on what they run, their keys."""

from dataclasses import replace
from pathlib import Path

import pytest

from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.evaluation.svm import EstimatorWork, ReferenceInfo
from marginbench.harness.planning.fingerprint import installed_version
from marginbench.harness.planning.preflight import (
    DescribeWork,
    Facts,
    describe_solver,
)
from marginbench.harness.planning.svm import KIND

from ..answers import DATA

TEN = replace(DATA, n_classes=10)
REFERENCE = ReferenceInfo(10.0, 9.999, 0.001, 0.05, 7, 0.123, "r" * 64)
MINE = Path(__file__).parent / "classifiers.py"
BIAS = "it fits a bias, which the task has not"


def info_of(study):
    """What is known of the only solver of a study, with the parameters that it gives."""
    (entry,) = study.solver
    info = describe_solver(DescribeWork(entry.name, "svm"))
    mistakes = list(KIND.mistakes(study, {entry.label: info}))
    if mistakes:
        raise StudyError(*mistakes)
    return info


@pytest.fixture
def plan(make_study):
    """Plans the run of a solver on a task."""

    def planned(name, data=DATA, seed=0, **values):
        own = {key: values.pop(key) for key in ("params", "other_problem") if key in values}
        task = {"label": "t", "dataset": "digits", "C": 2.0, **values}
        if task.get("kernel") != "linear":
            task.setdefault("gamma", 0.5)
        study = make_study(task=[task], solver=[{"name": name, "label": "mine", **own}])
        facts = Facts({"mine": info_of(study)}, {"t": data}, {"t": REFERENCE})
        return KIND.configuration(study, facts, study.task[0], study.solver[0]).run(seed)

    return planned


@pytest.mark.parametrize(
    ("name", "decided"),
    [
        ("sklearn.svm:SVC", {"kernel": "rbf", "gamma": 0.5, "C": 2.0}),
        ("sklearn.svm:NuSVC", {"kernel": "rbf", "gamma": 0.5}),
        ("sklearn.svm:LinearSVC", {"C": 2.0}),
        ("sklearn.linear_model:LogisticRegression", {"C": 2.0, "fit_intercept": True}),
        ("sklearn.ensemble:RandomForestClassifier", {}),
        (f"{MINE}:Constant", {}),
        (f"{MINE}:make", {}),
        (f"{MINE}:Promises", {"kernel": "rbf", "C": 2.0}),
    ],
)
def test_the_task_decides_what_means_the_same(name, decided, plan):
    run = plan(name, fit_intercept=True, seed=4)
    assert isinstance(run.work, EstimatorWork)
    seeded = {"random_state": 4} if name.startswith("sklearn.") else {}
    assert (run.work.solver, run.work.params, run.work.seed) == (name, decided | seeded, 4)
    assert (run.foreign, run.skip_reason, run.failure) == (True, "", "")
    solves = True if name.endswith((":SVC", ":Promises")) else None if MINE.name in name else False
    assert run.work.solves is solves
    assert run.columns["judged_by"] == ("model" if run.work.solves else "predictions")


def test_the_study_decides_the_rest(plan):
    params = {"tol": 1e-5, "shrinking": False, "class_weight": "balanced"}
    run = plan("sklearn.svm:SVC", params=params, fit_intercept=True)
    assert isinstance(run.work, EstimatorWork)
    assert run.work.params == {"kernel": "rbf", "gamma": 0.5, "C": 2.0, "random_state": 0} | params
    assert run.work.tol == 1e-5
    # Weights of classes are another problem.
    assert (run.work.solves, run.columns["other_problem"]) == (False, "it is given class_weight")


def test_what_cannot_be_a_classifier_is_refused():
    for name, kind, message in (
        ("sklearn.preprocessing:StandardScaler", "svm", "is not a solver; derive it from"),
        ("math:pi", "svm", "is a float; give a class, or a function that makes"),
        (f"{MINE}:make", "feasibility", "no feasibility method"),
    ):
        with pytest.raises(SolverError, match=message):
            describe_solver(DescribeWork(name, kind))


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("sklearn.svm:SVC", {"C": 1.0}, "'C' is decided by the task"),
        ("sklearn.svm:SVC", {"shrink": 1}, "unknown parameter 'shrink' (did you mean 'shrinking'"),
        ("sklearn.svm:LinearSVC", {"random_state": 1}, "'random_state' is decided by the task"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name, params, message, plan):
    with pytest.raises(StudyError) as caught:
        plan(name, params=params)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["sklearn.svm:SVC", f"{MINE}:Promises", "LIBSVM"])
def test_a_solver_with_a_bias_runs_without_one_only_if_asked_to(name, plan):
    skipped = plan(name)
    assert skipped.skip_reason == (
        "mine always fits a bias, which the task has not; set fit_intercept = true there, or "
        "other_problem = true for the solver"
    )
    assert skipped.columns["other_problem"] == ""
    run = plan(name, other_problem=True)
    assert (run.skip_reason, run.columns["other_problem"]) == ("", BIAS)
    # It is judged as a solution of its own problem; the record keeps the task's.
    assert (run.work.problem.fit_intercept, run.columns["fit_intercept"]) == (True, False)
    assert run.key != skipped.key
    # Where the problems are the same, asking changes nothing.
    same = plan(name, fit_intercept=True, other_problem=True)
    assert same.columns["other_problem"] == ""
    assert same.key == plan(name, fit_intercept=True).key


def test_a_solver_without_a_bias_runs_with_one_only_if_asked_to(plan):
    assert "no unregularised bias" in plan("SDCA", fit_intercept=True).skip_reason
    run = plan("SDCA", fit_intercept=True, other_problem=True)
    assert run.columns["other_problem"] == "it fits no bias, which the task has"
    assert run.work.problem.fit_intercept is False


def test_the_objective_of_another_problem_is_not_compared(plan):
    record_type = KIND.record
    found = []
    for run in (plan("LIBSVM", other_problem=True), plan("LIBSVM", fit_intercept=True)):
        record = record_type(key=run.key, study="s", task="t", solver="mine", seed=0, **run.columns)
        record.primal = 11.0
        KIND.complete(record, run)
        found.append(record.suboptimality)
    assert found == [None, pytest.approx(0.1)]


@pytest.mark.parametrize(
    ("name", "words"),
    [("sklearn.svm:SVC", "one classifier for each pair of classes"), (f"{MINE}:Promises", "")],
)
def test_several_classes_are_judged_by_predictions(name, words, plan):
    run = plan(name, data=TEN, fit_intercept=True)
    assert isinstance(run.work, EstimatorWork)
    assert (run.skip_reason, run.work.solves) == ("", False)
    assert words in run.columns["other_problem"]
    assert bool(words) == bool(run.columns["other_problem"])
    assert run.columns["judged_by"] == "predictions"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sklearn.svm:SVC", "mine has no kernel 'laplacian'"),
        ("sklearn.svm:LinearSVC", ""),
    ],
)
def test_a_kernel_that_it_has_not_is_the_reason_to_skip(name, reason, plan):
    assert plan(name, fit_intercept=True, kernel="laplacian").skip_reason == reason


def test_an_installed_package_counts_by_its_version():
    name = installed_version("sklearn")
    assert name.startswith("scikit-learn ")
    info = describe_solver(DescribeWork("sklearn.svm:SVC", "svm"))
    assert name in info.files
    assert not any("sklearn/" in file for file in info.files)
    # The tests' own package is not installed as a distribution.
    assert installed_version("no_such_package") == ""
    mine = describe_solver(DescribeWork(f"{MINE}:Constant", "svm"))
    # A file of one's own counts by its code, and what it imports by its version.
    assert {"classifiers.py", name} <= set(mine.files)
    assert any(file.startswith("numpy ") for file in mine.files)
