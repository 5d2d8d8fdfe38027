"""Random Fourier features against the kernel that they approximate."""

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import SMO, RandomFourierFeatures, RandomFourierMap
from marginbench.solvers.models import fourier


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_features_are_those_of_the_frequencies(rbf_task, storage):
    X = rbf_task.X
    found = RandomFourierMap(7, gamma=0.3, random_state=1).fit(storage(X))
    V = found.frequencies_
    drawn = np.sqrt(0.6) * np.random.default_rng(1).standard_normal((7, 2))
    np.testing.assert_array_equal(V, drawn)
    expected = np.hstack([np.cos(X @ V.T), np.sin(X @ V.T)]) / np.sqrt(7)
    np.testing.assert_allclose(found.transform(storage(X)), expected, rtol=0, atol=1e-14)
    assert found.transform(storage(X.astype(np.float32))).dtype == np.float32
    assert len(found.get_feature_names_out()) == 14
    # Each of the n^2 / 2 products is a mean of 1000 cosines: Hoeffding's bound, at level 1e-6.
    F = RandomFourierMap(1000, gamma=0.5, random_state=3).fit_transform(X)
    off = np.abs(F @ F.T - rbf_task.K).max()
    assert off <= np.sqrt(2 * np.log(len(X) ** 2 / 1e-6) / 1000)


@pytest.mark.parametrize(("C", "dtype"), [(0.1, "float64"), (10.0, "float32")])
def test_it_solves_the_linear_problem_on_the_features(rbf_task, C, dtype):
    task = rbf_task
    solver = RandomFourierFeatures(
        gamma=0.5, n_pairs=25, C=C, tol=1e-6, max_epochs=100_000, dtype=dtype, random_state=4
    ).fit(task.X, task.y)
    assert solver.status_ == "converged"
    features = RandomFourierMap(25, gamma=0.5, random_state=4).fit(task.X)
    np.testing.assert_array_equal(features.frequencies_, solver.frequencies_)
    F = features.transform(task.X)
    best = SMO("linear", C=C, tol=1e-8, dtype="float64").fit(F, task.y)
    margins = task.y * best.decision_function(F)
    optimum = 0.5 * best.model_.squared_norm() + C * np.maximum(0, 1 - margins).sum()
    w = solver.coef_[0]
    found = 0.5 * w @ w + C * np.maximum(0, 1 - task.y * (F @ w)).sum()
    assert found <= optimum + 1.1e-6 * C * task.n
    np.testing.assert_allclose(solver.decision_function(task.X), F @ w, rtol=0, atol=1e-12)
    # Only the features are charged.
    assert solver.counters_.inner_products == 25 * task.n
    assert solver.counters_.kernel_evals == solver.counters_.kernel_evals_computed == 0


def test_scores_in_blocks_are_the_scores_at_once(rbf_task, monkeypatch):
    solver = RandomFourierFeatures(n_pairs=9, random_state=0).fit(rbf_task.X, rbf_task.y)
    expected = solver.decision_function(rbf_task.X)
    assert solver.model_.squared_norm() == pytest.approx(np.square(solver.coef_).sum())
    monkeypatch.setattr(fourier, "_BLOCK_BYTES", 7 * 8 * 9)
    found = solver.decision_function(rbf_task.X)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_other_kernels_are_refused(rbf_task):
    with pytest.raises(ValueError, match="for kernel='rbf', got 'poly'"):
        RandomFourierFeatures("poly").fit(rbf_task.K, rbf_task.y)
