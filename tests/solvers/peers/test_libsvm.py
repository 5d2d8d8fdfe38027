"""LIBSVM through this interface is scikit-learn's SVC, no more and no less."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginbench.solvers import LIBSVM, SMO


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf", "gamma": "scale"},
        {"kernel": "rbf", "gamma": 0.3},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
    ],
    ids=lambda params: "-".join(map(str, params.values())),
)
def test_model_is_svcs(rbf_task, params, C):
    X, y = rbf_task.X, rbf_task.y
    ours, theirs = LIBSVM(**params, C=C).fit(X, y), SVC(**params, C=C, cache_size=200).fit(X, y)
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
    order = np.argsort(theirs.support_)
    np.testing.assert_array_equal(ours.dual_coef_[0], theirs.dual_coef_[0][order])
    assert ours.intercept_[0] == theirs.intercept_[0]
    assert ours.n_iter_ == theirs.n_iter_[0]
    scale = np.abs(ours.dual_coef_).sum()
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=0, atol=1e-6 * scale
    )


def test_objective_is_smos(task, alpha_of):
    values = []
    for solver in (
        LIBSVM(**task.params, tol=1e-6),
        SMO(**task.params, fit_intercept=True, tol=1e-6),
    ):
        alpha = alpha_of(solver.fit(task.X, task.y).model_, task.y)
        values.append(alpha.sum() - 0.5 * alpha @ task.Q @ alpha)
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_it_counts_nothing(rbf_task, recording_monitor):
    monitor = recording_monitor()
    solver = LIBSVM().fit(rbf_task.X, rbf_task.y, monitor=monitor)
    assert solver.counters_ is None
    assert monitor.counters is None
    assert monitor.calls == ["start", "finish"]
    assert monitor.final == (solver.n_iter_, solver.model_)
    assert not LIBSVM.instrumented


def test_the_budget_ends_the_run(rbf_task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver = LIBSVM(C=1e6, tol=1e-9, max_iter=70).fit(rbf_task.X, rbf_task.y)
    assert solver.status_ == "budget"
    assert solver.n_iter_ == 70


def test_ways_to_give_the_kernel_agree(linear_task):
    X, y, K = linear_task.X, linear_task.y, linear_task.K
    expected = LIBSVM("linear").fit(X, y).decision_function(X)
    close = {"rtol": 0, "atol": 2e-3}
    called = LIBSVM(lambda A, B: A @ B.T).fit(X, y)
    np.testing.assert_allclose(called.decision_function(X), expected, **close)
    given = LIBSVM("precomputed").fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), expected, **close)
    stored = LIBSVM("linear").fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(stored.decision_function(X), expected, **close)


def test_without_bias_it_is_refused(rbf_task):
    with pytest.raises(ValueError, match="LIBSVM always fits a bias: set fit_intercept=True"):
        LIBSVM(fit_intercept=False).fit(rbf_task.X, rbf_task.y)


def test_a_fit_leaves_the_global_random_state_alone(rbf_task):
    before = np.random.get_state()  # noqa: NPY002
    LIBSVM().fit(rbf_task.X, rbf_task.y)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2] == after[2]
    np.testing.assert_array_equal(before[1], after[1])
