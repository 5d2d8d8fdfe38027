"""The kernel feasibility methods as classifiers: costs, predictors, limits, several classes."""

import numpy as np
import pytest
from sklearn.base import clone

from marginbench.solvers import (
    ISNKPVN,
    KPCT,
    KVN,
    MPKFP,
    SNKP,
    FeasibilityProblem,
    OneVsRest,
    check_certificate,
)

METHODS = [MPKFP, KPCT, KVN, SNKP, ISNKPVN]
#: Of runs that only a limit ends.
CUT_OFF = {"dtype": "float64", "tol": 0.0, "stop": "gap"}


@pytest.fixture(scope="module")
def points():
    """Overlapping clusters in the plane, n not a multiple of any block."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(203) < 0.4, 1, -1)
    return rng.standard_normal((203, 2)) + 0.8 * y[:, None], y


class CountingKernel:
    """A Gaussian kernel that counts the entries it computes."""

    def __init__(self):
        self.entries = 0

    def __call__(self, A, B):
        self.entries += len(A) * len(B)
        return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))


def signed_gram(X, y):
    return np.outer(y, y) * np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_ends_with_a_certificate(method, points):
    X, y = points
    chance = np.where(np.random.default_rng(1).random(len(y)) < 0.5, 1, -1)
    for gamma, labels, status, ended in (
        (500.0, y, "separable", "converged"),
        (0.5, chance, "margin_at_most_tol", "no_separator"),
    ):
        solver = method(gamma=gamma, dtype="float64", max_iter=100_000, tol=0.03).fit(X, labels)
        assert (solver.status_, solver.result_.status) == (ended, status)
        problem = FeasibilityProblem.gram(signed_gram(X * np.sqrt(gamma / 0.5), labels))
        assert check_certificate(problem, solver.result_).valid
        assert solver.model_.squared_norm() <= 1 + 1e-10
        # The predictor's margins are the responses of the columns.
        margins = labels * solver.decision_function(X)
        np.testing.assert_allclose(margins, problem.data @ solver.result_.y, rtol=0, atol=1e-10)
        assert (margins.min() > 0) == (status == "separable")


@pytest.mark.parametrize("method", [MPKFP, SNKP, ISNKPVN])
def test_the_gram_matrix_is_computed_once_where_it_fits_and_else_in_each_pass(method, points):
    X, y = points
    n, kernel = len(y), CountingKernel()
    stored = method(kernel, max_iter=7, **CUT_OFF).fit(X, y)
    products = stored.result_.counters.matvecs
    if method is not ISNKPVN:
        assert products == (2 * 7 if method is MPKFP else 7 + 2)
    # Blocks of 64 rows from the diagonal on; the diagonal of a function is not known to be 1.
    blocks = sum(min(64, n - lo) * (n - lo) for lo in range(0, n, 64))
    assert stored.counters_.kernel_evals == n * n + n
    assert stored.counters_.kernel_evals_computed == kernel.entries == blocks + n
    assert stored.counters_.matvec_entries == products * n * n

    small = method(kernel, max_iter=7, gram_size=0.0, **CUT_OFF).fit(X, y)
    scores = small.decision_function(X)
    np.testing.assert_allclose(scores, stored.decision_function(X), rtol=0, atol=1e-12)
    assert small.result_.counters.matvecs == products
    # Two products of mirror prox share a pass.
    passes = products // 2 if method is MPKFP else products
    assert small.counters_.kernel_evals == products * n * n + n
    assert small.counters_.kernel_evals_computed == passes * n * n + n
    assert small.counters_.matvec_entries == 0


@pytest.mark.parametrize("method", [KPCT, KVN])
def test_the_greedy_methods_ask_for_one_row_in_an_iteration(method, points):
    X, y = points
    n, kernel = len(y), CountingKernel()
    solver = method(kernel, max_iter=40, **CUT_OFF).fit(X, y)
    # The other one starts at a vertex.
    assert solver.counters_.kernel_evals == (40 if method is KPCT else 41) * n + n
    assert solver.counters_.kernel_evals_computed == kernel.entries
    assert solver.result_.counters.matvec_entries == 0
    np.testing.assert_array_equal(solver.support_, np.flatnonzero(solver.result_.x))
    assert len(solver.support_) <= 41


def test_points_of_no_length_take_no_part(points):
    X, y = points[0][:50].copy(), points[1][:50]
    kept = np.arange(50) % 7 != 3
    X[~kept] = 0
    for method in METHODS:
        expected = method("linear", max_iter=30, **CUT_OFF).fit(X[kept], y[kept])
        solver = method("linear", max_iter=30, **CUT_OFF).fit(X, y)
        np.testing.assert_allclose(
            solver.decision_function(X), expected.decision_function(X), rtol=0, atol=1e-10
        )
        assert len(solver.result_.x) == kept.sum()
        assert not np.isin(np.flatnonzero(~kept), solver.support_).any()


@pytest.mark.parametrize("method", [MPKFP, KVN])
def test_stages_are_runs_that_were_cut_off_there(iris, method):
    X, y = iris
    stages = (1, 4, 25, 400)
    solver = method(gamma=0.5, dtype="float64", max_iter=60, tol=1e-3)
    staged = OneVsRest(solver, stages=stages).fit(X, y)
    scores = staged.staged_decision_function(X)
    assert tuple(scores) == stages
    for stage in stages:
        cut = OneVsRest(clone(solver).set_params(max_iter=min(stage, 60))).fit(X, y)
        np.testing.assert_allclose(scores[stage], cut.decision_function(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(scores[400], staged.decision_function(X), rtol=0, atol=1e-12)
    assert OneVsRest(solver).fit(X, y).staged_decision_function(X) == {}
    with pytest.raises(ValueError, match="stages must be a whole number >= 1, got 0"):
        OneVsRest(solver, stages=[0]).fit(X, y)


def test_a_norm_that_rounding_makes_zero_is_no_end_of_the_rounds():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(100, 2)), np.where(np.arange(100) % 2, 1, -1)
    fit = SNKP("linear", tol=0.01, stop="gap", max_iter=1000).fit(X, y)
    low, up = fit.result_.margin_bounds
    assert fit.status_ != "budget"
    assert up - low <= 0.01
