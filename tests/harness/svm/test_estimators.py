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
from marginbench.harness.evaluation.svm import EstimatorWork, Problem, Search

from ..answers import carried_out

DATA = {"n_train": 200, "n_test": 100}
PROBLEM = Problem("checkers", DATA, {"name": "rbf", "gamma": 10.0}, 1.0, True)
#: What the seed (0, 0) of a search draws for its split.
SPLIT = int(np.random.default_rng((0, 0)).integers(2**31))
MINE = Path(__file__).parent / "classifiers.py"
NOT_KNOWN = ("n_iter", "n_support", "counters", "primal", "dual")


@pytest.fixture(scope="module")
def given():
    return load("checkers", DATA)


def run(work):
    """The columns and the trace of a run."""
    columns, trace, _ = carried_out(work)
    return work.parsed(columns), trace


def estimator(name, problem=PROBLEM, solves=False, **params):
    return EstimatorWork(problem, name, params, seed=3, solves=solves)


def errors(fitted, given):
    """On the training and the test points, of one that has been fitted."""
    return (
        float(np.mean(fitted.predict(given.X_train) != given.y_train)),
        float(np.mean(fitted.predict(given.X_test) != given.y_test)),
    )


def test_a_classifier_is_judged_by_what_it_predicts(given):
    params = {"n_estimators": 5, "max_depth": 3}
    columns, (state,) = run(estimator("sklearn.ensemble:RandomForestClassifier", **params))
    same = RandomForestClassifier(**params, random_state=3).fit(given.X_train, given.y_train)
    assert (columns["status"], columns["judged_by"]) == ("converged", "predictions")
    assert (columns["train_error"], columns["test_error"]) == errors(same, given)
    assert columns["wall_s"] == state.wall_s > 0
    assert {getattr(state, name) for name in NOT_KNOWN} == {None}
    assert set(columns).isdisjoint(NOT_KNOWN)


def test_an_svc_is_judged_by_its_coefficients(given):
    params = {"kernel": "rbf", "gamma": 10.0, "C": 1.0}
    columns, (state,) = run(estimator("sklearn.svm:SVC", solves=True, **params))
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


@pytest.mark.parametrize(
    ("solves", "C", "bias", "status", "judged_by"),
    [
        # The box of another C is not the task's.
        (True, 5.0, True, "wrong", "model"),
        (None, 5.0, True, "converged", "predictions"),
        (None, 1.0, True, "converged", "model"),
        (None, 1.0, False, "converged", "predictions"),
    ],
)
def test_only_who_promises_the_problem_of_the_task_must_solve_it(
    solves, C, bias, status, judged_by
):
    problem = replace(PROBLEM, fit_intercept=bias)
    columns, states = run(estimator("sklearn.svm:SVC", problem, solves, gamma=10.0, C=C))
    assert (columns["status"], columns["judged_by"]) == (status, judged_by)
    if status == "wrong":
        assert "no feasible dual point" in columns["reason"]
    else:
        assert (states[0].primal is None) == (judged_by == "predictions")


def test_a_function_makes_a_pipeline_with_the_seed_of_the_run():
    work = estimator(f"{MINE}:make")
    first, again, other = (run(each)[0] for each in (work, work, replace(work, seed=4)))
    assert first["test_error"] == again["test_error"]
    assert first["train_error"] != other["train_error"]
    # Its own seed stays.
    set_to_4 = run(estimator(f"{MINE}:make", seed=4))[0]
    assert set_to_4["train_error"] == other["train_error"]


def test_an_early_end_is_told_by_its_warning(given):
    columns, _ = run(estimator("sklearn.svm:LinearSVC", max_iter=1))
    with pytest.warns(match="failed to converge"):
        same = LinearSVC(max_iter=1, random_state=3).fit(given.X_train, given.y_train)
    assert columns["status"] == "budget"
    assert "failed to converge" in columns["reason"]
    assert (columns["train_error"], columns["test_error"]) == errors(same, given)
    # Of a model that is judged as well.
    columns, _ = run(estimator("sklearn.svm:SVC", solves=True, gamma=10.0, max_iter=1))
    assert (columns["status"], columns["judged_by"]) == ("budget", "model")
    assert "terminated early" in columns["reason"]


def test_a_classifier_is_tuned_by_what_it_predicts(given):
    values, own = ({"gamma": 1e-3}, {"gamma": 10.0}, {"gamma": -1.0}), {"kernel": "rbf", "C": 1.0}
    problem = replace(PROBLEM, kernel={"name": "rbf", "gamma": 1e-3})
    work = estimator("sklearn.svm:SVC", problem, solves=True, **own, gamma=1e-3)
    search = Search(values, params={**own, "gamma": None})
    tuned = replace(work, search=search, decided=("C", "gamma"))
    columns, _ = run(tuned)
    X, y = given.X_train, given.y_train
    split = StratifiedShuffleSplit(1, test_size=0.25, random_state=SPLIT)
    fit, held_out = next(split.split(X, y))
    first, second, third = json.loads(columns["tuning"])
    for trial, gamma in ((first, 1e-3), (second, 10.0)):
        wrong = SVC(gamma=gamma).fit(X[fit], y[fit]).predict(X[held_out]) != y[held_out]
        assert trial["error"] == np.mean(wrong)
        assert (trial["ended"], trial["kernel_evals"]) == ("completed", None)
    assert third["ended"].startswith("failed: InvalidParameterError")
    for column in ("kernel", "params"):
        assert json.loads(columns[column])["gamma"] == 10.0
    alone, _ = run(estimator("sklearn.svm:SVC", solves=True, **own, gamma=10.0))
    for name in ("primal", "test_error", "status"):
        assert columns[name] == alone[name]
    # A parameter of its own that is called C changes no problem.
    assert replace(tuned, decided=()).configured({"C": 5.0}).problem == problem


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("one column", "predict returned shape (200, 1) for the 200 training points"),
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


def test_what_gives_no_predictions_raises():
    with pytest.raises(ValueError, match="inhomogeneous"):
        run(estimator(f"{MINE}:Constant", how="ragged"))
    with pytest.raises(AttributeError, match="'dict' object has no attribute 'fit'"):
        run(estimator(f"{MINE}:make_nothing"))
