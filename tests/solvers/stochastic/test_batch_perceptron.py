"""The batch perceptron against its literal definition."""

import numpy as np
import pytest

from marginbench.solvers import BatchPerceptron


def literal(Q, steps, target=0.0):
    """Counts after each step, until the stopping rule holds."""
    counts, c = np.zeros(len(Q)), np.zeros(len(Q))
    history = []
    for _ in range(steps):
        i = int(np.argmin(c))
        counts[i] += 1
        c += Q[i]
        history.append(counts.copy())
        if c.min() > 0 and c.min() >= target * np.sqrt(counts @ Q @ counts):
            return np.array(history), "converged"
    return np.array(history), "budget"


@pytest.mark.parametrize("target", [0.0, 0.05])
def test_steps_are_the_literal_ones(task, alpha_of, target):
    history, status = literal(task.Q, 3 * task.n, target)
    solver = BatchPerceptron(
        **task.params, target_margin=target, max_iter=3 * task.n, dtype="float64"
    ).fit(task.X, task.y)
    np.testing.assert_array_equal(alpha_of(solver.model_, task.y), history[-1])
    assert solver.status_ == status
    assert solver.n_iter_ == len(history)
    assert solver.counters_.kernel_evals == task.n * len(history)
    c = task.Q @ history[-1]
    margin = c.min() / np.sqrt(history[-1] @ c)
    assert solver.margin_ == pytest.approx(margin, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("part", [0.5, 0.99])
def test_a_target_margin_is_reached(separable_task, solve_dual, part):
    task = separable_task
    largest = 1 / np.sqrt(solve_dual(task.Q, task.y, None).squared_norm)
    solver = BatchPerceptron(
        **task.params, target_margin=part * largest, max_iter=10_000 * task.n, dtype="float64"
    ).fit(task.X, task.y)
    assert solver.status_ == "converged"
    alpha = np.abs(solver.dual_coef_[0])
    w = (alpha * task.y[solver.support_]) @ task.X[solver.support_]
    found = (task.y * (task.X @ w)).min() / np.linalg.norm(w)
    assert part * largest * (1 - 1e-12) <= found <= largest * (1 + 1e-6)
    assert solver.margin_ == pytest.approx(found, rel=1e-9)
