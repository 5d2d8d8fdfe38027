"""Norm-constrained SGD against the literal iteration and the optimum."""

import numpy as np
import pytest

from marginbench.solvers import SGD


def twin(K, y, bound, epochs, seed):
    """Steps towards drawn violators, back into the ball; the mean of all iterates."""
    n = len(y)
    rng = np.random.default_rng(seed)
    Q = K * np.outer(y, y)
    alpha, total, steps, t, norms = np.zeros(n), np.zeros(n), 0, 0, []
    for _ in range(epochs):
        for i in rng.integers(n, size=n):
            t += 1
            if Q[i] @ alpha < 1:
                alpha[i] += bound / np.sqrt(np.diag(K).max() * t)
                steps += 1
                norm = np.sqrt(alpha @ Q @ alpha)
                if norm > bound:
                    alpha *= bound / norm
            norms.append(np.sqrt(max(alpha @ Q @ alpha, 0)))
            total += alpha
    return total / t, steps, np.array(norms)


@pytest.mark.parametrize("bound", [0.1, 1.0, 30.0])
def test_steps_are_the_literal_ones(task, alpha_of, bound):
    expected, steps, norms = twin(task.K, task.y, bound, 5, seed=1)
    solver = SGD(
        "precomputed", norm_bound=bound, max_epochs=5, dtype="float64", random_state=1
    ).fit(task.K, task.y)
    atol = 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(alpha_of(solver.model_, task.y), expected, rtol=0, atol=atol)
    assert solver.n_iter_ == 5 * task.n
    assert solver.counters_.kernel_evals == (steps + 1) * task.n
    assert norms.max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_the_loss_approaches_that_of_the_svm_with_this_norm(rbf_task, optimum, C):
    task = rbf_task
    best = optimum(task, C)
    lowest = np.maximum(0, 1 - task.Q @ best.alpha).mean()
    excesses = []
    for epochs in (5, 500):
        solver = SGD(
            **task.params,
            norm_bound=np.sqrt(best.squared_norm),
            max_epochs=epochs,
            dtype="float64",
            random_state=3,
        ).fit(task.X, task.y)
        margins = task.y * solver.decision_function(task.X)
        excesses.append(np.maximum(0, 1 - margins).mean() - lowest)
    # No w in the ball has a smaller loss.
    assert min(excesses) >= -1e-9
    assert excesses[1] < 0.01
    assert excesses[1] < 0.3 * excesses[0]


def test_a_kernel_without_a_direction_is_refused():
    with pytest.raises(ValueError, match="no k\\(x, x\\) is above 0"):
        SGD("linear").fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_weights_approach_the_weighted_loss(rbf_task, solve_dual):
    task = rbf_task
    weights = np.where(task.y > 0, 4.0, 1.0)
    kept = np.repeat(np.arange(task.n), weights.astype(int))
    best = solve_dual(task.Q[np.ix_(kept, kept)], task.y[kept], 1.0)
    bound = float(np.sqrt(best.squared_norm))
    solver = SGD(**task.params, norm_bound=bound, max_epochs=500, dtype="float64", random_state=0)
    solver.fit(task.X, task.y, sample_weight=weights)
    loss = np.maximum(0, 1 - task.y * solver.decision_function(task.X))
    least = (best.value - 0.5 * best.squared_norm) / len(kept)
    assert -1e-6 <= weights @ loss / weights.sum() - least <= 0.02
