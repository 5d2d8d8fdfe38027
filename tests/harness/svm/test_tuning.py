"""Tuning: what is tried on what, which configuration is chosen, and what that costs."""

import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from marginbench import SMO, Pegasos
from marginbench.harness.evaluation.judging import load_task_data
from marginbench.harness.evaluation.measurement import try_part
from marginbench.harness.evaluation.models import mistaken
from marginbench.harness.evaluation.svm import (
    FitWork,
    Problem,
    Round,
    Search,
    StoppingRules,
    configurations,
)
from marginbench.harness.evaluation.tuning import Tuning

PROBLEM = Problem(
    "checkers", {"n_train": 200, "n_test": 100}, {"name": "rbf", "gamma": 1.0}, 1.0, False
)
GRID = configurations({"C": [0.01, 10.0], "gamma": [0.1, 10.0]})


@pytest.fixture(scope="module")
def data():
    return load_task_data(PROBLEM)


class Build:
    """Makes estimators and keeps them with what they were fitted to."""

    def __init__(self, cls=SMO):
        self.cls, self.fitted = cls, []

    def __call__(self, work):
        fitted = self.fitted

        class Kept(self.cls):
            def fit(self, X, y, **options):
                fitted.append((self, X, y))
                return super().fit(X, y, **options)

        return Kept(**work.params)

    def mistakes(self, data):
        """Of each fit on the points that it did not see, and which those are."""
        for estimator, X, _ in self.fitted:
            rest = np.setdiff1d(np.arange(data.n_train), places_of(data, X))
            wrong = estimator.predict(data.X_train[rest]) != data.y_train[rest]
            yield int(wrong.sum()), rest


def tuned(data, build=None, rules=None, **search):
    search = Search(**{"configurations": GRID, **search})
    work = FitWork(PROBLEM, "SMO", {}, 1.19, rules=rules or StoppingRules(), search=search)
    return Tuning(work, search, data, partial(try_part, build or Build()))


def places_of(data, X):
    """The places of points in the training part; no two points of it are the same."""
    rows = {row.tobytes(): place for place, row in enumerate(data.X_train)}
    return [rows[row.tobytes()] for row in X]


def each(name, found):
    """A property of every trial."""
    return [getattr(trial, name) for trial in found.trials]


def test_halving_halves_the_configurations_and_doubles_the_resource():
    search = Search(tuple({"C": c} for c in range(1, 9)), method="halving")
    assert search.rounds(800, 2) == [Round(8, 100), Round(4, 200), Round(2, 400), Round(1, 800)]
    # Ten points of each class at least: there is room for two rounds.
    assert search.rounds(70, 2) == [Round(8, 35), Round(4, 70)]
    assert search.rounds(10, 2) == [Round(8, 10)]
    counted = replace(search, resource="kernel_evals", trial_evaluations=8000.0)
    assert counted.rounds(70, 2) == [
        Round(8, 70, 1000.0), Round(4, 70, 2000.0), Round(2, 70, 4000.0), Round(1, 70, 8000.0)
    ]  # fmt: skip
    odd = replace(search, configurations=search.configurations[:5])
    assert [step.keep for step in odd.rounds(800, 2)] == [5, 3, 2]
    # What all trials may take bounds the tuning from outside.
    search = Search(GRID, trial_seconds=10.0)
    for options, seconds in (
        ({}, 40.0), ({"folds": 3}, 120.0), ({"method": "halving"}, 70.0), ({"seconds": 25.0}, 25.0),
        ({"trial_seconds": math.inf}, math.inf),
    ):  # fmt: skip
        assert replace(search, **options).solving_s == seconds


def test_each_configuration_is_fitted_to_one_part_and_scored_on_the_rest(data):
    build = Build()
    found = tuned(data, build)
    used = places_of(data, build.fitted[0][1])
    for trial, (estimator, X, y), (wrong, rest) in zip(
        found.trials, build.fitted, build.mistakes(data), strict=True
    ):
        assert places_of(data, X) == used
        assert (len(set(used)), len(rest)) == (150, 50)
        # Compiled code would be compiled again for arrays of another kind.
        assert not any(array.flags.writeable for array in (X, y))
        assert {name: getattr(estimator, name) for name in trial.params} == trial.params
        assert trial.error == wrong / 50
        assert trial.kernel_evals == estimator.counters_.kernel_evals
        assert (trial.points, trial.round, trial.ended) == (150, 0, "completed")
        assert 0 < trial.wall_s < 60
    # The classes are in proportion.
    assert abs((data.y_train[rest] > 0).mean() - (data.y_train > 0).mean()) < 0.02
    errors = each("error", found)
    assert found.choice == int(np.argmin(errors))
    assert min(errors) < max(errors)
    columns = found.columns()
    assert columns["tuning_evals"] == sum(each("kernel_evals", found))
    assert json.loads(columns["tuning"])[0]["params"] == GRID[0]
    # All solvers have the same split, and another seed has another.
    pegasos, other = Build(Pegasos), Build()
    tuned(data, pegasos)
    tuned(data, other, seed=(0, 1))
    assert places_of(data, pegasos.fitted[0][1]) == used
    assert set(places_of(data, other.fitted[0][1])) != set(used)
    # Test data are not looked at, and sparse data are no others.
    poisoned = {"X_test": np.full_like(data.X_test, np.nan), "y_test": -data.y_test}
    for other in (poisoned, {"X_train": sparse.csr_matrix(data.X_train)}):
        assert each("error", tuned(replace(data, **other))) == errors


def test_of_folds_each_point_is_scored_once_also_of_several_classes(data):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=80)
    X = (rng.normal(size=(80, 2)) + 4.0 * np.eye(3)[y][:, :2]).astype(np.float32)
    three = replace(data, X_train=X, y_train=y, X_test=X[:5], y_test=y[:5])
    for points in (data, three):
        build = Build()
        found = tuned(points, build, folds=4, configurations=GRID[-1:])
        wrong, rests = zip(*build.mistakes(points), strict=True)
        assert Counter(np.concatenate(rests).tolist()) == Counter(range(points.n_train))
        assert each("error", found) == [sum(wrong) / points.n_train]
        costs = [estimator.counters_.kernel_evals for estimator, *_ in build.fitted]
        assert each("kernel_evals", found) == [sum(costs)]
        assert 0 < sum(wrong) < points.n_train


@pytest.mark.parametrize(("options", "fewest"), [({}, 1), ({"folds": 4}, 3)])
def test_too_few_rows_to_tune_on_are_named(data, options, fewest):
    rows = np.r_[np.flatnonzero(data.y_train > 0)[:3], np.flatnonzero(data.y_train < 0)[:fewest]]
    few = replace(data, X_train=data.X_train[rows], y_train=data.y_train[rows])
    with pytest.raises(
        ValueError, match=rf"rows to tune on \({3 + fewest}, of one class {fewest}\)"
    ):
        tuned(few, **options)


def test_errors_on_some_folds_are_not_compared_with_those_on_all(data):
    free = tuned(data, folds=4)
    first, second = each("kernel_evals", free)[:2]
    found = tuned(data, folds=4, evaluations=float(first + second // 2))
    assert each("ended", found) == ["completed", *["not tried"] * 3]
    assert each("error", found) == [free.trials[0].error, None, None, None]
    # What its folds took counts all the same.
    assert 0 < each("kernel_evals", found)[1] <= second
    assert found.choice == 0
    with pytest.raises(RuntimeError, match="the budget of tuning ended before the first was"):
        tuned(data, folds=4, evaluations=first / 2)


def test_halving_keeps_the_best_and_fits_them_to_more_points(data):
    build = Build()
    grid = configurations({"C": [0.01, 0.1, 1.0, 10.0], "gamma": [1.0, 10.0]})
    found = tuned(data, build, method="halving", configurations=grid)
    rounds = [
        {grid.index(trial.params): trial for trial in found.trials if trial.round == i}
        for i in range(3)
    ]
    sizes = [[trial.points for trial in of.values()] for of in rounds]
    assert sizes == [[37] * 8, [75] * 4, [150] * 2]
    best = [sorted(of, key=lambda place, of=of: (of[place].error, place)) for of in rounds]
    assert [list(of) for of in rounds[1:]] == [best[0][:4], best[1][:2]]
    # Each round has another winner.
    assert found.choice == best[2][0] != best[1][0] != best[0][0]
    # The points of a round are among those of the next, with the classes in proportion.
    small, large = (set(places_of(data, build.fitted[place][1])) for place in (0, 8))
    assert small < large
    rows = np.r_[np.flatnonzero(data.y_train > 0)[:20], np.flatnonzero(data.y_train < 0)[:80]]
    few = replace(data, X_train=data.X_train[rows], y_train=data.y_train[rows])
    build = Build()
    # Of folds the smallest part decides how many points there are.
    counts = [trial.points for trial in tuned(few, build, method="halving", folds=3).trials]
    assert counts == [33] * 4 + [66] * 2
    assert abs((build.fitted[0][2] > 0).mean() - 0.2) < 0.05
    # A round that is not complete decides nothing.
    limit = float(sum(each("kernel_evals", found)[:10]) + 1)
    cut = tuned(data, method="halving", configurations=grid, evaluations=limit)
    assert each("ended", cut)[8:] == ["completed"] * 2 + ["cut short", "not tried"]
    assert cut.choice == best[0][0]


def test_a_tuning_that_runs_out_scores_what_it_has(data):
    common = {"gamma": 10.0, "random_state": 0}
    grid = tuple({"max_epochs": epochs, **common} for epochs in (1, 2, 10, 20))
    free = tuned(data, Build(Pegasos), configurations=grid)
    costs = each("kernel_evals", free)
    # Enough for the first two, and a part of the third.
    limit = costs[0] + costs[1] + costs[2] // 2
    found = tuned(data, Build(Pegasos), configurations=grid, evaluations=float(limit))
    assert each("ended", found) == ["completed", "completed", "cut short", "not tried"]
    assert limit <= found.columns()["tuning_evals"] <= limit + 150
    *errors, last = each("error", found)
    assert (errors[:2], last) == (each("error", free)[:2], None)
    assert found.choice == errors.index(min(errors))
    # Where nothing is left, nothing is tried.
    exact = tuned(data, Build(Pegasos), configurations=grid, evaluations=float(costs[0] + costs[1]))
    assert each("ended", exact)[2:] == ["not tried"] * 2
    # Seconds end it as well.
    found = tuned(data, seconds=1e-9)
    assert each("ended", found) == ["cut short", *["not tried"] * 3]
    assert found.choice == 0


@pytest.mark.parametrize(
    "limits",
    [{"trial_evaluations": 5e3}, {"trial_seconds": 1e-9}, {"rules": StoppingRules(iterations=300)}],
)
def test_each_trial_has_the_limits_of_a_run(data, limits):
    grid = ({"max_epochs": 100, "gamma": 10.0},)
    (trial,) = tuned(data, Build(Pegasos), configurations=grid, **limits).trials
    assert trial.ended == "cut short"
    if "trial_evaluations" in limits:
        assert 5000 <= trial.kernel_evals <= 5150


def test_of_equal_configurations_the_first_is_chosen_and_none_that_fails(data):
    equal = tuned(data, configurations=configurations({"cache_size": [20.0, 10.0]}))
    assert (equal.trials[0].error, equal.choice) == (equal.trials[1].error, 0)
    found = tuned(data, configurations=({"C": -1.0}, {"C": 1.0, "gamma": 10.0}))
    assert found.trials[0].ended.startswith("failed: ValueError: C must be")
    assert (found.trials[0].error, found.choice) == (None, 1)
    with pytest.raises(RuntimeError, match="no configuration could be scored: failed: ValueError"):
        tuned(data, configurations=({"C": -1.0}, {"C": -2.0}))


def test_a_tuned_run_is_the_run_of_what_it_chose():
    given = {"kernel": "rbf", "gamma": 0.1, "C": 0.01, "random_state": 0}
    search = Search(GRID, params={**given, "gamma": None, "C": None, "tol": 1e-3})
    messages = []
    columns = FitWork(PROBLEM, "SMO", given, 1.19, search=search).run(messages.append)
    phases = [m["phase"] for m in messages if "phase" in m]
    assert phases[:4] == ["data", "compile", "tune", "solve"]
    (found,) = [m["columns"] for m in messages if "columns" in m]
    kernel = json.loads(found["kernel"])
    chosen = {"C": found["C"], "gamma": kernel["gamma"]}
    assert chosen in GRID
    assert (columns["C"], columns["kernel"]) == (found["C"], found["kernel"])
    assert json.loads(columns["params"]) == {**search.params, **chosen}
    problem = replace(PROBLEM, kernel=kernel, C=chosen["C"])
    expected = FitWork(problem, "SMO", {**given, **chosen}, 1.19).run(lambda message: None)
    # What the trials cost is not in the counts of the run.
    for name in ("status", "counters", "n_iter", "primal", "dual", "test_error", "n_support"):
        assert columns[name] == expected[name], name
    assert columns["tuning_evals"] > 0


def test_what_a_solver_does_not_take_stays_unknown():
    """A task's C and gamma, of a classifier that is not given them."""
    search = Search(GRID, params={"kernel": "rbf"})
    every = FitWork(PROBLEM, "SMO", {}, 1.19, search=search)
    assert every.columns_of({"C": 2.0}) == {"C": 2.0, "params": '{"C":2.0,"kernel":"rbf"}'}
    assert "kernel" in every.columns_of({"gamma": 1.0})
    own = replace(every, decided=()).columns_of({"C": 2.0, "output": "last"})
    assert own == {"params": '{"C":2.0,"kernel":"rbf","output":"last"}'}


def test_a_row_of_a_class_that_was_not_fitted_is_a_mistake():
    scores, y = np.array([1.0, -1.0, 1.0, np.nan, 0.0]), np.array([1, 0, 2, 0, 0])
    assert mistaken(scores, y, np.array([0, 1])).tolist() == [False, False, True, True, False]
    # Of several classes the largest score counts, and none beside a NaN.
    several = np.array([[0.0, np.nan, 0.0], [0.0, 0.5, 0.2]])
    assert mistaken(several, np.array([1, 1]), np.arange(3)).tolist() == [True, False]
