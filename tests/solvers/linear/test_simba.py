"""SIMBA: bounds on the margin, counts, slacks and probabilities."""

import numpy as np
import pytest

from marginbench.solvers import SIMBA
from marginbench.solvers.linear.simba import primal_dual_steps


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_the_margin_of_the_svm_lies_between_the_bounds(linear_task, optimum, C):
    task = linear_task
    best = optimum(task, C)
    norm = np.sqrt(best.squared_norm)
    nu = np.maximum(0, 1 - task.Q @ best.alpha).mean() / norm
    for epochs in (5, 500):
        solver = SIMBA(nu=nu, max_epochs=epochs, tol=1e-9, random_state=0).fit(task.X, task.y)
        assert solver.margin_ <= 1 / norm * (1 + 1e-9)
        assert 1 / norm <= solver.certificate_ * (1 + 1e-9)
    assert solver.margin_ * norm > 0.97
    # The level is the mean slack per point over the margin: all slack is used.
    hinge = np.maximum(0, 1 - task.y * (task.X @ solver.coef_[0])).mean()
    assert hinge == pytest.approx(nu / solver.margin_, rel=1e-9)


def test_it_stops_at_the_certified_gap(linear_task):
    X, y = linear_task.X, linear_task.y
    solver = SIMBA(nu=0.3, tol=0.2, max_epochs=2000, random_state=0).fit(X, y)
    assert solver.status_ == "converged"
    assert solver.n_iter_ % len(y) == 0
    assert solver.certificate_ - solver.margin_ <= 0.2 * solver.certificate_


@pytest.mark.parametrize("epochs", [1, 4])
def test_cost(linear_task, epochs):
    X, y = linear_task.X, linear_task.y
    n, d = X.shape
    solver = SIMBA(max_epochs=epochs, random_state=0).fit(X, y)
    assert solver.n_iter_ == epochs * n
    assert solver.counters_.inner_products == 2 * n + epochs * n * (n + d) // d
    looked = SIMBA(max_epochs=epochs, tol=1e-9, random_state=0).fit(X, y)
    assert looked.counters_.inner_products == 2 * n * (1 + epochs) + epochs * n * (n + d) // d
    np.testing.assert_array_equal(solver.coef_, looked.coef_)


def test_no_probability_sinks_to_zero():
    # The response of thirty points is 1 in every step, that of two is next to nothing.
    Z = np.concatenate([np.full((30, 1), 1.0), np.full((2, 1), 0.001)])
    p, p_sum, u, w_sum = np.full(32, 1 / 32), np.zeros(32), np.ones(1), np.zeros(1)
    draws = np.random.default_rng(0).random((5000, 2))
    primal_dual_steps(Z, Z.T.copy(), 0.0, 0.5, 0.01, draws, u, p, w_sum, p_sum)
    assert 0.75**5000 == 0.0
    assert p.min() > 0
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    assert p[30:].sum() == pytest.approx(1.0, rel=1e-12)
    assert p_sum.sum() == pytest.approx(5000, rel=1e-9)


def test_points_at_the_origin_alone_are_refused():
    with pytest.raises(ValueError, match="every point is 0"):
        SIMBA().fit(np.zeros((4, 2)), [0, 1, 0, 1])
