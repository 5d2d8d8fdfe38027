"""Norm-constrained SGD against the literal iteration and the optimum."""

import numpy as np
import pytest

from marginbench.solvers import SGD


def twin(K, y, bound, epochs, seed):
    """Steps towards drawn violators, back into the ball; the mean of all iterates."""
    n = len(y)
    rng = np.random.default_rng(seed)
    Q = K * np.outer(y, y)
    alpha, total, steps, t = np.zeros(n), np.zeros(n), 0, 0
    for _ in range(epochs):
        for i in rng.integers(n, size=n):
            t += 1
            if Q[i] @ alpha < 1:
                alpha[i] += bound / np.sqrt(np.diag(K).max() * t)
                steps += 1
                norm = np.sqrt(alpha @ Q @ alpha)
                if norm > bound:
                    alpha *= bound / norm
            total += alpha
    return total / t, steps


@pytest.mark.parametrize("bound", [0.1, 1.0, 30.0])
def test_steps_are_the_literal_ones(task, alpha_of, bound):
    expected, steps = twin(task.K, task.y, bound, 5, seed=1)
    solver = SGD(
        "precomputed", norm_bound=bound, max_epochs=5, dtype="float64", random_state=1
    ).fit(task.K, task.y)
    atol = 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(alpha_of(solver.model_, task.y), expected, rtol=0, atol=atol)
    assert solver.n_iter_ == 5 * task.n
    assert solver.counters_.kernel_evals == (steps + 1) * task.n


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_the_loss_approaches_that_of_the_svm_with_this_norm(rbf_task, solve_dual, factor):
    task = rbf_task
    weights = np.where(task.y > 0, factor, 1.0)
    best = solve_dual(task.Q, task.y, weights)
    bound = float(np.sqrt(best.squared_norm))
    least = (best.value - 0.5 * best.squared_norm) / weights.sum()
    excesses = []
    for epochs in (5, 500):
        solver = SGD(norm_bound=bound, max_epochs=epochs, dtype="float64", **task.params)
        solver.set_params(random_state=3).fit(task.X, task.y, sample_weight=weights)
        losses = np.maximum(0, 1 - task.y * solver.decision_function(task.X))
        excesses.append(weights @ losses / weights.sum() - least)
    # No w in the ball has a smaller loss.
    assert min(excesses) >= -1e-6
    assert excesses[1] < min(0.02, 0.3 * excesses[0])


def test_a_kernel_without_a_direction_is_refused():
    with pytest.raises(ValueError, match="no k\\(x, x\\) is above 0"):
        SGD("linear").fit(np.zeros((4, 2)), [0, 1, 0, 1])
