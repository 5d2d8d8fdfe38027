"""Searches along the line to each iterate, OCAS, and the products with all points."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from marginbench.solvers import (
    F1,
    BundleClassifier,
    Counters,
    EpsilonInsensitive,
    Hinge,
    Logistic,
    minimize_risk,
)
from marginbench.solvers.bundle.risk import Risk, _add_rows, check_norms, combination_of
from marginbench.solvers.bundle.search import ExactSearch
from marginbench.solvers.kernels.scoring import linear_scores

OFFSETS = [None, "eliminated", "feature"]


@pytest.mark.parametrize("inner", ["qp", "line_search"])
@pytest.mark.parametrize(
    ("loss", "offset"),
    [(Hinge(), "eliminated"), (Hinge(), "feature"), (Logistic(), None), (F1(), "feature")],
)
def test_the_primal_search_finds_the_same_optimum(linear_task, loss, offset, inner):
    X, y = linear_task.X[:100], linear_task.y[:100]
    options = {"lam": 0.01, "offset": offset, "max_iter": 3000}
    plain = minimize_risk(X, y, loss, tol=1e-7, primal_search=False, **options)
    tol = 1e-7 if inner == "qp" else 1e-3
    found = minimize_risk(X, y, loss, inner=inner, tol=tol, primal_search=True, **options)
    assert found.status == "converged"
    assert plain.lower_bound * (1 - 1e-12) <= found.objective
    assert found.lower_bound <= plain.objective * (1 + 1e-12)
    assert (np.diff(found.trace.objective) <= 0).all()


@pytest.mark.parametrize(
    ("options", "searched"),
    [
        ({}, True),
        ({"loss": "logistic", "offset": "eliminated", "inner": "qp"}, True),
        ({"inner": "line_search"}, False),
        ({"loss": "roc_area"}, False),
    ],
    ids=str,
)
def test_the_default_searches_where_that_is_faster(linear_task, options, searched):
    X, y = linear_task.X[:60], linear_task.y[:60]
    found, *choices = (
        minimize_risk(X, y, lam=0.05, tol=1e-2, primal_search=search, **options).weights
        for search in ("auto", True, False)
    )
    assert [np.array_equal(found, weights) for weights in choices] == [searched, not searched]


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_slope_that_is_all_rounding_ends_the_search(loss):
    # Constant features change nothing but the rounding of the scores.
    for seed in range(15):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(2, 30), rng.integers(1, 3)
        X = np.repeat(rng.normal(size=(1, d)) * 10.0 ** rng.integers(-2, 3), n, axis=0)
        y = np.where(np.arange(n) == 0, 1, np.where(np.arange(n) == 1, -1, rng.choice([-1, 1], n)))
        solver = BundleClassifier(loss=loss, fit_intercept=True, C=10.0 ** rng.uniform(-2, 3))
        assert solver.fit(X, y).status_ == "converged"
        np.testing.assert_allclose(solver.coef_, 0.0, atol=1e-2)


def test_the_products_of_several_threads_are_the_same():
    X = sparse.random(1100, 50, density=0.2, format="csr", random_state=7, dtype=np.float32)
    g = np.random.default_rng(7).standard_normal(1100)
    g[::3] = 0.0
    sums = np.zeros((3, 50))
    for part in range(3):
        _add_rows((X.data, X.indices, X.indptr), g, sums, part, part + 1)
    expected = X.toarray().astype(np.float64).T @ g
    np.testing.assert_allclose(sums.sum(axis=0), expected, rtol=0, atol=1e-12)
    for storage in (X, X.toarray(), X.astype(np.float64), X.toarray().astype(np.float64)):
        for weights, sums in ((g, expected), (g[:, None], expected[:, None])):
            np.testing.assert_allclose(combination_of(storage, weights), sums, rtol=0, atol=1e-12)
    for shape in ((50,), (3, 50)):
        w = np.random.default_rng(8).standard_normal(shape)
        expected = X.toarray().astype(float) @ w.T
        for storage in (X, X.toarray(), X.tocsc()):
            np.testing.assert_allclose(linear_scores(storage, w), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_squared_norms_that_overflow_are_refused(storage):
    # A large number alone asks for a closer look, not for an error.
    for row in ([1e153, 1e153], [-1e153, -1e153], [1.2e154, 0.0]):
        check_norms(storage(np.array([row, [0.0, 1.0]])))
    for row in ([2e154, 0.0], [-2e154, 0.0], [1e154, 1e154]):
        with pytest.raises(ValueError, match="squared norms of these points overflow float64"):
            check_norms(storage(np.array([row, [0.0, 1.0]])))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3)])
def test_the_line_search_is_exact(loss, offset):
    rng = np.random.default_rng(1)
    n, d, lam = 2001, 4, 0.01
    X, y = rng.standard_normal((n, d)), np.where(rng.random(n) < 0.4, 1.0, -1.0)
    weights = rng.random(n)
    risk = Risk(X, y, loss, weights, offset, Counters())

    def value(w):
        return risk.evaluate(w) + 0.5 * lam * w @ w

    w = np.zeros(risk.dimension)
    search = ExactSearch(risk, lam, w, value(w), share=0.1)
    # The last proposal is the best point itself.
    for scale in (1.0, 0.3, 10.0, 100.0, 0.0):
        way = scale * rng.standard_normal(risk.dimension)
        before, w = search.objective, search.w
        proposal = w + way
        cut = search.step(proposal, stalled=True)
        plane, constant = risk.plane(cut)
        # The least value up to 50 times as far, by many evaluations.
        best = minimize_scalar(
            lambda t, w=w, way=way: value(w + t * way), bounds=(0, 50), method="bounded",
            options={"xatol": 1e-12, "maxiter": 500},
        ).fun  # fmt: skip
        assert search.objective <= min(before, best) * (1 + 1e-12)
        assert search.objective == pytest.approx(value(search.w), rel=1e-12)
        np.testing.assert_allclose(cut, 0.9 * search.w + 0.1 * proposal, rtol=1e-12)
        # The plane lies above J(w_b) at the proposal, so that the model's minimum must move.
        at_proposal = plane @ proposal + constant + 0.5 * lam * proposal @ proposal
        assert at_proposal >= search.objective * (1 - 1e-9)
