"""The search along the line to each iterate, and the products with all points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import BundleClassifier, Counters
from marginbench.solvers.bundle import (
    F1,
    Hinge,
    Logistic,
    minimize_risk,
)
from marginbench.solvers.bundle.products import (
    _add_rows,
    check_norms,
    combination_of,
    scores_of,
)
from marginbench.solvers.bundle.risk import Risk


@pytest.mark.parametrize("inner", ["qp", "line_search"])
@pytest.mark.parametrize("offset", [None, "eliminated", "feature"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "f1"])
def test_the_primal_search_finds_the_same_optimum(linear_task, loss, offset, inner):
    if loss == "f1" and offset == "eliminated":
        pytest.skip("the offset of this loss cannot be eliminated")
    X, y = linear_task.X[:100], linear_task.y[:100]
    options = {"lam": 0.01, "offset": offset}
    plain = minimize_risk(X, y, loss, tol=1e-7, max_iter=2000, primal_search=False, **options)
    tol = 1e-7 if inner == "qp" else 1e-3
    found = minimize_risk(
        X, y, loss, inner=inner, tol=tol, max_iter=3000, primal_search=True, **options
    )
    assert found.status == "converged"
    assert plain.lower_bound * (1 - 1e-12) <= found.objective
    assert found.lower_bound <= plain.objective * (1 + 1e-12)
    assert (np.diff(found.trace.objective) <= 0).all()
    risk = Risk(X, y, {"hinge": Hinge(), "logistic": Logistic(), "f1": F1()}[loss],
                np.ones(100), None, Counters())  # fmt: skip
    by_hand = risk.at(X @ found.weights + found.intercept) + 0.005 * (
        found.weights @ found.weights + (found.intercept**2 if offset == "feature" else 0.0)
    )
    assert found.objective == pytest.approx(by_hand, rel=1e-10)


def test_the_primal_search_saves_iterations():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((500, 40))
    y = np.where(X @ rng.standard_normal(40) + rng.standard_normal(500) > 0, 1.0, -1.0)
    plain, searched = (
        minimize_risk(X, y, lam=1e-3, tol=1e-3, primal_search=search) for search in (False, True)
    )
    assert plain.status == searched.status == "converged"
    assert 2 * searched.n_iter < plain.n_iter
    with pytest.raises(ValueError, match="primal_search=True takes the L2 regulariser alone"):
        minimize_risk(X, y, lam=1e-3, regularizer="l1", primal_search=True)


@pytest.mark.parametrize(
    ("options", "searched"),
    [
        ({}, True),
        ({"loss": "logistic", "offset": "eliminated", "inner": "qp"}, True),
        ({"inner": "line_search"}, False),
        ({"loss": "roc_area"}, False),
        ({"regularizer": "l1"}, False),
    ],
    ids=str,
)
def test_the_default_searches_where_that_is_faster(linear_task, options, searched):
    X, y = linear_task.X[:60], linear_task.y[:60]
    options = {"lam": 0.05, "tol": 1e-2, "max_iter": 200, **options}
    found = minimize_risk(X, y, **options)
    expected = minimize_risk(X, y, primal_search=searched, **options)
    assert found.n_iter == expected.n_iter
    np.testing.assert_array_equal(found.weights, expected.weights)
    if searched:
        other = minimize_risk(X, y, primal_search=False, **options)
        assert not np.array_equal(found.weights, other.weights)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_slope_that_is_all_rounding_ends_the_search(loss):
    # Constant features change nothing but the rounding of the scores.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(2, 30), rng.integers(1, 3)
        X = np.repeat(rng.normal(size=(1, d)) * 10.0 ** rng.integers(-2, 3), n, axis=0)
        y = np.where(np.arange(n) == 0, 1, np.where(np.arange(n) == 1, -1, rng.choice([-1, 1], n)))
        solver = BundleClassifier(loss=loss, fit_intercept=True, C=10.0 ** rng.uniform(-2, 3))
        assert solver.fit(X, y).status_ == "converged"
        np.testing.assert_allclose(solver.coef_, 0.0, atol=1e-2)


def test_the_products_of_several_threads_are_the_same():
    X = sparse.random(1000, 50, density=0.2, format="csr", random_state=7, dtype=np.float32)
    g = np.random.default_rng(7).standard_normal(1000)
    g[::3] = 0.0
    sums = np.zeros((3, 50))
    for part in range(3):
        _add_rows(X.data, X.indices, X.indptr, g, sums, part, part + 1)
    expected = X.toarray().astype(np.float64).T @ g
    np.testing.assert_allclose(sums.sum(axis=0), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(combination_of(X, g), expected, rtol=0, atol=1e-12)
    w = np.random.default_rng(8).standard_normal(50)
    np.testing.assert_allclose(scores_of(X, w), X.toarray().astype(float) @ w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_squared_norms_that_overflow_are_refused(storage):
    for large in (1e153, -1e153):
        check_norms(storage(np.array([[large, large], [0.0, 1.0]])))
    for row in ([2e154, 0.0], [-2e154, 0.0], [1e154, 1e154]):
        with pytest.raises(ValueError, match="squared norms of these points overflow float64"):
            check_norms(storage(np.array([row, [0.0, 1.0]])))
    # A large number alone asks for a closer look, not for an error.
    check_norms(storage(np.array([[1.2e154, 0.0], [0.0, 1.0]])))
