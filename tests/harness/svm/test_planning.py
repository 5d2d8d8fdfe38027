"""From a task and a solver to a run: what is skipped and why, which parameters it gets, its key."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from marginbench.harness.errors import StudyError, UserError
from marginbench.harness.evaluation.svm import EstimatorWork, ReferenceInfo, StoppingRules
from marginbench.harness.planning.preflight import DescribeWork, Facts, SolverInfo
from marginbench.harness.planning.svm import KIND

from ..answers import DATA

SVC = {"kernel": "rbf", "gamma": 0.5, "C": 2.0, "random_state": 4}
REFERENCE = ReferenceInfo(10.0, 9.999, 0.001, 0.05, 7, 0.123456789012345, "r" * 64)
TEN = replace(DATA, n_classes=10)
KERNELIZED = ("kernel", "gamma", "degree", "coef0", "C", "fit_intercept", "random_state")
LINEAR = ("C", "random_state")
TRAITS = dict.fromkeys(
    ("supports_bias", "supports_no_bias", "supports_sparse", "instrumented"), True
) | {"scalarization": "C", "certificate": None}
MINE = Path(__file__).parent / "classifiers.py"


def solver(accepted=KERNELIZED, **traits):
    """A solver that supports everything, but for what is said otherwise."""
    defaults, traits = dict.fromkeys(accepted), {**TRAITS, **traits}
    return SolverInfo("mine.py:Mine", "", defaults, (), traits, source_hash="s" * 64)


@pytest.fixture
def plan(make_study):
    """Plans the run of a solver, given as what is known of it or by its name, on a task."""

    def planned(info, data=DATA, reference=REFERENCE, seed=0, params=None, entry=None, **values):
        name = info if isinstance(info, str) else "SMO"
        tables = {table: values.pop(table, {}) for table in ("budget", "tuning")}
        width = {} if values.get("kernel") == "linear" else {"gamma": 0.5}
        study = make_study(
            task=[{"label": "t", "dataset": "digits", "C": 2.0, **width, **values}],
            solver=[{"name": name, "label": "mine", "params": params or {}, **(entry or {})}],
            **tables,
        )
        study = study.with_tasks([each.completed() for each in study.task])
        task, entry = study.task[0], study.solver[0]
        if info is name:
            info = DescribeWork(name, "svm").run(print)
            if mistakes := list(KIND.mistakes(study, {"mine": info})):
                raise StudyError(*mistakes)
        facts = Facts({"mine": info}, {task.label: data}, {task.label: reference})
        return KIND.configuration(study, facts, task, entry).run(seed)

    return planned


def test_a_tuned_run_searches_what_its_solver_takes(plan):
    tune = {"C": [1.0, 10.0], "gamma": [0.5]}
    run = plan(solver(), C=None, gamma=None, tune=tune)
    search = run.work.search
    assert search.configurations == ({"C": 1.0, "gamma": 0.5}, {"C": 10.0, "gamma": 0.5})
    assert run.columns["C"] is None
    assert json.loads(run.columns["kernel"]) == {"name": "rbf", "gamma": None}
    planned = json.loads(run.columns["params"])
    assert (planned["C"], planned["gamma"], planned["kernel"]) == (None, None, "rbf")
    # Twice what two trials may take, and an evaluation.
    assert (run.limits.seconds["tune"], run.limits.total) == (840.0, 2580.0 + 840.0)
    # A linear method has no gamma, and a method without C only what is its own.
    linear = plan(solver(LINEAR), C=None, kernel="linear", tune={"C": [1.0, 10.0]})
    assert linear.work.search.configurations == ({"C": 1.0}, {"C": 10.0})
    without = solver((*set(KERNELIZED) - {"C"}, "eta0"))
    own = plan(without, C=None, gamma=None, tune=tune, entry={"tune": {"eta0": [1, 2]}})
    assert own.work.search.configurations == ({"gamma": 0.5, "eta0": 1}, {"gamma": 0.5, "eta0": 2})
    assert plan(solver()).work.search is None
    values = [float(value) for value in range(1, 42)]
    most = plan(solver(), C=None, gamma=None, tune={"C": values[:40], "gamma": values[:25]})
    assert len(most.work.search.configurations) == 1000
    message = "'mine' on 't' has 1025 configurations to choose from; give fewer values in tune"
    with pytest.raises(StudyError, match=message):
        plan(solver(), C=None, gamma=None, tune={"C": values, "gamma": values[:25]})


UNCOUNTED = solver(instrumented=False)
EVALS = {"tuning": {"kernel_evals": 1e6}}


@pytest.mark.parametrize(
    ("info", "data", "values", "reason"),
    [
        # A linear method runs on linear tasks only; one that takes a kernel, on all.
        (solver(LINEAR), {}, {"kernel": "linear"}, ""),
        (solver(LINEAR), {}, {}, "mine takes no kernel; the task has 'rbf'"),
        (solver(("kernel",)), {}, {"kernel": "linear"}, ""),
        (solver(("kernel", "gamma")), {}, {"kernel": "poly"}, "mine does not take the kernel's c"),
        (solver(supports_sparse=False), {"sparse": True}, {}, "mine does not take sparse data"),
        (solver(), {"n_classes": 10}, {}, ""),
        (solver(scalarization="S"), {"n_classes": 10}, {}, "mine takes nu from the reference "),
        (UNCOUNTED, {}, {"budget": {"stop": {"suboptimality": 0.1}}}, ""),
        (UNCOUNTED, {}, {"budget": {"kernel_evals": 1e6}}, "mine does not count, so the budget's"),
        (UNCOUNTED, {}, {"budget": {"iterations": 5}}, "mine does not count, so the budget's iter"),
        (UNCOUNTED, {}, {"C": None, "tune": {"C": [1.0, 2.0]}} | EVALS, "mine does not count, so"),
        (UNCOUNTED, {}, EVALS, ""),
        ("sklearn.svm:SVC", {}, {"kernel": "laplacian"}, "mine has no kernel 'laplacian'"),
        ("sklearn.svm:LinearSVC", {}, {"kernel": "laplacian"}, ""),
    ],
)
def test_what_a_task_asks_for_decides_who_runs(plan, info, data, values, reason):
    run = plan(info, replace(DATA, **data), fit_intercept=True, **values)
    assert run.failure == ""
    assert run.skip_reason.startswith(reason)
    assert bool(run.skip_reason) == bool(reason)


@pytest.mark.parametrize("params", [{}, {"nu": "reference"}])
def test_nu_is_that_of_the_reference_to_ten_digits(plan, params):
    info = solver((*KERNELIZED, "nu"), scalarization="S")
    run = plan(info, params=params)
    assert run.work.params["nu"] == 0.1234567890
    for reference, why in (
        ("the task has reference = false", "the task has reference = false"),
        (replace(REFERENCE, nu=None), "its w is zero"),
    ):
        assert plan(info, reference=reference, params=params).failure == (
            f"nu is to be that of the reference optimum, but there is none: {why}; "
            "give nu a number in params"
        )
        given = plan(info, reference=reference, params={"nu": 0.5})
        assert (given.failure, given.work.params["nu"]) == ("", 0.5)
        # One reason is enough where the data are missing as well.
        missing = plan(info, data="digits: gone", reference=reference)
        assert (missing.failure, missing.skip_reason) == ("digits: gone", "")


INFO, ACCURATE = solver((*KERNELIZED, "tol")), {"stop": {"suboptimality": 1e-2}}
TUNED = {"C": None, "tune": {"C": [1.0, 10.0]}}
#: What makes another run of the plain one, each another.
OTHER_RUNS = [
    *({name: 3.0} for name in ("C", "gamma")),
    *({"seed": 1}, {"kernel": "linear"}, {"fit_intercept": True}, {"label": "another"}),
    *({"data": replace(DATA, fingerprint="g" * 64)}, {"data": "digits: gone"}),
    *({"info": replace(INFO, **{name: value})} for name, value in (
        ("source_hash", "t" * 64), ("defaults", {**INFO.defaults, "size": 0.1}),
        ("shown", "other.py:Mine"),
    )),
    *({"budget": budget} for budget in (
        {"checkpoint_factor": 2.0}, {"epoch_checkpoints": True}, {"kernel_evals": 1e6},
        {"kernel_evals": 2e6}, {"iterations": 100}, ACCURATE, {"stop": {"suboptimality": 1e-3}},
    )),
    # The whole protocol of tuning.
    *(TUNED | change for change in (
        {}, {"tune": {"C": [1.0, 100.0]}}, {"tune": {"C": [10.0, 1.0]}},
        {"entry": {"tune": {"tol": [0.1, 0.01]}}}, {"budget": {"timeout": 7.0}},
    )),
    *(TUNED | {"tuning": {name: value}} for name, value in (
        ("method", "halving"), ("validation", 0.3), ("folds", 3), ("seed", 1), ("seconds", 9.0),
        ("kernel_evals", 1e6),
    )),
]  # fmt: skip
#: What a run is the same with: its plan, and what makes no difference to it.
SAME_RUNS = [
    ({}, {"budget": {"timeout": 1.0, "memory": 99.0, "evaluation_timeout": 3.0}}),
    ({}, {"data": replace(DATA, citation="another", notes=("a note",))}),
    ({}, {"reference": replace(REFERENCE, hash="q" * 64)}),
    ({}, {"reference": "timeout"}),
    ({}, {"tuning": {"method": "halving"}}),
    # Digits that the certificate of the reference does not promise.
    ({"budget": ACCURATE}, {"reference": replace(REFERENCE, primal=10.0 * (1 + 1e-13))}),
    (
        {"info": solver((*KERNELIZED, "nu"), scalarization="S")},
        {"reference": replace(REFERENCE, nu=0.123456789012999, hash="q" * 64)},
    ),
    # The suboptimality of an objective that the solver does not minimise.
    ({"info": solver(scalarization=None)}, {"budget": ACCURATE}),
]


def test_the_key_knows_what_changes_a_run_and_nothing_else(plan):
    runs = [plan(**{"info": INFO, **change}) for change in ({}, *OTHER_RUNS)]
    assert len({run.key for run in runs}) == len(runs)
    assert not [run for run in runs if "Infinity" in run.columns["key_parts"]]
    assert plan(INFO, budget=ACCURATE).work.rules == StoppingRules(primal=10.0 * 1.01)
    for base, change in SAME_RUNS:
        base = {"info": INFO, **base}
        assert plan(**base, **change).key == plan(**base).key, change


def test_a_solver_gets_what_it_takes_of_the_task_and_its_own_parameters(plan):
    info = solver(("kernel", "gamma", "C", "random_state", "tol"))
    assert plan(info, params={"tol": 0.1}, seed=4).work.params == SVC | {"tol": 0.1}


# Solvers from outside


@pytest.mark.parametrize(
    ("name", "params", "decided", "solves"),
    [
        ("sklearn.svm:SVC", {}, SVC, True),
        ("sklearn.svm:SVC", {"tol": 1e-5, "shrinking": False}, SVC, True),
        # Weights of classes are another problem.
        ("sklearn.svm:SVC", {"class_weight": "balanced"}, SVC, False),
        ("sklearn.svm:LinearSVC", {}, {"C": 2.0, "random_state": 4}, False),
        ("sklearn.linear_model:LogisticRegression", {}, {"C": 2.0, "random_state": 4}, False),
        ("sklearn.ensemble:RandomForestClassifier", {}, {"random_state": 4}, False),
        (f"{MINE}:Constant", {}, {}, None),
        (f"{MINE}:make", {}, {}, None),
        (f"{MINE}:Promises", {}, {"kernel": "rbf", "C": 2.0}, True),
    ],
)
def test_the_task_decides_what_means_the_same_and_the_study_the_rest(
    name, params, decided, solves, plan
):
    run = plan(name, params=params, fit_intercept=True, seed=4)
    assert isinstance(run.work, EstimatorWork)
    bias = {"fit_intercept": True} if name.endswith("Regression") else {}
    assert (run.work.solver, run.work.params) == (name, decided | bias | params)
    assert (run.work.seed, run.work.tol) == (4, params.get("tol", run.work.tol))
    assert (run.foreign, run.skip_reason, run.failure) == (True, "", "")
    assert run.work.solves is solves
    assert run.columns["judged_by"] == ("model" if solves else "predictions")
    weighed = "it is given class_weight" if "class_weight" in params else ""
    assert run.columns["other_problem"] == weighed


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("sklearn.svm:SVC", {"C": 1.0}, "'C' is decided by the task"),
        ("sklearn.svm:SVC", {"shrink": 1}, "unknown parameter 'shrink' .did you mean 'shrinking'"),
        ("sklearn.svm:LinearSVC", {"random_state": 1}, "'random_state' is decided by the task"),
        ("sklearn.preprocessing:StandardScaler", {}, "is not a solver; derive it from"),
        ("math:pi", {}, "is a float; give a class, or a function that makes"),
    ],
)
def test_what_makes_no_sense_is_refused(name, params, message, plan):
    with pytest.raises(UserError, match=message):
        plan(name, params=params)


@pytest.mark.parametrize(
    ("name", "bias", "skipped", "differs"),
    [
        ("sklearn.svm:SVC", True, "mine always fits a bias, which the task has not; set "
         "fit_intercept = true there", "it fits a bias, which the task has not"),
        (f"{MINE}:Promises", True, "mine always fits a bias", "it fits a bias, which the task has"),
        ("LIBSVM", True, "mine always fits a bias", "it fits a bias, which the task has not"),
        ("SDCA", False, "mine has no unregularised bias, which the task asks for; set "
         "fit_intercept = false there", "it fits no bias, which the task has"),
    ],
)  # fmt: skip
def test_a_solver_of_another_problem_runs_only_if_asked_to(name, bias, skipped, differs, plan):
    without = plan(name, fit_intercept=not bias)
    assert without.skip_reason.startswith(skipped)
    assert without.columns["other_problem"] == ""
    run = plan(name, fit_intercept=not bias, entry={"other_problem": True})
    assert run.skip_reason == ""
    assert run.columns["other_problem"].startswith(differs)
    # It is judged as a solution of its own problem; the record keeps the task's.
    assert run.work.problem.fit_intercept is bias
    assert run.columns["fit_intercept"] is not bias
    assert run.key != without.key
    # Where the problems are the same, asking changes nothing.
    same = plan(name, fit_intercept=bias, entry={"other_problem": True})
    assert same.columns["other_problem"] == ""
    assert same.key == plan(name, fit_intercept=bias).key
    found = []
    for each in (run, same):
        columns = each.columns | {"primal": 11.0, "dual": 10.5}
        record = KIND.record(key="", study="s", task="t", solver="mine", seed=0, **columns)
        KIND.complete(record, each)
        found.append((record.suboptimality, record.gap))
        record.primal, record.gap = math.inf, None
        KIND.complete(record, each)
        assert (record.primal, record.gap, record.suboptimality) == (None, None, None)
    # The objective of another problem is not compared.
    assert found == [(None, 0.5), (pytest.approx(0.1), 0.5)]


@pytest.mark.parametrize(
    ("name", "words"),
    [("sklearn.svm:SVC", "one classifier for each pair of classes"), (f"{MINE}:Promises", "")],
)
def test_several_classes_are_judged_by_predictions(name, words, plan):
    run = plan(name, data=TEN, fit_intercept=True)
    assert (run.skip_reason, run.work.solves) == ("", False)
    assert words in run.columns["other_problem"]
    assert bool(words) == bool(run.columns["other_problem"])
    assert run.columns["judged_by"] == "predictions"
