"""The batch perceptron against its literal definition."""

import numpy as np
import pytest

from marginbench.solvers import BatchPerceptron


def literal(Q, steps, target):
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


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_steps_are_the_literal_ones(task, separable_task, alpha_of, solve_dual, part):
    largest = 1 / np.sqrt(solve_dual(separable_task.Q, separable_task.y, None).squared_norm)
    for given, target, most in ((task, 0.1 * part, 3), (separable_task, part * largest, 10_000)):
        Q, y, most = given.Q, given.y, most * given.n
        history, status = literal(Q, most, target)
        solver = BatchPerceptron(**given.params, target_margin=target, max_iter=most)
        solver.set_params(dtype="float64").fit(given.X, y)
        np.testing.assert_array_equal(alpha_of(solver.model_, y), history[-1])
        assert (solver.status_, solver.n_iter_) == (status, len(history))
        assert solver.counters_.kernel_evals == given.n * len(history)
        c = Q @ history[-1]
        margin = c.min() / np.sqrt(history[-1] @ c)
        assert solver.margin_ == pytest.approx(margin, rel=1e-9, abs=1e-12)
    # A margin that the points have is reached.
    assert status == "converged"
    assert target * (1 - 1e-12) <= margin <= largest * (1 + 1e-6)
