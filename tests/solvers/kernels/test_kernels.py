"""Kernel entries against double loops, the meaning of gamma, and the errors."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from marginbench.solvers import RBF, Counters, KernelOracle, Laplacian, Linear, Polynomial
from marginbench.solvers.kernels import (
    kernel_names,
    kernel_of,
    make_kernel,
)

KERNELS = [
    pytest.param(RBF(0.3), lambda p, q: math.exp(-0.3 * sum((p - q) ** 2)), id="rbf"),
    pytest.param(Linear(), lambda p, q: sum(p * q), id="linear"),
    pytest.param(
        Polynomial(3, 0.4, 1.5), lambda p, q: (0.4 * sum(p * q) + 1.5) ** 3, id="polynomial"
    ),
    pytest.param(Laplacian(0.3), lambda p, q: math.exp(-0.3 * sum(abs(p - q))), id="laplacian"),
    pytest.param(Polynomial(2, 0.4), lambda p, q: (0.4 * sum(p * q)) ** 2, id="homogeneous"),
]
# Rounding of the products, for entries of size one and inputs of size a few.
TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


def by_loops(function, A, B):
    return np.array([[function(p, q) for q in B] for p in A], dtype=float)


def against(oracle, Z):
    """Entries between other points and those of the oracle."""
    kernel, points = oracle.kernel, oracle.points
    return kernel.block(kernel.prepare(Z, oracle.dtype, like=points), points)


def random_points(storage, n, seed):
    rng = np.random.default_rng(seed)
    if storage == "dense":
        return rng.standard_normal((n, 4))
    if storage == "float32 dense":
        return rng.standard_normal((n, 4)).astype(np.float32)
    density = {"sparse": 0.02, "dense enough": 0.4}[storage]
    X = sparse.random(n, 60, density=density, format="csr", random_state=rng)
    X.data = rng.standard_normal(X.nnz)
    return X


def as_dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


@pytest.mark.parametrize("storage", ["dense", "float32 dense", "sparse", "dense enough"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kernel", "function"), KERNELS)
def test_entries_agree_with_double_loops(kernel, function, dtype, storage):
    X, Z = random_points(storage, 17, 0), random_points(storage, 5, 1)
    oracle = KernelOracle(kernel, X, dtype)
    assert sparse.issparse(oracle.points.values) == (storage == "sparse")
    X, Z_dense = as_dense(X), as_dense(Z)
    expected = by_loops(function, X, X)
    columns = [11, 2, 2, 16]

    scale = max(1.0, np.abs(expected).max())
    close = {"rtol": 0, "atol": TOLERANCE[dtype] * scale}
    np.testing.assert_allclose(oracle.row(3), expected[3], **close)
    np.testing.assert_allclose(oracle.rows([4, 0, 4]), expected[[4, 0, 4]], **close)
    np.testing.assert_allclose(oracle.block([1, 9], columns), expected[[1, 9]][:, columns], **close)
    np.testing.assert_allclose(oracle.diag(), np.diag(expected), **close)
    for queries in (Z, Z_dense, sparse.csr_matrix(Z_dense)):
        entries = against(oracle, queries)
        np.testing.assert_allclose(entries, by_loops(function, Z_dense, X), **close)
    for block in (oracle.row(3), oracle.rows([1]), oracle.block([1], [2]), against(oracle, Z)):
        assert block.dtype == dtype
        assert block.flags.c_contiguous


@pytest.mark.parametrize("storage", ["dense", "sparse", "dense enough"])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_by_name_is_scikit_learns(gamma, storage):
    X = random_points(storage, 50, 3)
    y = np.arange(50) % 2
    expected = SVC(gamma=gamma).fit(X, y)._gamma
    assert make_kernel("rbf", gamma=gamma, X=X).gamma == pytest.approx(expected, rel=1e-12)
    assert make_kernel("poly", gamma=gamma, X=X).gamma == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("storage", ["dense", "sparse", "dense enough"])
def test_gamma_scale_counts_points_as_often_as_their_weights_say(storage):
    def scale(X, weights=None):
        return make_kernel("rbf", gamma="scale", X=X, weights=weights).gamma

    X = random_points(storage, 50, 3)
    times = np.random.default_rng(4).integers(0, 4, 50)
    expected = scale(X[np.repeat(np.arange(50), times)])
    for factor in (1.0, 1e-3):
        assert scale(X, factor * times) == pytest.approx(expected, rel=1e-13)
    # Points without weight are as if they were not there, to the last bit.
    assert scale(X, (times > 0).astype(float)) == scale(X[times > 0])
    if storage == "dense":
        assert scale(X + 2.0**20, times) == pytest.approx(expected, rel=1e-9)
        assert scale(np.full((50, 3), 0.1), times) == 1.0
    with pytest.raises(ValueError, match="needs the variance of X, which overflows: scale X"):
        scale(1e160 * X)


def test_precomputed_entries_are_the_matrix():
    rng = np.random.default_rng(4)
    K = rng.standard_normal((6, 6))
    K = K @ K.T
    for matrix in (K, sparse.csr_matrix(K)):
        oracle = KernelOracle("precomputed", matrix, "float64")
        np.testing.assert_array_equal(oracle.row(2), K[2])
        np.testing.assert_array_equal(oracle.block([1, 5], [0, 3]), K[[1, 5]][:, [0, 3]])
        np.testing.assert_array_equal(oracle.diag(), np.diag(K))
        between = rng.standard_normal((3, 6))
        np.testing.assert_array_equal(against(oracle, between), between)
        # Asked for, but never computed.
        assert oracle.counters == Counters(kernel_evals=6 + 4 + 6, kernel_evals_computed=0)


def test_a_callable_sees_the_users_own_points_and_may_return_the_same_array_again():
    seen, buffer = [], np.empty((1, 9))

    def kernel(A, B):
        seen.append((type(A), A.dtype))
        buffer[:] = (A @ B.T).toarray()
        return buffer

    X = sparse.random(9, 40, density=0.5, format="csr", random_state=0)
    oracle = KernelOracle(kernel, X, "float32")
    np.testing.assert_allclose([oracle.row(0), oracle.row(1)], (X @ X.T).toarray()[:2], rtol=1e-6)
    assert seen == [(sparse.csr_matrix, np.dtype(np.float64))] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_kernel("rbff"), "unknown kernel 'rbff'; did you mean '"),
        (lambda: make_kernel("sigma"), "known: laplacian, linear, poly, precomputed, rbf"),
        (lambda: make_kernel("rbf", gamma="scale"), "needs the training points"),
        (lambda: make_kernel({"name": "rbf", "nu": 1.0}, gamma=1.0), "the rbf kernel has no nu"),
        (lambda: kernel_of({"name": "rbf", "gamma": 1.0, "degree": 2}), "no degree; it has gamma"),
        (lambda: kernel_of({"name": "linear", "gamma": 1.0}), "has no gamma; it has no parameters"),
        (lambda: KernelOracle("precomputed", np.zeros((3, 4))), r"square, got shape \(3, 4\)"),
        (lambda: KernelOracle("laplacian", np.full((2, 2), 1e39)), "overflows float32"),
        (
            lambda: KernelOracle(lambda A, B: np.zeros((len(B), len(A))), np.eye(4)).row(0),
            r"returned shape \(4, 1\).*expected \(1, 4\)",
        ),
        (lambda: KernelOracle(lambda A, B: A @ B.T * np.nan, np.eye(4)).row(0), "not finite"),
    ],
)
def test_a_kernel_that_cannot_be_is_one_line(make, message):
    with pytest.raises(ValueError, match=message) as failure:
        make()
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("storage", "offset"),
    [("dense", 0.0), ("dense", 30.0), ("dense", 2.0**20), ("sparse", 0.0), ("sparse", 30.0)],
)
@pytest.mark.parametrize("name", [name for name in kernel_names() if name != "precomputed"])
def test_the_error_of_a_float32_entry_is_within_the_kernels_bound(name, offset, storage):
    X = random_points(storage, 60, 5)
    X = X + offset if storage == "dense" else X * (1 + offset)
    kernel = make_kernel(name, gamma=0.3, degree=3, coef0=1.0)
    single, double = (kernel.prepare(X, dtype) for dtype in ("float32", "float64"))
    bound = kernel.entry_noise(double)
    exact = kernel.block(double, double)
    error = np.abs(kernel.block(single, single) - exact)
    assert error.max() <= bound < math.inf
    new = kernel.block(kernel.prepare(X[:7], "float32", like=single), single)
    assert np.abs(new - exact[:7]).max() <= bound
    # Far from the origin, too: only distances count.
    assert error.max() < 5e-6 or name != "rbf" or storage == "sparse"
    # The entries' type is not that of the points that the bound is asked for.
    assert kernel.entry_noise(single) == pytest.approx(bound, rel=1e-3)
    assert kernel.entry_noise(double, "float64") == pytest.approx(bound * 2.0**-29)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_entry_of_the_laplacian_kernel_is_the_same_in_every_block(storage, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 80)) * (rng.random((90, 80)) < 0.03)
    oracle = KernelOracle("laplacian", storage(X), dtype)
    assert oracle.looks_ahead
    whole = oracle.rows(range(90))
    np.testing.assert_array_equal(np.stack([oracle.row(i) for i in range(90)]), whole)
    np.testing.assert_array_equal(oracle.block([5, 8], [3, 8, 1]), whole[[5, 8]][:, [3, 8, 1]])


def test_points_far_from_their_mean_for_their_width_are_told():
    near = np.random.default_rng(0).standard_normal((60, 2))
    far = near + np.where(np.arange(60)[:, None] % 2, 1e4, 0.0)
    with pytest.warns(UserWarning, match="float32 entries between near ones may be off by 1; sc"):
        RBF(gamma=1.0).prepare(far, "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RBF(gamma=1.0).prepare(far, "float64")
        # An outlier is far from all, so that its entries are 0.
        RBF(gamma=1.0).prepare(np.append(near, [[1e3, 1e3]], axis=0), "float32")
