"""EigenPro against descent with the preconditioned kernel itself, and against the interpolant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from marginbench.solvers import EigenPro


class Lowered(NamedTuple):
    """The preconditioned kernel: its entries, and what batches and steps follow from."""

    entries: np.ndarray
    beta: float
    top: float
    q: int


def lowered(K, points, q):
    """The kernel whose q largest eigenvalues on a subsample are lowered, by its definition."""
    s = len(points)
    values, vectors = np.linalg.eigh(K[np.ix_(points, points)] / s)
    values, vectors = values[::-1][:q], vectors[:, ::-1][:, :q]
    functions = K[:, points] @ vectors / np.sqrt(s * values)
    entries = K - functions * (1 - (values[-1] / values) ** 0.95) @ functions.T
    own = entries[np.ix_(points, points)]
    return Lowered(entries, np.diag(own).max(), np.linalg.eigvalsh(own / s).max(), q)


def twin(K, y, *, s, q, max_batch_size, epochs, seed):
    """The values of f at all points under plain descent with the preconditioned kernel."""
    rng, n = np.random.default_rng(seed), len(y)
    points = rng.permutation(n)[:s]
    if q is None:
        # The largest q whose critical batch size is affordable.
        tried = [lowered(K, points, k) for k in range(1, min(s // 10, max_batch_size) + 1)]
        affordable = [of for of in tried if of.beta / of.top + 1 <= max_batch_size]
        kernel = [tried[0], *affordable][-1]
    else:
        kernel = lowered(K, points, q)
    critical = kernel.beta / kernel.top + 1
    m = int(min(critical, max_batch_size, n))
    step = m / kernel.beta
    f, norms = np.zeros(n), []
    for _ in range(epochs):
        order, squares = rng.permutation(n), 0.0
        for start in range(0, n, m):
            batch = order[start : start + m]
            g = f[batch] - y[batch]
            squares += g @ g
            f = f - step / m * kernel.entries[:, batch] @ g
        norms.append(np.sqrt(squares / n))
        if len(norms) > 1 and norms[-1] >= max(norms[-2], 1.0):
            step /= 2
    return f, m, step, norms[-1], kernel.q


@pytest.mark.parametrize(
    ("s", "q", "max_batch_size"),
    [(60, 3, 16), (60, None, 16), (150, 1, 500), (150, None, 8), (100, 10, 500)],
)
@pytest.mark.parametrize(("cache_size", "rows"), [(0.0, 3), (200.0, 1)])
def test_steps_are_those_of_the_preconditioned_kernel(
    rbf_task, s, q, max_batch_size, cache_size, rows
):
    X, y, n, seen = rbf_task.X, rbf_task.y, rbf_task.n, []

    def kernel(A, B):
        seen.append(len(A) * len(B))
        return np.exp(-0.5 * cdist(A, B, "sqeuclidean"))

    common = {"max_batch_size": max_batch_size}
    f, m, step, residual, found = twin(rbf_task.K, y, s=s, q=q, epochs=3, seed=4, **common)
    solver = EigenPro(
        kernel, n_subsample=s, n_eigenvalues=q, max_epochs=3, tol=0.0, dtype="float64",
        random_state=4, cache_size=cache_size, **common,
    ).fit(X, y)  # fmt: skip
    assert solver.counters_.kernel_evals == s * s + 3 * n**2
    assert solver.counters_.kernel_evals_computed == sum(seen) == s * s + rows * n**2
    assert (solver.batch_size_, solver.n_eigenvalues_) == (m, found)
    assert solver.step_size_ == pytest.approx(step, rel=1e-9)
    assert solver.residual_ == pytest.approx(residual, rel=1e-8)
    np.testing.assert_allclose(solver.decision_function(X), f, rtol=0, atol=1e-8)
    assert solver.n_iter_ == 3 * n


@pytest.mark.parametrize(
    ("n_subsample", "dtype", "tol"), [(100, "float64", 1e-9), (60, "float32", 1e-4)]
)
def test_it_converges_to_the_interpolant(n_subsample, dtype, tol):
    rng = np.random.default_rng(1)
    X, Z, gamma = rng.standard_normal((100, 8)), rng.standard_normal((50, 8)), 0.2
    y = np.where(np.arange(100) % 2, 1.0, -1.0)
    solver = EigenPro(
        gamma=gamma, n_subsample=n_subsample, tol=tol, max_epochs=500, dtype=dtype, random_state=0
    ).fit(X, y)
    K, K_Z = (np.exp(-gamma * cdist(A, X, "sqeuclidean")) for A in (X, Z))
    assert solver.status_ == "converged"
    assert solver.residual_ <= tol
    # The coefficients are off by the inverse times the residuals.
    atol = 10 * tol * np.sqrt(len(y)) * np.linalg.norm(np.linalg.inv(K), 2)
    expected = K_Z @ np.linalg.solve(K, y)
    np.testing.assert_allclose(solver.decision_function(Z), expected, rtol=0, atol=atol)


def test_an_epoch_that_diverges_is_undone():
    # So few points say nothing about the eigenfunctions that they are asked for.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 20))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 0, 1, -1)
    common = {"n_subsample": 20, "n_eigenvalues": 20, "gamma": 0.01, "random_state": 0}
    first, second = (EigenPro(**common, max_epochs=epochs).fit(X, y) for epochs in (1, 2))
    assert second.step_size_ == first.step_size_ / 2
    for solver, epochs in ((first, 1), (second, 2)):
        assert solver.residual_ > 2
        assert solver.n_iter_ < epochs * 200
        np.testing.assert_array_equal(solver.decision_function(X), 0.0)


def test_a_kernel_without_a_direction_is_refused():
    y = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="no k\\(x, x\\) is above 0"):
        EigenPro("linear").fit(np.zeros((4, 2)), y)
    # Two of these points have none, and the others are both interpolated.
    solver = EigenPro("linear", tol=1e-9, max_epochs=200, dtype="float64").fit(np.eye(4, 2), y)
    np.testing.assert_allclose(solver.decision_function(np.eye(2)), [-1, 1], atol=1e-6)
    # Of points that are all the same the critical size is a whole number, and a batch as large.
    same = EigenPro("linear", n_eigenvalues=1, max_epochs=1).fit(np.full((3, 1), 2.0), y[1:])
    assert (same.batch_size_, same.step_size_) == (2, pytest.approx(0.99 * 2 / 4))
