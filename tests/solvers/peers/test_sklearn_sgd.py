"""SklearnSGD through this interface is scikit-learn's SGDClassifier, no more and no less."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from marginbench.solvers import SklearnSGD


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_model_is_sgd_classifiers(linear_task, storage, average, bias):
    X, y = storage(linear_task.X), linear_task.y
    ours = SklearnSGD(
        C=0.1,
        average=average,
        fit_intercept=bias,
        min_improvement=1e-3,
        max_epochs=1000,
        random_state=3,
    ).fit(X, y)
    theirs = SGDClassifier(
        alpha=1 / (len(y) * 0.1),
        average=average,
        fit_intercept=bias,
        random_state=int(np.random.default_rng(3).integers(2**31)),
    ).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.intercept_, theirs.intercept_)
    assert (ours.intercept_[0] != 0) == bias
    assert ours.n_iter_ == theirs.n_iter_ * len(y)
    assert ours.status_ == "converged"


@pytest.mark.parametrize("class_weight", [None, {-1: 0.3, 1: 2.0}])
def test_it_approaches_the_optimum_of_c_and_the_weights(linear_task, solve_dual, class_weight):
    task, C = linear_task, 0.02
    weights = np.random.default_rng(0).integers(1, 4, task.n).astype(float)
    solver = SklearnSGD(
        C=C,
        class_weight=class_weight,
        average=True,
        min_improvement=0.0,
        max_epochs=200,
        random_state=0,
    ).fit(task.X, task.y, sample_weight=weights)
    factors = weights * (1.0 if class_weight is None else np.where(task.y > 0, 2.0, 0.3))
    best = solve_dual(task.Q, task.y, C * factors).value
    w = solver.coef_[0]
    value = 0.5 * w @ w + C * factors @ np.maximum(0, 1 - task.y * (task.X @ w))
    assert best * (1 - 1e-9) <= value <= best * 1.02


def test_it_counts_nothing(linear_task, recording_monitor):
    monitor = recording_monitor()
    solver = SklearnSGD().fit(linear_task.X, linear_task.y, monitor=monitor)
    assert solver.counters_ is None
    assert monitor.calls == ["start", "finish"]
    assert not SklearnSGD.instrumented


def test_without_a_tolerance_it_makes_all_its_passes(linear_task):
    solver = SklearnSGD(min_improvement=0.0, max_epochs=30).fit(linear_task.X, linear_task.y)
    assert solver.status_ == "budget"
    assert solver.n_iter_ == 30 * linear_task.n
