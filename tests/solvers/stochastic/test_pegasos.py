"""Pegasos against the literal iteration with decay, and its counts."""

import numpy as np
import pytest

from marginbench.solvers import Pegasos


def twin(K, y, C, epochs, seed):
    """w <- (1 - 1/t) w + v / (lam t) y_i Phi_i, in real dual coefficients."""
    n, lam = len(y), 1 / (len(y) * C)
    rng = np.random.default_rng(seed)
    alpha, c = np.zeros(n), np.zeros(n)
    violations = 0
    for t in range(1, epochs * n + 1):
        if t % n == 1:
            draws = iter(rng.integers(n, size=n))
        i = next(draws)
        violated, decay, step = c[i] < 1, 1 - 1 / t, 1 / (lam * t)
        alpha *= decay
        c *= decay
        if violated:
            alpha[i] += step
            c += step * y[i] * y * K[i]
            violations += 1
    return alpha, n * violations


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_last_iterate_is_the_literal_one(task, C, alpha_of):
    expected, evaluations = twin(task.K, task.y, C, 10, seed=1)
    solver = Pegasos(C=C, max_epochs=10, **task.params)
    solver.set_params(dtype="float64", random_state=1).fit(task.X, task.y)
    assert (solver.status_, solver.n_iter_) == ("budget", 10 * task.n)
    assert solver.counters_.kernel_evals == evaluations
    alpha = alpha_of(solver.model_, task.y)
    np.testing.assert_allclose(alpha, expected, rtol=1e-10, atol=1e-12 * C)


def test_weights_are_probabilities_of_the_draws(rbf_task, alpha_of):
    task = rbf_task
    weights = np.random.default_rng(1).integers(0, 3, size=task.n).astype(float)
    n, C, lam = task.n, 2.0, 1 / (2.0 * weights.sum())
    rng = np.random.default_rng(6)
    counts, t = np.zeros(n), 0
    for _ in range(5):
        for draw in rng.random(n):
            i = int(np.flatnonzero(np.cumsum(weights) > draw * weights.sum())[0])
            t += 1
            margin = task.y[i] * task.K[i] @ (counts * task.y) / (lam * (t - 1)) if t > 1 else 0
            counts[i] += margin < 1
    solver = Pegasos(**task.params, C=C, max_epochs=5, dtype="float64", random_state=6)
    solver.fit(task.X, task.y, sample_weight=weights)
    alpha = alpha_of(solver.model_, task.y)
    np.testing.assert_allclose(alpha, counts / (lam * t), rtol=1e-10)
    assert (alpha[weights == 0] == 0).all()
