"""SMO by large working sets, much smaller than the data; its conditions with float64 entries."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import load
from marginbench.solvers import RBF, SMO, KernelOracle

N, GAMMA, C = 1500, 10.0, 5.0
# A third of it holds fewer entries than the smallest working set: 256 of 1500 variables.
SMALL = {"cache_size": 0.5}
EITHER = (False, True)
BIAS = pytest.mark.parametrize("bias", EITHER, ids=["no bias", "bias"])
SETS = pytest.mark.parametrize("working_set", ["large", "textbook"])


@dataclass(frozen=True)
class Board:
    X: np.ndarray
    y: np.ndarray


@pytest.fixture(scope="module")
def board():
    """A noisy checkers board, its classes of 1 to 2."""
    data = load("checkers", {"n_train": 2000, "n_test": 200, "noise": 0.1})
    signs = np.where(data.y_train == data.y_train.max(), 1.0, -1.0)
    kept = np.sort(np.r_[np.flatnonzero(signs > 0)[:500], np.flatnonzero(signs < 0)[:1000]])
    assert len(kept) == N
    return Board(np.asarray(data.X_train, dtype=np.float64)[kept], signs[kept])


def solver(bias, **params):
    return SMO(gamma=GAMMA, C=C, fit_intercept=bias).set_params(**params)


@BIAS
@pytest.mark.parametrize(
    "params", [{"cache_size": 0.0}, {"cache_size": 1.0}, {"dtype": "float64", "tol": 1e-9} | SMALL]
)
def test_the_conditions_hold_on_a_board(board, bias, params, check_conditions):
    fit = solver(bias, **params)
    check_conditions(fit, board.X, board.y)
    assert fit.status_ == "converged"


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


def beside_a_constant(rng, column):
    """It hides the other features in the rounding of float32 entries of a linear kernel."""
    X = np.c_[rng.standard_normal((300, 3)), np.full(300, column)]
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1.0, -1.0)


def far_from_the_origin(rng):
    """Rounded to float32, the entries are those of another problem."""
    X = rng.normal(size=(60, 3)) + 100
    return X, np.where(X[:, 0] > X[:, 0].mean(), 1.0, -1.0)


def blobs(rng):
    """A third of the points are so near their margins that large coefficients matter there."""
    X = rng.normal(0, 1, (1000, 4))
    X[:, 0] += np.where(rng.random(1000) < 0.5, 2.5, -2.5)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[:30] *= -1
    return X, y


def one_outlier(rng):
    """It puts the mean of the points, from which distances are computed, far from all others."""
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0, 1.0, -1.0)
    X[0] = 1e4
    return X, y


def contradictions(rng):
    X = np.repeat(rng.standard_normal((12, 2)), 4, axis=0)
    y = np.where(rng.random(48) < 0.5, 1.0, -1.0)
    y[:4] = [1, 1, -1, -1]
    return X, y


COARSE = {"kernel": "linear", "tol": 1e-2, "max_iter": 20_000}
LINEAR = {"kernel": "linear", "max_iter": 30_000}
# Points, seeds of them, parameters, with bias or not, and in how many at least a run converges.
ROUNDED = [
    (far_pair, range(14, 20), COARSE, [True], 1),
    (outliers, range(14, 20), COARSE, EITHER, 1),
    *((partial(beside_a_constant, column=c), [0], LINEAR, [True], c < 1e4) for c in (0, 30, 1e4)),
    (far_from_the_origin, range(3), {"kernel": "precomputed", "C": 100.0}, [True], 3),
    (blobs, [0], {"gamma": 0.1, "C": 100.0, "tol": 1e-4}, [True], 1),
    (blobs, [0], {"gamma": 0.5, "C": 1000.0, "tol": 1e-4}, EITHER, 1),
    (one_outlier, [3], {"gamma": 0.5, "C": 2e5, "tol": 1e-7, "dtype": "float64"}, [True], 1),
    (contradictions, [3], {"kernel": "linear", "C": 5.0, "tol": 1e-5}, EITHER, 1),
    (contradictions, [3], {"gamma": 1.0, "C": 5.0, "tol": 1e-5, "dtype": "float64"}, EITHER, 1),
]


@SETS
@pytest.mark.parametrize(
    ("draw", "seeds", "params", "bias", "fewest"),
    [(*case[:3], bias, case[4]) for case in ROUNDED for bias in case[3]],
)
def test_the_conditions_hold_however_entries_are_rounded(
    draw, seeds, params, bias, fewest, working_set, check_conditions
):
    converged = 0
    for seed in seeds:
        fit = SMO(fit_intercept=bias, working_set=working_set, **{"max_iter": 10**6} | params)
        check_conditions(fit, *draw(np.random.default_rng(seed)))
        converged += fit.status_ == "converged"
    assert converged >= fewest


@SETS
def test_a_run_says_where_float32_leaves_no_progress(working_set):
    fit = SMO(fit_intercept=True, working_set=working_set, **LINEAR)
    ended = r"^SMO ended at the rounding of its float32 kernel entries \(scale the features or set "
    with pytest.warns(ConvergenceWarning, match=ended):
        fit.fit(*beside_a_constant(np.random.default_rng(0), 1e4))


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
@SETS
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
    fit, threads = solver(bias, **SMALL).fit(board.X, board.y), numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        with threadpool_limits(1):
            again = solver(bias, **SMALL).fit(board.X, board.y)
    finally:
        numba.set_num_threads(threads)
    np.testing.assert_array_equal(again.alpha_, fit.alpha_)
    assert again.counters_ == fit.counters_


@BIAS
def test_counters_against_a_kernel_that_counts(board, bias):
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return np.exp(-GAMMA * cdist(A, B, "sqeuclidean"))

    X, y = board.X[:700], board.y[:700]
    for cache_size in (0.0, 1.0, 100.0):
        asked.clear()
        fit = SMO(kernel, C=C, fit_intercept=bias, cache_size=cache_size).fit(X, y)
        assert fit.counters_.kernel_evals_computed == sum(a * b for a, b in asked)
        # A working set takes a third of the cache, in float32, but at least 256 variables.
        largest = max(a * b for a, b in asked if b < len(X))
        assert largest <= max(256**2, cache_size * 2**20 / 3 / 4)
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
