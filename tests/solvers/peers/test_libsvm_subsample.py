"""LIBSVM on a subsample is LIBSVM on these points, placed among all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import LIBSVM, LIBSVMSubsample


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_samples", [40, 0.33])
def test_the_model_is_that_of_the_drawn_points(rbf_task, n_samples, storage):
    task = rbf_task
    X = storage(task.X)
    m = n_samples if n_samples > 1 else math.ceil(n_samples * task.n)
    solver = LIBSVMSubsample(gamma=0.5, C=2.0, n_samples=n_samples, random_state=3).fit(X, task.y)
    drawn = np.sort(np.random.default_rng(3).permutation(task.n)[:m])
    np.testing.assert_array_equal(solver.samples_, drawn)
    alone = LIBSVM(gamma=0.5, C=2.0).fit(X[drawn], task.y[drawn])
    np.testing.assert_array_equal(solver.support_, drawn[alone.support_])
    np.testing.assert_array_equal(solver.dual_coef_, alone.dual_coef_)
    assert solver.intercept_[0] == alone.intercept_[0]
    assert (solver.n_iter_, solver.status_) == (alone.n_iter_, "converged")
    np.testing.assert_allclose(solver.decision_function(X), alone.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix])
def test_a_gram_matrix_is_cut_to_the_drawn_points(rbf_task, wrap):
    task = rbf_task
    common = {"C": 2.0, "n_samples": 40, "random_state": 3, "dtype": "float64"}
    expected = LIBSVMSubsample(gamma=0.5, **common).fit(task.X, task.y)
    solver = LIBSVMSubsample("precomputed", **common).fit(wrap(task.K), task.y)
    np.testing.assert_array_equal(solver.samples_, expected.samples_)
    np.testing.assert_allclose(
        solver.decision_function(task.K), expected.decision_function(task.X), rtol=0, atol=1e-2
    )


@pytest.mark.parametrize("n_samples", [150, 1000, 1.0])
def test_of_all_points_it_is_libsvm(rbf_task, n_samples):
    task = rbf_task
    solver = LIBSVMSubsample(n_samples=n_samples).fit(task.X, task.y)
    np.testing.assert_array_equal(solver.dual_coef_, LIBSVM().fit(task.X, task.y).dual_coef_)


def test_a_smaller_subsample_is_a_part_of_a_larger_one(rbf_task):
    task = rbf_task
    small, large = (
        LIBSVMSubsample(n_samples=m, random_state=1).fit(task.X, task.y).samples_ for m in (30, 60)
    )
    assert set(small) < set(large)


def test_points_of_one_class_predict_it():
    X = np.arange(200.0)[:, None]
    y = np.where(np.arange(200) == 7, 1, -1)
    solver = LIBSVMSubsample(n_samples=2, random_state=0).fit(X, y)
    assert 7 not in solver.samples_
    np.testing.assert_array_equal(solver.predict(X), -1)
    assert len(solver.support_) == 0


@pytest.mark.parametrize("n_samples", [0, 1, True, 0.0, 1.5, -0.1, math.nan, "all", None])
def test_a_size_that_is_neither_number_nor_share_is_refused(rbf_task, n_samples):
    with pytest.raises(ValueError, match="n_samples must be") as failure:
        LIBSVMSubsample(n_samples=n_samples).fit(rbf_task.X, rbf_task.y)
    assert repr(n_samples) in str(failure.value)
