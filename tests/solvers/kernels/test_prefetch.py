"""Rows computed ahead of time: nothing but the cost and the rounding of BLAS may tell.

Most points here are whole numbers, with products that float32 holds exactly: the order in which
BLAS sums, which depends on the processor and on the block, makes no difference to them.
"""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from marginbench.solvers import SBP, SDCA, Counters, KernelOracle, Pegasos
from marginbench.solvers.kernels.rows import RowCache, rows_ahead

KERNEL = {"kernel": "poly", "gamma": 2.0**-10, "degree": 2, "coef0": 1.0}
#: One solver for each way of choosing the next rows.
SOLVERS = {
    "SBP": SBP(nu=0.02, **KERNEL, fit_intercept=True),
    "SDCA": SDCA(**KERNEL, tol=0.0),
    "Pegasos": Pegasos(**KERNEL),
}
# MB: nothing stored, a few rows, all of them.
CACHES = [0.0, 0.05, 100.0]


@pytest.fixture(scope="module")
def points():
    """Enough points of enough features that BLAS treats their products as large."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.4, 1, -1)
    X = np.rint(rng.standard_normal((600, 900)) + 0.1 * y[:, None])
    return X.astype(np.float32), y


@pytest.fixture(autouse=True)
def _one_thread():
    """Products of two rows are too small to share."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize(
    ("name", "storage"), [*((name, "dense") for name in SOLVERS), ("SDCA", "sparse")]
)
def test_results_are_those_of_one_row_at_a_time(points, name, storage, monkeypatch):
    X, y = points
    if storage == "sparse":
        X = sparse.csr_matrix(np.where(np.abs(X) > 2.6, X, 0))
    solver = SOLVERS[name].set_params(max_epochs=1, random_state=3)
    fits = {}
    for cache_size in CACHES:
        fit = solver.set_params(cache_size=cache_size).fit(X, y)
        fits[cache_size] = fit.model_, fit.n_iter_, fit.counters_
        np.testing.assert_array_equal(fit.model_.coef, fits[0.0][0].coef)
        assert fit.counters_.kernel_evals == fits[0.0][2].kernel_evals
    # And with every row computed by itself, in the same way as in blocks.
    ahead = KernelOracle.row_ahead
    monkeypatch.setattr(
        KernelOracle,
        "row_ahead",
        lambda self, i, upcoming: ahead(self, i, lambda count: np.empty(0, dtype=np.int64)),
    )
    alone = solver.set_params(cache_size=CACHES[1]).fit(X, y)
    for model, n_iter, counters in fits.values():
        np.testing.assert_array_equal(model.support, alone.model_.support)
        np.testing.assert_array_equal(model.coef, alone.model_.coef)
        assert model.intercept == alone.model_.intercept
        assert n_iter == alone.n_iter_
        assert counters.kernel_evals == alone.counters_.kernel_evals
        # Each support vector's row was computed at some time.
        assert counters.kernel_evals_computed >= model.n_support * len(y)


def test_rows_computed_ahead_are_counted_when_computed_and_when_asked_for(points):
    X, _ = points
    counters = Counters()
    oracle = KernelOracle("rbf", X, cache_bytes=2**24, counters=counters)
    asked = []

    def upcoming(count):
        asked.append(count)
        return np.array([3, 5, 3, 8])

    rows = [oracle.row_ahead(i, upcoming).copy() for i in (3, 5, 8, 9)]
    assert counters.kernel_evals == 4 * 600
    assert counters.kernel_evals_computed == 4 * 600
    # Asked for more only where a row was missing: for 3 and for 9.
    assert len(asked) == 2
    np.testing.assert_array_equal(rows, oracle.rows(np.array([3, 5, 8, 9])))
    # A row by itself is not counted twice.
    alone = KernelOracle("rbf", X)
    alone.row_ahead(7, lambda count: np.empty(0, dtype=np.int64))
    assert (alone.counters.kernel_evals, alone.counters.kernel_evals_computed) == (600, 600)


def test_rows_of_points_that_stay_at_their_bound_are_not_computed_ahead(points):
    # After an epoch all points but 30 are at their small bounds; the rows of these stay stored.
    X, y = points
    weights = np.where(np.arange(600) % 20, 1e-3, 1.0)
    solver = SDCA("rbf", gamma=1e-4, tol=0.0, max_epochs=5, cache_size=0.0, random_state=0)
    counters = solver.fit(X, y, sample_weight=weights).counters_
    assert counters.kernel_evals > (600 + 3 * 30) * 600
    assert counters.kernel_evals_computed <= (600 + 30) * 600


@pytest.mark.parametrize(
    ("kernel", "n", "dtype", "expected"),
    [
        ("rbf", 600, "float32", True),
        ("rbf", 600, "float64", False),
        ("rbf", 40, "float32", False),
        ("precomputed", 600, "float32", False),
        (lambda A, B: A @ B.T, 600, "float32", False),
    ],
)
def test_only_where_entries_do_not_depend_on_the_block(points, kernel, n, dtype, expected):
    X = points[0][:n]
    X = X @ X.T if kernel == "precomputed" else X
    oracle = KernelOracle(kernel, X, dtype)
    assert oracle.looks_ahead == expected
    if not expected:
        oracle.row_ahead(1, lambda count: pytest.fail("nothing is computed ahead"))
        assert oracle.counters.kernel_evals == n


def test_rows_wanted_soon_are_computed_together_and_those_stored_stay():
    store = RowCache(400, "float32", 100 * 400 * 4)
    wanted = np.arange(1, 400)
    first = rows_ahead(store, 0, lambda count: wanted)
    np.testing.assert_array_equal(first, np.arange(24))
    store.reserve(np.arange(100, 176))
    store.reserve(first)
    # 76 of the 100 rows go, but none of those that are wanted soon.
    second = rows_ahead(store, 300, lambda count: np.r_[wanted[:20], wanted[200:]])
    np.testing.assert_array_equal(second, np.r_[300, 201:224])
    store.reserve(second)
    assert store.holds(np.r_[1:21, second]).all()
    # Of a small store no more than half is filled at a time.
    for rows in (2, 3, 10):
        store = RowCache(50, "float32", rows * 50 * 4)
        assert len(rows_ahead(store, 7, lambda count: np.arange(50))) == rows // 2
