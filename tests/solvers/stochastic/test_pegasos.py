"""Pegasos against the literal iteration with decay; counts of both strategies."""

import numpy as np
import pytest

from marginbench.solvers import Pegasos


def twin(K, y, C, epochs, seed, tol=0.0):
    """w <- (1 - 1/t) w + v / (lam t) y_i Phi_i, in real dual coefficients."""
    n, lam = len(y), 1 / (len(y) * C)
    rng = np.random.default_rng(seed)
    alpha, c, squared_norm = np.zeros(n), np.zeros(n), 0.0
    t, violations, on_demand, before = 0, 0, 0, np.inf
    for _ in range(epochs):
        losses = []
        for i in rng.integers(n, size=n):
            t += 1
            on_demand += np.count_nonzero(alpha)
            losses.append(max(0.0, 1 - c[i]))
            v, decay, step = c[i] < 1, 1 - 1 / t, 1 / (lam * t)
            squared_norm = decay**2 * squared_norm + v * (
                2 * decay * c[i] * step + K[i, i] * step**2
            )
            alpha *= decay
            c *= decay
            if v:
                alpha[i] += step
                c += step * y[i] * y * K[i]
                violations += 1
        estimate = lam / 2 * squared_norm + np.mean(losses)
        if tol > 0 and abs(estimate - before) < tol * before:
            break
        before = estimate
    return {
        "alpha": alpha,
        "n_iter": t,
        "maintained": n * violations,
        "on_demand": on_demand,
        "converged": t < epochs * n,
    }


@pytest.mark.parametrize("strategy", ["maintained", "on_demand"])
@pytest.mark.parametrize(("C", "tol"), [(1.0, 0.0), (100.0, 0.0), (1.0, 0.3), (1.0, 0.02)])
def test_last_iterate_is_the_literal_one(task, C, tol, strategy, alpha_of):
    epochs = 100 if tol else 10
    expected = twin(task.K, task.y, C, epochs, seed=1, tol=tol)
    solver = Pegasos(C=C, strategy=strategy, tol=tol, max_epochs=epochs, **task.params)
    solver.set_params(dtype="float64", random_state=1).fit(task.X, task.y)
    assert expected["converged"] == (tol > 0)
    assert solver.status_ == ("converged" if tol else "budget")
    assert solver.n_iter_ == expected["n_iter"]
    # The stopping rule needs the diagonal once, unless it is 1.
    diagonal = task.n if tol and task.params["kernel"] != "rbf" else 0
    assert solver.counters_.kernel_evals == expected[strategy] + diagonal
    alpha = alpha_of(solver.model_, task.y)
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-10, atol=1e-12 * C)


def test_long_runs_approach_the_optimum(task, optimum, alpha_of):
    # The error of the last iterate is of order log(T) / (lambda T), here T lambda = 500.
    solver = Pegasos(**task.params, C=1.0, max_epochs=500, random_state=7).fit(task.X, task.y)
    alpha = alpha_of(solver.model_, task.y)
    margins = task.Q @ alpha
    primal = 0.5 * alpha @ margins + np.maximum(0, 1 - margins).sum()
    best = optimum(task, 1.0).value
    assert best <= primal <= 1.05 * best


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
