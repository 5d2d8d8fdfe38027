"""SMO by large working sets, with sets that are much smaller than the data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import load
from marginbench.solvers import RBF, SMO, KernelOracle

N, GAMMA, C = 1500, 10.0, 5.0
# A third of it holds fewer entries than the smallest working set: 256 of 1500 variables.
SMALL = {"cache_size": 0.5}
BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])


@dataclass(frozen=True)
class Board:
    X: np.ndarray
    y: np.ndarray
    K: np.ndarray


@pytest.fixture(scope="module")
def board():
    """A noisy checkers board, its classes of 1 to 2, with float64 entries of its own."""
    data = load("checkers", {"n_train": 2000, "n_test": 200, "noise": 0.1})
    signs = np.where(data.y_train == data.y_train.max(), 1.0, -1.0)
    kept = np.sort(np.r_[np.flatnonzero(signs > 0)[:500], np.flatnonzero(signs < 0)[:1000]])
    X = np.asarray(data.X_train, dtype=np.float64)[kept]
    assert len(X) == N
    return Board(X, signs[kept], np.exp(-GAMMA * cdist(X, X, "sqeuclidean")))


def solver(bias, **params):
    return SMO(gamma=GAMMA, C=C, fit_intercept=bias).set_params(**params)


def violation_of(board, alpha, with_bias, costs):
    F = board.y - board.K @ (alpha * board.y)
    up = np.where(board.y > 0, alpha < costs, alpha > 0)
    down = np.where(board.y > 0, alpha > 0, alpha < costs)
    highest, lowest = F[up].max(initial=-np.inf), F[down].min(initial=np.inf)
    return highest - lowest if with_bias else max(highest, -lowest)


@BIAS
def test_the_optimum_is_the_textbook_variants(board, bias):
    duals = []
    for working_set in ("large", "textbook"):
        fit = solver(bias, dtype="float64", tol=1e-9, working_set=working_set, **SMALL)
        alpha = fit.fit(board.X, board.y).alpha_
        assert fit.status_ == "converged"
        scores = board.K @ (alpha * board.y)
        losses = np.maximum(0, 1 - board.y * (scores + fit.intercept_[0]))
        squared_norm = (alpha * board.y) @ scores
        duals.append(alpha.sum() - squared_norm / 2)
        assert squared_norm / 2 + C * losses.sum() - duals[-1] <= 1e-8 * duals[-1]
    assert duals[0] == pytest.approx(duals[1], rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_two_points_without_bias_are_solved_for_in_one_step(seed):
    # Also where they are one point, or where no feature space has such products.
    rng = np.random.default_rng(seed)
    K = np.diag(rng.uniform(0.2, 2.0, 2) if seed % 4 else [1.0, 1.0])
    K[0, 1] = K[1, 0] = rng.normal() if seed % 4 else rng.choice([-1.0, 1.0])
    y = np.array([1.0, -1.0])
    fit = SMO("precomputed", C=1.5, dtype="float64", tol=1e-9, max_iter=1)
    with warnings.catch_warnings(action="ignore"):
        alpha = fit.fit(K, y).alpha_
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1.5, 301)] * 2), axis=-1).reshape(-1, 2)
    both = np.vstack((alpha, grid))
    values = both.sum(axis=1) - np.einsum("ij,jk,ik->i", both * y, K, both * y) / 2
    assert values[0] >= values.max() - 1e-12


def test_without_bias_pairs_end_as_soon_as_with_one():
    # One variable at a time takes thirty times as many steps here.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=1000) > 0, 1.0, -1.0)
    fits = [SMO(gamma=5.0, C=1.0, fit_intercept=bias).fit(X, y) for bias in (False, True)]
    assert fits[0].n_iter_ <= 1.5 * fits[1].n_iter_


@BIAS
@pytest.mark.parametrize("cache_size", [0.0, 1.0, 1024.0])
def test_the_conditions_hold_with_float64_entries(board, bias, cache_size):
    tol = 1e-3
    fit = solver(bias, tol=tol, cache_size=cache_size).fit(board.X, board.y)
    assert fit.status_ == "converged"
    alpha = fit.alpha_
    assert alpha.min() >= 0
    assert alpha.max() <= C
    assert not bias or abs(alpha @ board.y) <= 1e-10 * alpha.sum()
    # Every float32 entry may be off by this much: the exponent is a difference of larger numbers.
    entry = np.abs(KernelOracle(RBF(GAMMA), board.X).rows(np.arange(N)) - board.K).max()
    squared_radius = np.square(board.X - board.X.mean(axis=0)).sum(axis=1).max()
    assert entry <= 2 * np.finfo(np.float32).eps * (1 + GAMMA * squared_radius)
    violation = violation_of(board, alpha, bias, C)
    assert violation <= tol + 2 * entry * alpha.sum()
    assert violation == pytest.approx(fit.violation_, abs=2 * entry * alpha.sum())
    np.testing.assert_array_equal(np.flatnonzero(alpha), fit.support_)


def far_pair(rng):
    X, y = rng.normal(size=(400, 2)), rng.choice([-1.0, 1.0], size=400)
    X[0] = 5000.0
    X[1] = X[0] + rng.normal(size=2)
    y[:2] = 1, -1
    return X, y


def outliers(rng):
    X, y = rng.normal(size=(200, 3)), rng.choice([-1.0, 1.0], size=200)
    X[:3] *= 10.0 ** rng.uniform(1, 4, size=(3, 1))
    return X, y


@pytest.mark.parametrize("working_set", ["large", "textbook"])
@pytest.mark.parametrize(
    ("points", "bias"), [(far_pair, True), (outliers, True), (outliers, False)]
)
def test_a_few_large_points_do_not_end_a_run_too_early(points, working_set, bias):
    tol, ended = 1e-2, 0
    for seed in range(14, 20):
        X, y = points(np.random.default_rng(seed))
        fit = SMO("linear", fit_intercept=bias, tol=tol, working_set=working_set, max_iter=20_000)
        fit.fit(X, y)
        if fit.status_ == "converged":
            ended += 1
            violation = violation_of(Board(X, y, X @ X.T), fit.alpha_, bias, 1.0)
            assert violation <= 1.25 * tol
    assert ended > 0


@BIAS
@pytest.mark.parametrize("working_set", ["large", "textbook"])
def test_a_start_at_the_optimum_ends_there(board, bias, working_set):
    fit = solver(bias, warm_start=True, working_set=working_set, **SMALL).fit(board.X, board.y)
    alpha = fit.alpha_.copy()
    # The gradient computed anew is that of the end but for rounding.
    fit.set_params(tol=1.1 * fit.tol).fit(board.X, board.y)
    assert (fit.status_, fit.n_iter_) == ("converged", 0)
    np.testing.assert_array_equal(fit.alpha_, alpha)
    # What it cost is the gradient: a row for each support vector.
    assert fit.counters_.kernel_evals == len(fit.support_) * N


@BIAS
def test_threads_and_repetition_change_no_bit(board, bias):
    fits = [solver(bias, **SMALL).fit(board.X, board.y) for _ in range(2)]
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        with threadpool_limits(1):
            fits.append(solver(bias, **SMALL).fit(board.X, board.y))
    finally:
        numba.set_num_threads(threads)
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.alpha_, fits[0].alpha_)
        assert fit.counters_ == fits[0].counters_


@BIAS
def test_counters_against_a_kernel_that_counts(board, bias):
    entries = []

    def kernel(A, B):
        entries.append(len(A) * len(B))
        return np.exp(-GAMMA * cdist(A, B, "sqeuclidean"))

    X, y = board.X[:700], board.y[:700]
    for cache_size in (0.0, 1.0, 100.0):
        entries.clear()
        fit = SMO(kernel, C=C, fit_intercept=bias, cache_size=cache_size).fit(X, y)
        assert fit.counters_.kernel_evals_computed == sum(entries)
        # The look at what rounding has done is no part of the method.
        looked = 96 * len(fit.support_)
        assert fit.counters_.kernel_evals >= fit.counters_.kernel_evals_computed - looked


@pytest.mark.parametrize("n_features", [3, 80])
@settings(max_examples=30, deadline=None)
@given(st.lists(st.sets(st.integers(0, 59), min_size=1, max_size=25), min_size=1, max_size=6))
def test_entries_among_points_are_those_of_their_order(n_features, sets):
    points = np.random.default_rng(0).standard_normal((60, n_features))
    gamma = 1.2 / n_features
    # With room for some rows, of which there are more and more.
    oracle = KernelOracle(RBF(gamma), points, "float64", cache_bytes=30 * 60 * 8)
    K = np.exp(-gamma * cdist(points, points, "sqeuclidean"))
    room, F = np.empty(25 * 25), np.zeros(60)
    for wanted in sets:
        entries, members = oracle.among(np.array(sorted(wanted)), room)
        assert sorted(members.tolist()) == sorted(wanted)
        np.testing.assert_allclose(entries, K[np.ix_(members, members)], atol=1e-12)
        before = F.copy()
        oracle.add_rows(members[::2], np.arange(len(members[::2])) + 1.0, F)
        added = (np.arange(len(members[::2])) + 1.0) @ K[members[::2]]
        np.testing.assert_allclose(F - before, added, atol=1e-9)


def test_entries_that_stored_rows_hold_are_not_computed_again():
    points = np.random.default_rng(0).standard_normal((40, 80))
    oracle = KernelOracle(RBF(0.01), points, "float32", cache_bytes=2**20)
    oracle.stored_rows(np.arange(6))
    before = oracle.counters.kernel_evals_computed
    oracle.among(np.arange(16), np.empty(256, np.float32))
    # Those of the 10 without a row among each other.
    assert oracle.counters.kernel_evals_computed - before == 10 * 10


@pytest.mark.parametrize("column", [0.0, 30.0, 1e4])
@pytest.mark.parametrize("working_set", ["large", "textbook"])
def test_the_reported_violation_is_the_true_one_even_where_float32_fails(working_set, column):
    # A constant feature of a linear kernel hides the others in the rounding of float32 entries.
    rng = np.random.default_rng(0)
    X = np.c_[rng.standard_normal((300, 3)), np.full(300, column)]
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1.0, -1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = SMO("linear", fit_intercept=True, working_set=working_set, max_iter=30_000).fit(X, y)
    violation = violation_of(Board(X, y, X @ X.T), fit.alpha_, True, 1.0)
    assert violation == pytest.approx(fit.violation_, rel=1e-3, abs=6e-4)
    if column == 1e4:
        ended = (
            "SMO ended at the rounding of its float32 kernel entries (scale the features or set "
        )
        assert str(caught[-1].message).startswith(ended)
    if column <= 30.0:
        assert fit.status_ == "converged"
    assert fit.status_ == "budget" or violation <= 1.6e-3


@pytest.mark.parametrize("seed", range(3))
def test_a_gram_matrix_is_judged_as_it_was_given(seed):
    # Points far from the origin: rounded to float32, the entries are those of another problem.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) + 100
    y = np.where(X[:, 0] > X[:, 0].mean(), 1.0, -1.0)
    fit = SMO("precomputed", C=100.0, fit_intercept=True, max_iter=200_000).fit(X @ X.T, y)
    violation = violation_of(Board(X, y, X @ X.T), fit.alpha_, True, 100.0)
    assert violation == pytest.approx(fit.violation_, abs=1.3e-4)
    assert fit.status_ == "converged"


@BIAS
@pytest.mark.parametrize(("gamma", "costs"), [(0.1, 100.0), (0.5, 100.0), (0.5, 1000.0)])
def test_the_conditions_hold_where_most_points_are_passed_over(gamma, costs, bias):
    # Two blobs, and large coefficients, which make float32 entries too coarse for the tolerance:
    # a third of the points are near enough to their margins to be looked at again.
    rng, tol = np.random.default_rng(0), 1e-4
    X = rng.normal(0, 1, (1000, 4))
    X[:, 0] += np.where(rng.random(1000) < 0.5, 2.5, -2.5)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[:30] *= -1
    fit = SMO(gamma=gamma, C=costs, fit_intercept=bias, tol=tol, max_iter=10**6).fit(X, y)
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    violation = violation_of(Board(X, y, K), fit.alpha_, bias, costs)
    assert fit.status_ == "converged"
    assert violation <= 1.25 * tol
    assert violation == pytest.approx(fit.violation_, abs=0.25 * tol)


@BIAS
@pytest.mark.parametrize("unit", [2.0**70, 2.0**500])
def test_float64_entries_beyond_the_range_of_float32_are_those_of_another_unit(unit, bias):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.choice([-1.0, 1.0], size=200)
    plain, scaled = (
        SMO("linear", C=C / scale**2, fit_intercept=bias, dtype="float64").fit(scale * X, y)
        for scale in (1.0, unit)
    )
    assert (scaled.status_, scaled.n_iter_) == ("converged", plain.n_iter_)
    np.testing.assert_array_equal(scaled.alpha_ * unit**2, plain.alpha_)


@pytest.mark.parametrize("working_set", ["large", "textbook"])
def test_an_outlier_does_not_hide_violations_in_the_rounding_of_float64(working_set):
    # It puts the mean of the points, from which distances are computed, far from all others.
    rng, tol = np.random.default_rng(3), 1e-7
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0, 1.0, -1.0)
    X[0] = 1e4
    fit = SMO(gamma=0.5, C=2e5, fit_intercept=True, tol=tol, working_set=working_set)
    fit.set_params(dtype="float64").fit(X, y)
    K = np.exp(-0.5 * cdist(X, X, "sqeuclidean"))
    assert fit.status_ == "converged"
    assert violation_of(Board(X, y, K), fit.alpha_, True, 2e5) <= 1.1 * tol
