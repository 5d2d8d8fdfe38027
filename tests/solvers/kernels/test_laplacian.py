"""The Laplacian kernel: entries, numbers that do not depend on the block, a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from marginbench.solvers import SMO, KernelOracle, Laplacian, Model


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 80)) * (rng.random((90, 80)) < 0.03)
    return X, np.where(X.sum(axis=1) > np.median(X.sum(axis=1)), 1, -1)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_entry_is_the_same_in_every_block(points, storage, dtype):
    oracle = KernelOracle("laplacian", storage(points[0]), dtype)
    assert oracle.looks_ahead
    whole = oracle.rows(range(90))
    np.testing.assert_array_equal(np.stack([oracle.row(i) for i in range(90)]), whole)
    np.testing.assert_array_equal(oracle.block([5, 8], [3, 8, 1]), whole[[5, 8]][:, [3, 8, 1]])


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_smo_fits_with_it_by_name_as_with_the_matrix(points, storage, tmp_path):
    X, y = points
    params = {"C": 2.0, "tol": 1e-8, "dtype": "float64"}
    fit = SMO("laplacian", gamma=0.2, **params).fit(storage(X), y)
    K = np.exp(-0.2 * cdist(X, X, "cityblock"))
    expected = SMO("precomputed", **params).fit(K, y)
    np.testing.assert_allclose(
        fit.decision_function(storage(X)), expected.decision_function(K), atol=1e-6
    )
    fit.model_.save(tmp_path / "model.npz")
    assert Model.load(tmp_path / "model.npz").kernel == Laplacian(0.2)


def test_points_that_overflow_are_refused():
    with pytest.raises(ValueError, match="laplacian kernel of these points overflows float32"):
        KernelOracle("laplacian", np.full((2, 2), 1e39))
