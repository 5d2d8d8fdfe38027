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
from marginbench.harness.evaluation.svm import (
    FitWork,
    Problem,
    Round,
    Search,
    StoppingRules,
    configurations,
)
from marginbench.harness.evaluation.tuning import tune
from marginbench.harness.jobs import ColumnsMessage, PhaseMessage

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
        self.cls = cls
        self.fitted = []

    def __call__(self, params):
        outer, cls = self, self.cls

        class Kept(cls):
            def fit(self, X, y, **options):
                outer.fitted.append((self, X, y))
                return super().fit(X, y, **options)

        return Kept(**params)


def tuned(data, build=None, rules=None, **search):
    work = FitWork(
        PROBLEM,
        "SMO",
        {},
        1.19,
        rules=rules or StoppingRules(),
        search=Search(**{"configurations": GRID, **search}),
    )
    return tune(work, data, partial(try_part, build or Build()))


def places_of(data, X):
    """The places of points in the training part; no two points of it are the same."""
    rows = {row.tobytes(): place for place, row in enumerate(data.X_train)}
    return [rows[row.tobytes()] for row in X]


def test_halving_halves_the_configurations_and_doubles_the_resource():
    search = Search(tuple({"C": c} for c in range(1, 9)), method="halving")
    assert search.rounds(800, 2) == [Round(8, 100), Round(4, 200), Round(2, 400), Round(1, 800)]
    # Ten points of each class at least: there is room for two rounds.
    assert search.rounds(70, 2) == [Round(8, 35), Round(4, 70)]
    assert search.rounds(30, 2) == [Round(8, 30)]
    counted = replace(search, resource="kernel_evals", trial_evaluations=8000.0)
    assert counted.rounds(70, 2) == [
        Round(8, 70, 1000.0), Round(4, 70, 2000.0), Round(2, 70, 4000.0), Round(1, 70, 8000.0)
    ]  # fmt: skip
    odd = Search(tuple({"C": c} for c in range(1, 6)), method="halving")
    assert [each.keep for each in odd.rounds(800, 2)] == [5, 3, 2]
    assert Search(({"C": 1.0},), method="halving").rounds(800, 2) == [Round(1, 800)]


def test_each_configuration_is_fitted_to_one_part_and_scored_on_the_rest(data):
    build = Build()
    found = tuned(data, build)
    used = places_of(data, build.fitted[0][1])
    rest = np.setdiff1d(np.arange(200), used)
    assert (len(set(used)), len(rest)) == (150, 50)
    share = (data.y_train[rest] > 0).mean()
    assert abs(share - (data.y_train > 0).mean()) < 0.02
    for trial, (estimator, X, y) in zip(found.trials, build.fitted, strict=True):
        assert places_of(data, X) == used
        # Compiled code would be compiled again for arrays of another kind.
        assert not X.flags.writeable
        assert not y.flags.writeable
        assert {name: getattr(estimator, name) for name in trial.params} == trial.params
        wrong = estimator.predict(data.X_train[rest]) != data.y_train[rest]
        assert trial.error == wrong.mean()
        assert trial.kernel_evals == estimator.counters_.kernel_evals
        assert (trial.points, trial.round, trial.ended) == (150, 0, "completed")
        assert 0 < trial.wall_s < 60
    errors = [trial.error for trial in found.trials]
    assert found.choice == int(np.argmin(errors))
    assert min(errors) < max(errors)
    columns = found.columns()
    assert columns["tuning_evals"] == sum(e.counters_.kernel_evals for e, _, _ in build.fitted)
    assert json.loads(columns["tuning"])[0]["params"] == GRID[0]


def test_test_data_are_never_touched_and_sparse_data_are_no_others(data):
    errors = [trial.error for trial in tuned(data).trials]
    poisoned = {"X_test": np.full_like(data.X_test, np.nan), "y_test": -data.y_test}
    stored = {"X_train": sparse.csr_matrix(data.X_train)}
    for other in (poisoned, stored):
        assert [trial.error for trial in tuned(replace(data, **other)).trials] == errors


def test_all_solvers_have_the_same_split_and_another_seed_has_another(data):
    smo, pegasos, other = Build(), Build(Pegasos), Build()
    tuned(data, smo)
    tuned(data, pegasos)
    tuned(data, other, seed=(0, 1))
    np.testing.assert_array_equal(smo.fitted[0][1], pegasos.fitted[0][1])
    assert set(places_of(data, smo.fitted[0][1])) != set(places_of(data, other.fitted[0][1]))


def test_of_folds_each_point_is_scored_once(data):
    build = Build()
    found = tuned(data, build, folds=4, configurations=GRID[-1:])
    scored = Counter()
    wrong = 0
    for estimator, X, _ in build.fitted:
        rest = np.setdiff1d(np.arange(200), places_of(data, X))
        scored.update(rest.tolist())
        wrong += int(np.sum(estimator.predict(data.X_train[rest]) != data.y_train[rest]))
    assert scored == Counter(range(200))
    assert found.trials[0].error == wrong / 200


def test_errors_on_some_folds_are_not_compared_with_those_on_all(data):
    free = tuned(data, folds=4)
    first, second = (trial.kernel_evals or 0 for trial in free.trials[:2])
    found = tuned(data, folds=4, evaluations=float(first + second // 2))
    assert [trial.ended for trial in found.trials] == ["completed", *["not tried"] * 3]
    assert found.trials[0].error == free.trials[0].error
    assert found.trials[1].error is None
    # What its folds took counts all the same.
    assert 0 < (found.trials[1].kernel_evals or 0) <= second
    assert found.choice == 0
    with pytest.raises(RuntimeError, match="the budget of tuning ended before the first was"):
        tuned(data, folds=4, evaluations=first / 2)


def test_halving_keeps_the_best_and_fits_them_to_more_points(data):
    build = Build()
    found = tuned(data, build, method="halving")
    sizes = [[trial.points for trial in found.trials if trial.round == i] for i in range(3)]
    assert sizes == [[37] * 4, [75] * 2, [150]]
    first = {GRID.index(trial.params): trial.error for trial in found.trials[:4]}
    best = sorted(first, key=lambda place: (first[place], place))[:2]
    assert [GRID.index(trial.params) for trial in found.trials[4:6]] == best
    assert found.trials[6].params == GRID[found.choice]
    # The points of a round are among those of the next, with the classes in proportion.
    small, large = (set(places_of(data, build.fitted[place][1])) for place in (0, 4))
    assert small < large
    assert abs((build.fitted[0][2] > 0).mean() - (data.y_train > 0).mean()) < 0.05


def test_a_tuning_that_runs_out_scores_what_it_has(data):
    common = {"gamma": 10.0, "random_state": 0}
    grid = tuple({"max_epochs": epochs, **common} for epochs in (1, 2, 10, 20))
    free = tuned(data, Build(Pegasos), configurations=grid)
    costs = [trial.kernel_evals or 0 for trial in free.trials]
    # Enough for the first two, and a part of the third.
    limit = costs[0] + costs[1] + costs[2] // 2
    found = tuned(data, Build(Pegasos), configurations=grid, evaluations=float(limit))
    assert [trial.ended for trial in found.trials] == [
        "completed", "completed", "cut short", "not tried"
    ]  # fmt: skip
    assert limit <= sum(trial.kernel_evals or 0 for trial in found.trials) <= limit + 150
    assert [trial.error for trial in found.trials[:2]] == [t.error for t in free.trials[:2]]
    assert found.trials[2].error is not None
    assert found.trials[3].error is None
    errors = [trial.error for trial in found.trials[:3]]
    assert found.choice == errors.index(min(errors))


def test_a_round_that_is_not_complete_decides_nothing(data):
    free = tuned(data, method="halving")
    first = sum(trial.kernel_evals or 0 for trial in free.trials[:4])
    found = tuned(data, method="halving", evaluations=float(first + 1))
    assert [trial.ended for trial in found.trials[4:]] == ["cut short", "not tried"]
    errors = [trial.error for trial in found.trials[:4]]
    assert found.choice == errors.index(min(errors))


def test_seconds_end_a_tuning_and_each_trial_has_the_limits_of_a_run(data):
    found = tuned(data, seconds=1e-9)
    assert [trial.ended for trial in found.trials] == ["cut short", *["not tried"] * 3]
    assert found.choice == 0
    # Of equal ones the first is chosen.
    equal = tuned(data, configurations=configurations({"cache_size": [20.0, 10.0]}))
    assert (equal.trials[0].error, equal.choice) == (equal.trials[1].error, 0)
    grid = ({"max_epochs": 100, "gamma": 10.0},)
    (trial,) = tuned(data, Build(Pegasos), configurations=grid, trial_evaluations=5000.0).trials
    assert trial.ended == "cut short"
    assert 5000 <= (trial.kernel_evals or 0) <= 5150
    (trial,) = tuned(
        data, Build(Pegasos), configurations=grid, rules=StoppingRules(iterations=300)
    ).trials
    assert trial.ended == "cut short"
    (trial,) = tuned(data, Build(Pegasos), configurations=grid, trial_seconds=1e-9).trials
    assert trial.ended == "cut short"


def test_a_configuration_that_fails_is_recorded_and_not_chosen(data):
    found = tuned(data, configurations=({"C": -1.0}, {"C": 1.0, "gamma": 10.0}))
    assert found.trials[0].ended.startswith("failed: ValueError: C must be")
    assert (found.trials[0].error, found.choice) == (None, 1)
    with pytest.raises(RuntimeError, match="no configuration could be scored: failed: ValueError"):
        tuned(data, configurations=({"C": -1.0}, {"C": -2.0}))


def test_a_tuned_run_is_the_run_of_what_it_chose():
    given = {"kernel": "rbf", "gamma": 0.1, "C": 0.01, "random_state": 0}
    search = Search(GRID, params={**given, "gamma": None, "C": None, "tol": 1e-3})
    work = FitWork(PROBLEM, "SMO", given, 1.19, search=search)
    messages = []
    columns = work.run(messages.append)
    phases = [m.phase for m in messages if isinstance(m, PhaseMessage)]
    assert phases[:4] == ["data", "compile", "tune", "solve"]
    (found,) = [m for m in messages if isinstance(m, ColumnsMessage)]
    chosen = {"C": found.columns["C"], "gamma": json.loads(found.columns["kernel"])["gamma"]}
    assert chosen in GRID
    assert (columns["C"], json.loads(columns["kernel"])["gamma"]) == (chosen["C"], chosen["gamma"])
    assert json.loads(columns["params"]) == {**search.params, **chosen}
    kernel = {"name": "rbf", "gamma": chosen["gamma"]}
    problem = replace(PROBLEM, kernel=kernel, C=chosen["C"])
    alone = FitWork(problem, "SMO", {**given, **chosen}, 1.19)
    expected = alone.run(lambda message: None)
    for name in ("status", "counters", "n_iter", "primal", "dual", "test_error", "n_support"):
        assert columns[name] == expected[name], name
    # What the trials cost is not in the counts of the run.
    assert columns["tuning_evals"] > 0


def test_what_a_solver_does_not_take_stays_unknown():
    """A task's C and gamma, of a classifier that is not given them."""
    search = Search(GRID, params={"kernel": "rbf"})
    every = FitWork(PROBLEM, "SMO", {}, 1.19, search=search)
    assert every.columns_of({"C": 2.0}) == {"C": 2.0, "params": '{"C":2.0,"kernel":"rbf"}'}
    none = replace(every, decided=())
    own = {"C": 2.0, "output": "last"}
    assert none.columns_of(own) == {"params": '{"C":2.0,"kernel":"rbf","output":"last"}'}
    assert "kernel" in every.columns_of({"gamma": 1.0})


def test_several_classes_are_tuned():
    problem = Problem("digits", {}, {"name": "rbf", "gamma": 0.1}, 1.0, False)
    problem = replace(problem, dataset="digits")
    dataset = load_task_data(problem)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = (rng.normal(size=(90, 2)) + 4.0 * np.eye(3)[y][:, :2]).astype(np.float32)
    classes = replace(dataset, X_train=X, y_train=y, X_test=X[:5], y_test=y[:5])
    work = FitWork(problem, "SMO", {}, 1.19, search=Search(GRID, folds=3))
    build = Build()
    found = tune(work, classes, partial(try_part, build))
    rows = {row.tobytes(): place for place, row in enumerate(X)}
    wrong = 0
    for estimator, part, _ in build.fitted[:3]:
        rest = np.setdiff1d(np.arange(90), [rows[row.tobytes()] for row in part])
        wrong += int(np.sum(estimator.predict(X[rest]) != y[rest]))
    assert found.trials[0].error == wrong / 90
    assert 0 < wrong < 90


def test_what_all_trials_may_take_bounds_the_tuning_from_outside():
    search = Search(GRID, trial_seconds=10.0)
    assert search.solving_s == 40.0
    assert replace(search, folds=3).solving_s == 120.0
    assert replace(search, method="halving").solving_s == 70.0
    assert replace(search, seconds=25.0).solving_s == 25.0
    assert math.isinf(Search(GRID).solving_s)
