"""Classifiers of other libraries: judged by their model where they have one, or by predictions."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import SVC, LinearSVC

from marginbench.data_loaders import load
from marginbench.harness.errors import SolverError
from marginbench.harness.evaluation.svm import EstimatorWork, Problem, Search

from ..answers import carried_out

DATA = {"n_train": 200, "n_test": 100}
PROBLEM = Problem("checkers", DATA, {"name": "rbf", "gamma": 10.0}, 1.0, True)
#: What the seed (0, 0) of a search draws for its split.
SPLIT = int(np.random.default_rng((0, 0)).integers(2**31))
HERE = Path(__file__).parent
MINE = HERE / "classifiers.py"


def run(work):
    """The columns and the trace of a run."""
    columns, trace, _ = carried_out(work)
    return work.parsed(columns), trace


def estimator(name, problem=PROBLEM, solves=False, **params):
    return EstimatorWork(problem, name, params, seed=3, solves=solves)


def data(problem=PROBLEM):
    return load(problem.dataset, problem.dataset_params or None)


def errors(found, given):
    return (
        float(np.mean(found.predict(given.X_train) != given.y_train)),
        float(np.mean(found.predict(given.X_test) != given.y_test)),
    )


NOT_KNOWN = ("n_iter", "n_support", "counters", "primal", "dual")


def test_a_classifier_is_judged_by_what_it_predicts():
    columns, (state,) = run(
        estimator("sklearn.ensemble:RandomForestClassifier", n_estimators=5, max_depth=3)
    )
    given = data()
    same = RandomForestClassifier(n_estimators=5, max_depth=3, random_state=3)
    expected = errors(same.fit(given.X_train, given.y_train), given)
    assert (columns["status"], columns["judged_by"]) == ("converged", "predictions")
    assert (columns["train_error"], columns["test_error"]) == expected
    assert columns["wall_s"] == state.wall_s > 0
    assert {getattr(state, name) for name in NOT_KNOWN} == {None}
    assert set(columns).isdisjoint(NOT_KNOWN)


def test_an_svc_is_judged_by_its_coefficients():
    params = {"kernel": "rbf", "gamma": 10.0, "C": 1.0}
    columns, (state,) = run(estimator("sklearn.svm:SVC", solves=True, **params))
    given = data()
    svc = SVC(gamma=10.0).fit(given.X_train, given.y_train)
    assert (columns["status"], columns["judged_by"]) == ("converged", "model")
    assert (columns["train_error"], columns["test_error"]) == errors(svc, given)
    assert columns["n_support"] == len(svc.support_) == state.n_support
    # The dual value from scratch: sum alpha - 1/2 ||w||^2.
    K = np.exp(-10.0 * ((given.X_train[:, None] - given.X_train[None]) ** 2).sum(axis=2))
    coef = np.zeros(len(K))
    coef[svc.support_] = svc.dual_coef_[0]
    assert columns["dual"] == pytest.approx(np.abs(coef).sum() - coef @ K @ coef / 2, rel=1e-5)
    assert 0 <= columns["gap"] < 1e-2 * columns["primal"]
    assert (columns["n_iter"], columns["counters"]) == (svc.n_iter_[0], None)


def test_an_svc_of_another_problem_does_not_pass_for_the_tasks():
    # Its box is [0, 5], not [0, 1].
    columns, _ = run(estimator("sklearn.svm:SVC", solves=True, gamma=10.0, C=5.0))
    assert columns["status"] == "wrong"
    assert "no feasible dual point" in columns["reason"]


@pytest.mark.parametrize("C", [1.0, 5.0])
def test_a_class_that_promises_nothing_is_judged_by_a_model_that_holds(C):
    columns, (state,) = run(estimator("sklearn.svm:SVC", solves=None, gamma=10.0, C=C))
    judged_by = "model" if C == 1.0 else "predictions"
    assert (columns["status"], columns["judged_by"]) == ("converged", judged_by)
    assert (state.primal is None) == (C != 1.0)
    none = replace(PROBLEM, fit_intercept=False)
    assert run(estimator("sklearn.svm:SVC", none, None, gamma=10.0))[0]["judged_by"] == (
        "predictions"
    )


def test_a_function_makes_a_pipeline_with_the_seed_of_the_run():
    first, _ = run(estimator(f"{MINE}:make"))
    again, _ = run(estimator(f"{MINE}:make"))
    assert first["test_error"] == again["test_error"]
    other = EstimatorWork(PROBLEM, f"{MINE}:make", {}, seed=4)
    assert run(other)[0]["train_error"] != first["train_error"]


@pytest.mark.slow
def test_an_early_end_is_told_by_its_warning():
    given = data()
    columns, _ = run(estimator("sklearn.svm:LinearSVC", max_iter=1))
    with pytest.warns(match="failed to converge"):
        expected = errors(
            LinearSVC(max_iter=1, random_state=3).fit(given.X_train, given.y_train), given
        )
    assert columns["status"] == "budget"
    assert "failed to converge" in columns["reason"]
    assert (columns["train_error"], columns["test_error"]) == expected


def test_a_classifier_is_tuned_by_what_it_predicts():
    values = ({"gamma": 1e-3}, {"gamma": 10.0}, {"gamma": -1.0})
    given = {"kernel": "rbf", "C": 1.0}
    search = Search(values, params={**given, "gamma": None})
    problem = replace(PROBLEM, kernel={"name": "rbf", "gamma": 1e-3})
    work = estimator("sklearn.svm:SVC", problem, solves=True, **given, gamma=1e-3)
    tuned = replace(work, search=search, decided=("C", "gamma"))
    columns, _ = run(tuned)
    fit, held_out = next(
        StratifiedShuffleSplit(1, test_size=0.25, random_state=SPLIT).split(
            data().X_train, data().y_train
        )
    )
    first, second, third = json.loads(columns["tuning"])
    for trial, gamma in ((first, 1e-3), (second, 10.0)):
        svc = SVC(gamma=gamma).fit(data().X_train[fit], data().y_train[fit])
        wrong = svc.predict(data().X_train[held_out]) != data().y_train[held_out]
        assert trial["error"] == np.mean(wrong)
        assert (trial["ended"], trial["kernel_evals"]) == ("completed", None)
    assert third["ended"].startswith("failed: InvalidParameterError")
    for column in ("kernel", "params"):
        assert json.loads(columns[column])["gamma"] == 10.0
    alone, _ = run(estimator("sklearn.svm:SVC", solves=True, **given, gamma=10.0))
    assert {name: columns[name] for name in ("primal", "test_error", "status")} == {
        name: alone[name] for name in ("primal", "test_error", "status")
    }
    # A parameter of its own that is called C changes no problem.
    assert replace(tuned, decided=()).configured({"C": 5.0}).problem == problem


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("one column", "predict returned shape (200, 1) for the 200 training points"),
        ("too few", "predict returned shape (199,) for the 200 training points"),
        ("text", "predict returned values of type <U4, not the labels of the task"),
        ("objects", "predict returned values of type object, not the labels of the task"),
        ("nan", "the prediction for training point 0, nan, is no class of the task"),
        ("another class", "the prediction for training point 5, 3, is no class of the task"),
    ],
)
def test_predictions_that_are_none_make_a_run_wrong(how, reason):
    columns, trace = run(estimator(f"{MINE}:Constant", how=how))
    assert (columns["status"], columns["reason"], trace) == ("wrong", reason, [])
    assert columns.get("test_error") is None


@pytest.mark.parametrize(
    ("name", "how", "error", "message"),
    [
        ("Constant", {"how": "raises"}, ArithmeticError, "step size is zero"),
        ("Constant", {"how": "raises in predict"}, ArithmeticError, "not fitted"),
        ("Constant", {"how": "ragged"}, ValueError, "inhomogeneous"),
        ("make_nothing", {}, SolverError, "made a dict without fit; it must make a classifier"),
    ],
)
def test_what_an_estimator_raises_is_passed_on(name, how, error, message):
    with pytest.raises(error, match=message):
        run(estimator(f"{MINE}:{name}", **how))
