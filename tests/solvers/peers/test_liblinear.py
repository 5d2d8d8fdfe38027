"""LIBLINEAR through this interface is scikit-learn's LinearSVC, no more and no less."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from marginbench.solvers import LIBLINEAR, LinearSDCA


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_model_is_linear_svcs(linear_task, storage, C):
    X, y = storage(linear_task.X), linear_task.y
    ours = LIBLINEAR(C=C, tol=1e-2, max_epochs=5000, random_state=3).fit(X, y)
    seed = int(np.random.default_rng(3).integers(2**31))
    theirs = LinearSVC(
        C=C, loss="hinge", fit_intercept=False, tol=1e-2, max_iter=5000, random_state=seed
    ).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert 0 < ours.n_iter_ == theirs.n_iter_ < 5000
    assert ours.status_ == "converged"


@pytest.mark.parametrize("class_weight", [None, {-1: 0.3, 1: 2.0}])
def test_objective_is_that_of_linear_sdca(linear_task, class_weight):
    X, y = linear_task.X, linear_task.y
    params = {"C": 0.5, "class_weight": class_weight, "max_epochs": 10_000, "random_state": 0}
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    factors = weights * (1.0 if class_weight is None else np.where(y > 0, 2.0, 0.3))
    objectives = []
    for solver in (LIBLINEAR(tol=1e-8, **params), LinearSDCA(tol=1e-8, **params)):
        w = solver.fit(X, y, sample_weight=weights).coef_[0]
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        objectives.append(0.5 * w @ w + 0.5 * factors @ slack)
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-7)


def test_it_counts_nothing(linear_task, recording_monitor):
    monitor = recording_monitor()
    solver = LIBLINEAR().fit(linear_task.X, linear_task.y, monitor=monitor)
    assert solver.counters_ is None
    assert monitor.counters is None
    assert monitor.calls == ["start", "finish"]
    assert monitor.final == (solver.n_iter_, solver.model_)
    assert not LIBLINEAR.instrumented


def test_the_budget_ends_the_run(linear_task):
    solver = LIBLINEAR(C=1e4, tol=1e-12, max_epochs=3).fit(linear_task.X, linear_task.y)
    assert solver.status_ == "budget"
    assert solver.n_iter_ == 3
