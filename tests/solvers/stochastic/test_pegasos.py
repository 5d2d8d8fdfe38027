"""Pegasos against the literal iteration with decay; counts of both strategies."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import Pegasos

COSTS = [1.0, 10.0, 100.0]
STRATEGIES = ["maintained", "on_demand"]


def twin(K, y, C, epochs, seed, tol=0.0):
    """w <- (1 - 1/t) w + v / (lam t) y_i Phi_i, in real dual coefficients."""
    n, lam = len(y), 1 / (len(y) * C)
    rng = np.random.default_rng(seed)
    alpha, c, squared_norm = np.zeros(n), np.zeros(n), 0.0
    t, violations, on_demand, before = 0, 0, 0, np.inf
    largest_norm = 0.0
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
            largest_norm = max(largest_norm, squared_norm)
        estimate = lam / 2 * squared_norm + np.mean(losses)
        if tol > 0 and abs(estimate - before) < tol * before:
            break
        before = estimate
    return {
        "alpha": alpha,
        "n_iter": t,
        "maintained": n * violations,
        "on_demand": on_demand,
        "largest_norm": np.sqrt(largest_norm),
        "converged": t < epochs * n,
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("C", COSTS)
def test_last_iterate_is_the_literal_one(task, C, strategy, alpha_of):
    expected = twin(task.K, task.y, C, 10, seed=1)
    solver = Pegasos(**task.params, C=C, strategy=strategy, dtype="float64", random_state=1).fit(
        task.X, task.y
    )
    assert solver.status_ == "budget"
    assert solver.n_iter_ == expected["n_iter"] == 10 * task.n
    assert solver.counters_.kernel_evals == expected[strategy]
    alpha = alpha_of(solver.model_, task.y)
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-10, atol=1e-12 * C)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", COSTS)
def test_both_strategies_give_the_same_predictor(task, C, dtype):
    fits = [
        Pegasos(**task.params, C=C, strategy=strategy, dtype=dtype, random_state=2).fit(
            task.X, task.y
        )
        for strategy in STRATEGIES
    ]
    np.testing.assert_array_equal(fits[0].support_, fits[1].support_)
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert fits[0].counters_.kernel_evals != fits[1].counters_.kernel_evals


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("tol", [0.3, 0.1, 0.02])
def test_it_stops_when_the_estimated_objective_settles(task, tol, strategy):
    expected = twin(task.K, task.y, 1.0, 100, seed=3, tol=tol)
    solver = Pegasos(
        **task.params,
        C=1.0,
        tol=tol,
        max_epochs=100,
        strategy=strategy,
        dtype="float64",
        random_state=3,
    ).fit(task.X, task.y)
    assert expected["converged"]
    assert solver.status_ == "converged"
    assert solver.n_iter_ == expected["n_iter"]
    # The stopping rule needs the diagonal once, unless it is 1.
    diagonal = 0 if task.params["kernel"] == "rbf" else task.n
    assert solver.counters_.kernel_evals == expected[strategy] + diagonal


def test_the_estimate_counts_every_drawn_loss(linear_task):
    # Few points: the first epochs weigh most, and each wrong loss would move some stop.
    y, K = linear_task.y[:8], linear_task.K[:8, :8]
    stops = []
    for seed in range(40):
        tol = 0.02 + 0.02 * seed
        expected = twin(K, y, 0.5, 60, seed, tol=tol)
        solver = Pegasos(
            "precomputed", C=0.5, tol=tol, max_epochs=60, dtype="float64", random_state=seed
        ).fit(K, y)
        assert solver.n_iter_ == expected["n_iter"]
        stops.append(solver.n_iter_)
    assert len(set(stops)) > 3


@pytest.mark.parametrize("C", COSTS)
def test_the_norm_is_bounded_at_every_checkpoint(task, C, recording_monitor, alpha_of):
    lam = 1 / (task.n * C)
    bound = np.sqrt(np.diag(task.K).max()) / lam
    monitor = recording_monitor(every=2 * task.n)
    Pegasos(**task.params, C=C, dtype="float64", random_state=4).fit(
        task.X, task.y, monitor=monitor
    )
    norms = []
    for model in monitor.snapshots:
        alpha = alpha_of(model, task.y)
        assert alpha.min() >= 0
        norms.append(np.sqrt(alpha @ task.Q @ alpha))
    assert len(norms) > 20
    assert max(norms) <= bound * (1 + 1e-12)
    assert max(norms) <= twin(task.K, task.y, C, 10, 4)["largest_norm"] * (1 + 1e-9)


def test_the_first_draw_is_always_a_violation(rbf_task, recording_monitor):
    monitor = recording_monitor(stop_after=1)
    solver = Pegasos(**rbf_task.params, C=3.0, random_state=5).fit(
        rbf_task.X, rbf_task.y, monitor=monitor
    )
    first = np.random.default_rng(5).integers(rbf_task.n, size=rbf_task.n)[0]
    assert solver.n_iter_ == 1
    np.testing.assert_array_equal(solver.support_, [first])
    # w_2 = y_i Phi_i / lambda, with 1 / lambda = n C.
    assert solver.dual_coef_[0, 0] == pytest.approx(rbf_task.y[first] * rbf_task.n * 3.0)


def test_late_violations_come_at_the_rate_of_the_optimal_alpha(
    rbf_task, optimum, recording_monitor
):
    # BSCA18 Lemma 2: the rate tends to sum alpha* / (n C).
    task, C = rbf_task, 1.0
    expected = optimum(task, C).alpha.sum() / (task.n * C)
    monitor = recording_monitor(every=task.n)
    Pegasos(**task.params, C=C, max_epochs=400, random_state=6).fit(task.X, task.y, monitor=monitor)
    evals, iterations = np.array(monitor.evals), np.array(monitor.iterations)
    middle = len(evals) // 2
    rate = (evals[-1] - evals[middle]) / task.n / (iterations[-1] - iterations[middle])
    assert rate == pytest.approx(expected, rel=0.03)


def test_long_runs_approach_the_optimum(task, optimum, alpha_of):
    # The error of the last iterate is of order log(T) / (lambda T), here T lambda = 500.
    solver = Pegasos(**task.params, C=1.0, max_epochs=500, random_state=7).fit(task.X, task.y)
    alpha = alpha_of(solver.model_, task.y)
    margins = task.Q @ alpha
    primal = 0.5 * alpha @ margins + np.maximum(0, 1 - margins).sum()
    best = optimum(task, 1.0).value
    assert best <= primal <= 1.05 * best


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_float32_is_close_to_float64(task, strategy):
    scores = [
        Pegasos(**task.params, C=1.0, dtype=dtype, strategy=strategy, random_state=8)
        .fit(task.X, task.y)
        .decision_function(task.X)
        for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_cache_does_not_change_the_result(task, strategy):
    fits = [
        Pegasos(**task.params, C=10.0, cache_size=size, strategy=strategy, random_state=0).fit(
            task.X, task.y
        )
        for size in (0.0, 0.005, 200.0)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.dual_coef_, fits[0].dual_coef_)
        assert fit.counters_.kernel_evals == fits[0].counters_.kernel_evals
        assert fit.counters_.kernel_evals_computed <= fits[0].counters_.kernel_evals_computed


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


def test_class_weights_are_sample_weights(rbf_task):
    task = rbf_task
    common = {**task.params, "random_state": 0}
    by_class = Pegasos(class_weight={1: 3.0, -1: 0.5}, **common).fit(task.X, task.y)
    by_point = Pegasos(**common)
    by_point.fit(task.X, task.y, sample_weight=np.where(task.y > 0, 3.0, 0.5))
    np.testing.assert_array_equal(by_class.dual_coef_, by_point.dual_coef_)
    assert (by_class.predict(task.X) > 0).sum() > (task.y > 0).sum()
