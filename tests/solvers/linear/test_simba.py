"""SIMBA: bounds on the margin, a literal twin, and probabilities."""

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


def twin(X, y, nu, rate, epochs, seed):
    """Averages of w and p, with slacks to sorted probabilities, and all sums taken anew."""
    n, d = X.shape
    radius, step = np.linalg.norm(X, axis=1).max(), 1 / np.sqrt(2 * epochs * n)
    Z, capacity = X * y[:, None] / radius, n * nu / radius
    p, p_sum, u, w_sum = np.full(n, 1 / n), np.zeros(n), np.zeros(d), np.zeros(d)
    for row, column in np.random.default_rng(seed).random((epochs * n, 2)):
        u += step * Z[np.searchsorted(np.cumsum(p), row)]
        length = max(1.0, np.linalg.norm(u))
        w_sum += u / length
        gains = np.empty(n)
        gains[np.argsort(-p, kind="stable")] = np.clip(capacity - 2 * np.arange(n), 0, 2)
        j = np.searchsorted(np.cumsum(u**2), column * (u @ u))
        gains += Z[:, j] * (u @ u) / (length * u[j])
        gains = rate * np.clip(gains, -1 / rate, 1 / rate)
        p_sum += p
        p *= 1 - gains + gains**2
        p /= p.sum()
    return w_sum / (epochs * n), p_sum / (epochs * n)


@pytest.mark.parametrize("rate", [None, 0.05])
@pytest.mark.parametrize(("nu", "epochs"), [(0.0, 20), (0.3, 1), (0.3, 8), (10.0, 4)])
def test_steps_and_their_cost_are_the_literal_ones(nu, rate, epochs):
    rng, n, d = np.random.default_rng(3), 23, 4
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.standard_normal((n, d)) + 0.7 * y[:, None]
    by_default = np.sqrt(np.log(n) / (epochs * n))
    w, p = twin(X, y, nu, by_default if rate is None else rate, epochs, seed=5)
    params = {"nu": nu, "rate": rate, "max_epochs": epochs, "random_state": 5}
    solver, looked = (SIMBA(tol=tol, **params).fit(X, y) for tol in (0.0, 1e-9))
    scale = solver.margin_ if solver.margin_ > 0 else 1.0
    np.testing.assert_allclose(solver.coef_[0], w / scale, rtol=1e-9)
    # The level of water over the margins.
    margins = y * (X @ w)
    assert np.maximum(0, solver.margin_ - margins).mean() == pytest.approx(nu, rel=1e-9, abs=1e-12)
    assert nu or solver.margin_ == pytest.approx(margins.min(), rel=1e-9)
    assert solver.n_iter_ == epochs * n
    assert solver.counters_.inner_products == 2 * n + epochs * n * (n + d) // d
    assert solver.certificate_ is None
    # To look at the gap changes no step.
    np.testing.assert_array_equal(looked.coef_, solver.coef_)
    bound = np.linalg.norm((p * y) @ X) + n * nu * p.max()
    assert looked.certificate_ == pytest.approx(bound, rel=1e-9)
    assert looked.counters_.inner_products == 2 * n * (1 + epochs) + epochs * n * (n + d) // d


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
