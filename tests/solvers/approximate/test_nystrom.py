"""The subspace baseline: its features against the kernel, its optimum against SMO."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import RBF, SMO, KernelOracle, Nystrom
from marginbench.solvers.approximate.nystrom import incomplete_cholesky, nystrom_features
from marginbench.solvers.interface.problem import Problem
from marginbench.solvers.numeric.counters import Counters


def problem_of(task, kernel=None, dtype="float64"):
    counters = Counters()
    kernel = RBF(0.5) if kernel is None else kernel
    return Problem(
        task.X, task.y, np.random.default_rng(0), np.ones(task.n), counters,
        lambda: KernelOracle(kernel, task.X, dtype, counters=counters), kernel,
    )  # fmt: skip


def primal(solver, task, C):
    scores = solver.decision_function(task.X)
    return 0.5 * solver.model_.squared_norm() + C * np.maximum(0, 1 - task.y * scores).sum()


@pytest.mark.parametrize("m", [1, 10, 40])
def test_inner_products_of_features_are_nystroems(rbf_task, m):
    task = rbf_task
    landmarks = np.random.default_rng(1).permutation(task.n)[:m]
    problem = problem_of(task)
    factor, features = nystrom_features(problem, landmarks, 1e-10)
    K_nZ, K_ZZ = task.K[:, landmarks], task.K[np.ix_(landmarks, landmarks)]
    np.testing.assert_allclose(factor @ factor.T, K_ZZ, atol=1e-9)
    expected = K_nZ @ np.linalg.solve(K_ZZ + 1e-10 * np.eye(m), K_nZ.T)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-7)
    assert problem.counters.kernel_evals == task.n * m + m * (m + 1) // 2
    assert problem.counters.kernel_evals_computed == task.n * m


@pytest.mark.parametrize("m", [1, 10, 40])
def test_pivots_are_the_points_furthest_from_the_subspace(rbf_task, m):
    task = rbf_task
    oracle = KernelOracle(RBF(0.5), task.X, "float64")
    pivots, factor = incomplete_cholesky(oracle, m, 1e-10)
    assert factor.shape == (task.n, m)
    assert oracle.counters.kernel_evals == oracle.counters.kernel_evals_computed == task.n * m
    own = factor[pivots]
    np.testing.assert_array_equal(own, np.tril(own))
    for j in range(m):
        chosen = pivots[:j]
        K_Z = task.K[chosen]
        inside = K_Z.T @ np.linalg.solve(task.K[np.ix_(chosen, chosen)], K_Z) if j else 0 * task.K
        distances = np.diag(task.K - inside)
        assert distances[pivots[j]] >= distances.max() - 1e-7
        np.testing.assert_allclose(factor[:, :j] @ factor[:, :j].T, inside, atol=1e-6)


def test_an_incomplete_factor_ends_at_the_rank(linear_task):
    oracle = KernelOracle("linear", linear_task.X, "float64")
    pivots, factor = incomplete_cholesky(oracle, 100, 1e-10)
    assert len(pivots) == factor.shape[1] == 5
    np.testing.assert_allclose(factor @ factor.T, linear_task.K, atol=1e-9)


@pytest.mark.parametrize("selection", ["random", "pivoted"])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_with_all_points_it_is_the_kernel_svm(task, selection, C):
    best = primal(SMO(C=C, tol=1e-10, dtype="float64", **task.params).fit(task.X, task.y), task, C)
    solver = Nystrom(
        n_components=task.n, selection=selection, C=C, tol=1e-7, max_epochs=100_000,
        dtype="float64", random_state=0, **task.params,
    ).fit(task.X, task.y)  # fmt: skip
    assert solver.status_ == "converged"
    assert primal(solver, task, C) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("selection", ["random", "pivoted"])
def test_more_landmarks_come_closer_from_above(rbf_task, optimum, selection, dtype):
    task, C = rbf_task, 1.0
    best, values, landmarks = optimum(task, C).value, [], np.empty(0)
    for m in (2, 5, 10, 20, 40, 150):
        solver = Nystrom(
            n_components=m, selection=selection, tol=1e-7, max_epochs=100_000, dtype=dtype,
            random_state=0, **task.params,
        ).fit(task.X, task.y)  # fmt: skip
        np.testing.assert_array_equal(solver.landmarks_[: len(landmarks)], landmarks)
        landmarks = solver.landmarks_
        assert set(solver.support_) <= set(landmarks)
        values.append(primal(solver, task, C))
    assert min(values) >= best * (1 - 1e-6)
    assert (np.diff(values) <= 1e-4 * best).all()
    assert values[0] > 1.05 * best
    assert values[-1] <= 1.0001 * best
