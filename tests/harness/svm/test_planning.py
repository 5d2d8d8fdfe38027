"""From a task and a solver to a run: what is skipped and why, which parameters it gets, its key."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.evaluation.svm import EstimatorWork, ReferenceInfo
from marginbench.harness.planning.preflight import DescribeWork, Facts, SolverInfo
from marginbench.harness.planning.svm import KIND

from ..answers import DATA

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
    assert run.limits.seconds["tune"] > 2 * search.trial_seconds
    # A linear method has no gamma, and a method without C only what is its own.
    linear = plan(solver(LINEAR), C=None, kernel="linear", tune={"C": [1.0, 10.0]})
    assert linear.work.search.configurations == ({"C": 1.0}, {"C": 10.0})
    without = solver((*set(KERNELIZED) - {"C"}, "eta0"))
    own = plan(without, C=None, gamma=None, tune=tune, entry={"tune": {"eta0": [1, 2]}})
    assert own.work.search.configurations == ({"gamma": 0.5, "eta0": 1}, {"gamma": 0.5, "eta0": 2})
    assert plan(solver()).work.search is None
    values = [float(value) for value in range(1, 41)]
    message = "'mine' on 't' has 1600 configurations to choose from; give fewer values in tune"
    with pytest.raises(StudyError, match=message):
        plan(solver(), C=None, gamma=None, tune={"C": values, "gamma": values})


def test_the_whole_protocol_of_tuning_is_in_the_key(plan):
    base = {"C": None, "tune": {"C": [1.0, 10.0]}}
    others = [
        {},
        {"C": None, "tune": {"C": [1.0, 100.0]}},
        {"C": None, "tune": {"C": [10.0, 1.0]}},
        {"entry": {"tune": {"tol": [0.1, 0.01]}}},
        {"budget": {"timeout": 7.0}},
        *({"tuning": {name: value}} for name, value in (
            ("method", "halving"), ("validation", 0.3), ("folds", 3), ("seed", 1),
            ("seconds", 9.0), ("kernel_evals", 1e6),
        )),
    ]  # fmt: skip
    info = solver((*KERNELIZED, "tol"))
    keys = {plan(info, **{**base, **change}).key for change in others}
    assert len(keys) == len(others)
    # Where nothing is tuned it changes nothing.
    assert plan(info, tuning={"method": "halving"}).key == plan(info).key
    assert "Infinity" not in plan(info, **base).columns["key_parts"]


def test_rules_that_end_a_run_by_what_it_has_done_are_in_its_key(plan):
    stops = [{"stop": {"suboptimality": value}} for value in (1e-2, 1e-3)]
    budgets = [{}, {"kernel_evals": 1e6}, {"kernel_evals": 2e6}, {"iterations": 100}, *stops]
    keys = [plan(solver(), budget=budget).key for budget in budgets]
    assert len(set(keys)) == len(keys)
    # An objective that the solver does not minimise.
    norm_bound = solver(scalarization=None)
    assert plan(norm_bound, budget=stops[0]).key == plan(norm_bound).key
    # The reference to ten digits: the last ones differ between machines.
    again = replace(REFERENCE, primal=REFERENCE.primal * (1 + 1e-13))
    assert plan(solver(), reference=again, budget=budgets[-1]).key == keys[-1]


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


def test_a_solver_gets_what_it_takes_of_the_task_and_its_own_parameters(plan):
    info = solver(("kernel", "gamma", "C", "random_state", "tol"))
    work = plan(info, params={"tol": 0.1}, seed=4).work
    assert work.params == {"kernel": "rbf", "gamma": 0.5, "C": 2.0, "random_state": 4, "tol": 0.1}


@pytest.mark.parametrize("params", [{}, {"nu": "reference"}])
def test_nu_is_that_of_the_reference_to_ten_digits(plan, params):
    info = solver((*KERNELIZED, "nu"), scalarization="S")
    run = plan(info, params=params)
    assert run.work.params["nu"] == 0.1234567890
    # Digits that the certificate does not promise change no key.
    noisy = replace(REFERENCE, nu=0.123456789012999, hash="q" * 64)
    assert plan(info, params=params, reference=noisy).key == run.key
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


def test_the_key_knows_what_changes_a_run_and_nothing_else(plan):
    info = solver()
    key = plan(info).key
    for change in (
        {"budget": {"timeout": 1.0, "memory": 99.0, "evaluation_timeout": 3.0}},
        {"data": replace(DATA, citation="another", notes=("a note",))},
        {"reference": replace(REFERENCE, hash="q" * 64)},
        {"reference": "timeout"},
    ):
        assert plan(info, **change).key == key, change
    other = [
        *({name: 3.0} for name in ("C", "gamma")),
        {"seed": 1},
        {"kernel": "linear"},
        {"fit_intercept": True},
        {"label": "another"},
        {"data": replace(DATA, fingerprint="g" * 64)},
        {"data": "digits: gone"},
        {"budget": {"checkpoint_factor": 2.0}},
        {"budget": {"epoch_checkpoints": True}},
        {"info": replace(info, source_hash="t" * 64)},
        {"info": replace(info, defaults={**info.defaults, "tol": 0.1})},
        {"info": replace(info, shown="other.py:Mine")},
    ]
    keys = {plan(**{"info": info, **change}).key for change in other}
    assert len({key, *keys}) == len(other) + 1


# Solvers from outside


@pytest.mark.parametrize(
    ("name", "decided", "solves"),
    [
        ("sklearn.svm:SVC", {"kernel": "rbf", "gamma": 0.5, "C": 2.0}, True),
        ("sklearn.svm:LinearSVC", {"C": 2.0}, False),
        ("sklearn.linear_model:LogisticRegression", {"C": 2.0, "fit_intercept": True}, False),
        ("sklearn.ensemble:RandomForestClassifier", {}, False),
        (f"{MINE}:Constant", {}, None),
        (f"{MINE}:make", {}, None),
        (f"{MINE}:Promises", {"kernel": "rbf", "C": 2.0}, True),
    ],
)
def test_the_task_decides_what_means_the_same(name, decided, solves, plan):
    run = plan(name, fit_intercept=True, seed=4)
    assert isinstance(run.work, EstimatorWork)
    seeded = {"random_state": 4} if name.startswith("sklearn.") else {}
    assert (run.work.solver, run.work.params, run.work.seed) == (name, decided | seeded, 4)
    assert (run.foreign, run.skip_reason, run.failure) == (True, "", "")
    assert run.work.solves is solves
    assert run.columns["judged_by"] == ("model" if solves else "predictions")


def test_the_study_decides_the_rest(plan):
    params = {"tol": 1e-5, "shrinking": False, "class_weight": "balanced"}
    run = plan("sklearn.svm:SVC", params=params, fit_intercept=True)
    decided = {"kernel": "rbf", "gamma": 0.5, "C": 2.0, "random_state": 0}
    assert run.work.params == decided | params
    assert run.work.tol == 1e-5
    # Weights of classes are another problem.
    assert (run.work.solves, run.columns["other_problem"]) == (False, "it is given class_weight")


def test_what_cannot_be_a_classifier_is_refused():
    for name, message in (
        ("sklearn.preprocessing:StandardScaler", "is not a solver; derive it from"),
        ("math:pi", "is a float; give a class, or a function that makes"),
    ):
        with pytest.raises(SolverError, match=message):
            DescribeWork(name, "svm").run(print)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("sklearn.svm:SVC", {"C": 1.0}, "'C' is decided by the task"),
        ("sklearn.svm:SVC", {"shrink": 1}, "unknown parameter 'shrink' .did you mean 'shrinking'"),
        ("sklearn.svm:LinearSVC", {"random_state": 1}, "'random_state' is decided by the task"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name, params, message, plan):
    with pytest.raises(StudyError, match=message):
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
        columns = each.columns | {"primal": 11.0}
        record = KIND.record(key="", study="s", task="t", solver="mine", seed=0, **columns)
        KIND.complete(record, each)
        found.append(record.suboptimality)
    # The objective of another problem is not compared.
    assert found == [None, pytest.approx(0.1)]


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
