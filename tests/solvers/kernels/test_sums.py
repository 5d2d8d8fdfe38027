"""Weighted sums of kernel entries in compiled code, against entries and sums by NumPy."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import RBF, KernelExpansion, Linear, Polynomial
from marginbench.solvers.kernels.scoring import expansion_scores
from marginbench.solvers.numeric.matrices import products

KERNELS = [RBF(0.1), Polynomial(3, 0.2, 0.5), Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_features", [1, 64, 65])
def test_scores_are_sums_of_entries(kernel, dtype, n_features):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, n_features)) / np.sqrt(n_features)
    coef = rng.standard_normal((2, 300))
    for n_support, n_points in ((1, 1), (256, 17), (300, 40)):
        X, Z = points[:n_support], rng.standard_normal((n_points, n_features))
        prepared = kernel.prepare(X, dtype)
        own = coef[:, :n_support]
        scores = expansion_scores(kernel, prepared, own, Z, dtype)
        exact = kernel.prepare(X, "float64")
        entries = kernel.block(kernel.prepare(Z, "float64", like=exact), exact)
        noise = max(1.0, np.abs(entries).max()) * n_support
        np.testing.assert_allclose(
            scores, entries @ own.T, rtol=0, atol=32 * np.finfo(dtype).eps * noise
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_sparse_points_do_not_depend_on_their_number(dtype):
    rng = np.random.default_rng(1)
    A, B = (
        sparse.random(n, 3000, density=0.02, format="csr", random_state=rng, dtype=dtype)
        for n in (200, 90)
    )
    together = products(A, B)
    np.testing.assert_array_equal(
        together, np.concatenate([products(A[:60], B), products(A[60:], B)])
    )
    np.testing.assert_allclose(together, (A @ B.T).toarray(), rtol=32 * np.finfo(dtype).eps)


def test_what_predictions_keep_is_not_pickled():
    rng = np.random.default_rng(2)
    points, coef = rng.standard_normal((100, 30)), rng.standard_normal(100)
    model = KernelExpansion(RBF(0.1), points, coef, 0.5, np.arange(100), 100)
    before = len(pickle.dumps(model))
    scores = model.decision_function(points)
    stored = pickle.dumps(model)
    assert len(stored) == before
    np.testing.assert_array_equal(pickle.loads(stored).decision_function(points), scores)
