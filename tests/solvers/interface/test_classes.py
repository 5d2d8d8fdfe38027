"""Several classes: each against the rest, with one oracle, one monitor and one model."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from marginbench.solvers import (
    SMO,
    KernelExpansion,
    OneVsRest,
    OneVsRestModel,
    Pegasos,
    registry,
)

#: Solvers that ask the oracle for rows or blocks, so that classes have entries in common.
SHARING = [
    *("SMO", "SBP", "BatchPerceptron", "Pegasos", "Perceptron", "SDCA", "SGD"),
    *("Falkon", "EigenPro", "CuttingPlane"),
    *("MPKFP", "KPCT", "KVN", "SNKP", "ISNKPVN"),
]


def make(name, **params):
    known = registry()[name]().get_params()
    params = {"dtype": "float64", "random_state": 0, **params}
    return registry()[name](**{key: value for key, value in params.items() if key in known})


@pytest.mark.parametrize("name", sorted(registry()))
def test_every_class_is_trained_against_the_rest(iris, name):
    X, y = iris
    solver = make(name, gamma=0.5, C=2.0, max_epochs=3, max_iter=30).fit(X, y)
    scores = solver.decision_function(X)
    assert scores.shape == (150, 3)
    assert list(solver.classes_) == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(solver.predict(X), solver.classes_[scores.argmax(axis=1)])
    assert solver.score(X, y) > 0.6
    alone = []
    for column, label in enumerate(solver.classes_):
        part = solver.estimators_[column]
        atol = 1e-7 * np.abs(scores[:, column]).max()
        np.testing.assert_allclose(scores[:, column], part.decision_function(X), rtol=0, atol=atol)
        # Features are drawn by the first class alone: later ones draw other coordinates.
        if name not in ("LowRankSVM", "Nystrom", "RandomFourierFeatures"):
            one = clone(solver).fit(X, y == label)
            alone.append(one)
            expected = one.decision_function(X)
            np.testing.assert_allclose(scores[:, column], expected, rtol=0, atol=atol)
            assert part.n_iter_ == one.n_iter_
    assert solver.n_iter_ == sum(one.n_iter_ for one in solver.estimators_)
    if not solver.instrumented:
        return
    parts = [one.counters_ for one in solver.estimators_]
    for count in ("kernel_evals", "kernel_evals_computed", "matvec_entries", "inner_products"):
        assert getattr(solver.counters_, count) == sum(getattr(part, count) for part in parts)
    if name in SHARING:
        computed = sum(one.counters_.kernel_evals_computed for one in alone)
        assert 0 < solver.counters_.kernel_evals_computed < 0.9 * computed


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_attributes_have_a_row_for_each_class(iris, storage):
    X, y = storage(iris[0]), iris[1]
    solver = SMO(gamma=0.5, C=2.0, fit_intercept=True, dtype="float64").fit(X, y)
    n_support = len(solver.support_)
    assert solver.model_.n_support == n_support
    assert solver.dual_coef_.shape == (3, n_support)
    assert solver.support_vectors_.shape == (n_support, 4)
    assert abs(solver.support_vectors_ - X[solver.support_]).max() == 0
    assert solver.intercept_.shape == (3,)
    rows = zip(solver.dual_coef_, solver.intercept_, solver.estimators_, strict=True)
    for row, bias, one in rows:
        np.testing.assert_array_equal(row[row != 0], one.dual_coef_[0])
        np.testing.assert_array_equal(solver.support_[row != 0], one.support_)
        assert bias == one.intercept_[0]
        assert one.alpha_.shape == (150,)
        assert set(one.predict(X)) == {0, 1}
    linear = make("LinearSDCA").fit(X, y)
    assert linear.coef_.shape == (3, 4)
    scores = np.asarray(X @ linear.coef_.T) + linear.intercept_
    np.testing.assert_allclose(linear.decision_function(X), scores, rtol=1e-12)


def test_a_monitor_sees_one_run_and_a_run_that_it_stops_has_the_classes_so_far(
    iris, recording_monitor
):
    X, y = iris
    plain = Pegasos(gamma=0.5, random_state=0, max_epochs=2).fit(X, y)
    monitor = recording_monitor()
    watched = clone(plain).fit(X, y, monitor=monitor)
    np.testing.assert_array_equal(watched.dual_coef_, plain.dual_coef_)
    assert monitor.calls == ["start", *["record"] * len(monitor.iterations), "finish"]
    assert monitor.final == (3 * 300, watched.model_)
    assert monitor.iterations == sorted(monitor.iterations)
    assert monitor.counters == watched.counters_
    assert all(isinstance(model, OneVsRestModel) for model in monitor.snapshots)
    early = monitor.snapshots[10]
    assert isinstance(early.parts[0], KernelExpansion)
    assert early.parts[1:] == (None, None)
    assert (early.decision_function(X)[:, 1:] == 0).all()

    second = sum(n_iter < 400 for n_iter in monitor.iterations) + 1
    stopped = clone(plain).fit(X, y, monitor=recording_monitor(stop_after=second))
    assert stopped.status_ == "stopped"
    assert len(stopped.estimators_) == 2
    assert stopped.n_iter_ == monitor.iterations[second - 1]
    assert stopped.dual_coef_.shape[0] == 3
    assert not stopped.dual_coef_[2].any()


def test_weights_are_those_of_the_points_in_every_problem(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    sample_weight = rng.integers(0, 3, 150).astype(float)
    class_weight = {"setosa": 2.0, "versicolor": 1.0, "virginica": 0.5}
    solver = SMO(gamma=0.5, class_weight=class_weight, dtype="float64", tol=1e-6)
    solver.fit(X, y, sample_weight=sample_weight)
    total = sample_weight * [class_weight[label] for label in y]
    for column, label in enumerate(solver.classes_):
        one = SMO(gamma=0.5, dtype="float64", tol=1e-6)
        one.fit(X, y == label, sample_weight=total)
        found = solver.decision_function(X)[:, column]
        np.testing.assert_allclose(found, one.decision_function(X), atol=1e-5)
    balanced = SMO(gamma=0.5, class_weight="balanced").fit(X[:120], y[:120])
    factors = 120 / (3 * np.array([50, 50, 20]))
    bounds = np.array([one.alpha_ for one in balanced.estimators_]).max(axis=0)
    for label, factor in zip(balanced.classes_, factors, strict=True):
        assert bounds[y[:120] == label].max() <= factor


def test_one_vs_rest_passes_the_checks_of_scikit_learn():
    solver = SMO(dtype="float64")
    check_estimator(OneVsRest(solver, stages=(2,)), on_skip=None, on_fail="raise")


def test_one_vs_rest_takes_solvers_only(iris):
    with pytest.raises(TypeError, match=r"estimator must be a marginbench\.Solver, got 'SMO'"):
        OneVsRest("SMO").fit(*iris)


def test_dense_predictors_of_all_classes_and_stages_have_one_copy_of_the_points(iris):
    X, y = np.array(iris[0]), iris[1]
    solver = registry()["MPKFP"](gamma=0.5, max_iter=20, tol=0.0, stop="gap")
    staged = OneVsRest(solver, stages=(5, 10)).fit(X, y)
    parts = [part for model in staged.staged_models_.values() for part in model.parts]
    assert len({id(part.points) for part in parts}) == 1
    before = staged.decision_function(X)
    Z = X.copy()
    X *= 2.0
    np.testing.assert_array_equal(staged.decision_function(Z), before)
