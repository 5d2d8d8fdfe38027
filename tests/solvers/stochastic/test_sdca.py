"""SDCA against a literal twin, SMO and its own invariants."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import SDCA, SMO

COSTS = [1.0, 10.0, pytest.param(100.0, marks=pytest.mark.slow)]


def draws_of_epoch(rng, n, order):
    return rng.permutation(n) if order == "permutation" else rng.integers(n, size=n)


def twin(K, y, C, order, epochs, seed, tol=0.0):
    """Exact dual coordinate steps, with the gap in lambda units after each epoch."""
    n, lam = len(y), 1 / (len(y) * C)
    rng = np.random.default_rng(seed)
    alpha, c, steps, duals = np.zeros(n), np.zeros(n), 0, [0.0]
    for epoch in range(1, epochs + 1):
        for i in draws_of_epoch(rng, n, order):
            delta = np.clip(alpha[i] + (1 - c[i]) / K[i, i], 0, C) - alpha[i]
            if delta != 0:
                duals.append(duals[-1] + delta * (1 - c[i]) - 0.5 * delta**2 * K[i, i])
                alpha[i] += delta
                c += delta * y[i] * y * K[i]
                steps += 1
        squared_norm = alpha @ c
        gap = lam * squared_norm + np.maximum(0, 1 - c).mean() - lam * alpha.sum()
        if gap <= tol:
            return alpha, steps, epoch, np.array(duals)
    return alpha, steps, epochs, np.array(duals)


@pytest.mark.parametrize("order", ["permutation", "iid"])
@pytest.mark.parametrize("C", COSTS)
def test_steps_are_the_literal_ones(task, C, order, alpha_of):
    alpha, steps, epochs, _ = twin(task.K, task.y, C, order, 15, seed=3)
    solver = SDCA(
        "precomputed", C=C, order=order, tol=0.0, max_epochs=15, dtype="float64", random_state=3
    ).fit(task.K, task.y)
    assert solver.n_iter_ == epochs * task.n
    # Every draw that changes its variable costs one row; the diagonal comes once.
    assert solver.counters_.kernel_evals == (steps + 1) * task.n
    np.testing.assert_allclose(alpha_of(solver.model_, task.y), alpha, rtol=0, atol=1e-10 * C)


@pytest.mark.parametrize("order", ["permutation", "iid"])
def test_computed_kernels_lead_to_the_same_alpha(task, order, alpha_of):
    alpha, *_ = twin(task.K, task.y, 10.0, order, 5, seed=4)
    solver = SDCA(
        **task.params, C=10.0, order=order, tol=0.0, max_epochs=5, dtype="float64", random_state=4
    ).fit(task.X, task.y)
    np.testing.assert_allclose(alpha_of(solver.model_, task.y), alpha, rtol=0, atol=1e-9)


@pytest.mark.parametrize("order", ["permutation", "iid"])
@pytest.mark.parametrize("tol", [0.3, 0.03, 1e-3])
def test_it_stops_at_the_first_epoch_within_the_gap(rbf_task, tol, order):
    task = rbf_task
    *_, epochs, _ = twin(task.K, task.y, 1.0, order, 200, seed=5, tol=tol)
    solver = SDCA(
        "precomputed", C=1.0, order=order, tol=tol, max_epochs=200, dtype="float64", random_state=5
    ).fit(task.K, task.y)
    assert solver.status_ == "converged"
    assert solver.n_iter_ == epochs * task.n


@pytest.mark.parametrize("order", ["permutation", "iid"])
@pytest.mark.parametrize("C", COSTS)
def test_optimum_is_smos(task, C, order, optimum, alpha_of):
    exact = {"dtype": "float64", "C": C}
    solver = SDCA(
        **task.params, **exact, order=order, tol=2e-8, max_epochs=40_000, random_state=0
    ).fit(task.X, task.y)
    smo = SMO(**task.params, **exact, tol=1e-10).fit(task.X, task.y)
    assert solver.status_ == "converged"

    def primal(fit):
        alpha = alpha_of(fit.model_, task.y)
        margins = task.Q @ alpha
        return 0.5 * alpha @ margins + C * np.maximum(0, 1 - margins).sum()

    best = optimum(task, C).value
    assert primal(smo) == pytest.approx(best, rel=1e-8)
    assert primal(solver) == pytest.approx(primal(smo), rel=1e-6)
    assert primal(solver) >= best * (1 - 1e-10)


@pytest.mark.parametrize("order", ["permutation", "iid"])
def test_dual_rises_gap_stays_positive_alpha_stays_in_the_box(
    task, order, recording_monitor, alpha_of
):
    C, lam = 10.0, 1 / (10.0 * task.n)
    monitor = recording_monitor(every=3 * task.n)
    SDCA(
        **task.params, C=C, order=order, tol=0.0, max_epochs=10, dtype="float64", random_state=1
    ).fit(task.X, task.y, monitor=monitor)
    duals = []
    for model in monitor.snapshots:
        alpha = alpha_of(model, task.y)
        assert alpha.min() >= 0
        assert alpha.max() <= C
        c = task.Q @ alpha
        duals.append(alpha.sum() - 0.5 * alpha @ c)
        assert lam * alpha @ c + np.maximum(0, 1 - c).mean() - lam * alpha.sum() >= -1e-12
    assert len(duals) > 30
    assert (np.diff(duals) >= -1e-12 * duals[-1]).all()


def test_twin_gains_add_up_to_the_dual(rbf_task):
    alpha, _, _, duals = twin(rbf_task.K, rbf_task.y, 10.0, "iid", 5, seed=6)
    assert duals[-1] == pytest.approx(alpha.sum() - 0.5 * alpha @ rbf_task.Q @ alpha, rel=1e-12)
    assert (np.diff(duals) >= -1e-13 * duals[-1]).all()


def test_late_steps_change_the_free_variables_only(rbf_task, optimum, recording_monitor):
    # BSCA18 Lemma 2: the rate of steps that change something tends to |{0 < alpha* < C}| / n.
    task, C = rbf_task, 1.0
    best = optimum(task, C).alpha
    free = ((best > 1e-6 * C) & (best < C * (1 - 1e-6))).mean()
    monitor = recording_monitor(every=task.n)
    SDCA(
        **task.params, C=C, order="iid", tol=0.0, max_epochs=600, dtype="float64", random_state=2
    ).fit(task.X, task.y, monitor=monitor)
    evals, iterations = np.array(monitor.evals), np.array(monitor.iterations)
    middle = len(evals) // 2
    rate = (evals[-1] - evals[middle]) / task.n / (iterations[-1] - iterations[middle])
    assert rate == pytest.approx(free, rel=0.1)


@pytest.mark.parametrize("order", ["permutation", "iid"])
def test_points_without_norm_go_to_their_bound(order, alpha_of):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 2))
    X[[0, 7]] = 0.0
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    y[[0, 7]] = [1, -1]
    solver = SDCA(
        "linear", C=2.0, order=order, tol=1e-8, max_epochs=5000, dtype="float64", random_state=0
    ).fit(X, y)
    alpha = alpha_of(solver.model_, y)
    np.testing.assert_array_equal(alpha[[0, 7]], 2.0)
    assert np.isfinite(alpha).all()
    assert solver.status_ == "converged"


def test_float32_is_close_to_float64(task):
    fits = [
        SDCA(**task.params, C=1.0, dtype=dtype, tol=1e-5, max_epochs=1000, random_state=0).fit(
            task.X, task.y
        )
        for dtype in ("float32", "float64")
    ]
    scores = [fit.decision_function(task.X) for fit in fits]
    assert np.isfinite(scores[0]).all()
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=2e-2)


def test_the_cache_changes_the_cost_but_not_the_result(task):
    fits = [
        SDCA(**task.params, C=10.0, cache_size=size, tol=0.0, max_epochs=5, random_state=0).fit(
            task.X, task.y
        )
        for size in (0.0, 200.0)
    ]
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    costs = [fit.counters_ for fit in fits]
    assert costs[0].kernel_evals == costs[1].kernel_evals == costs[0].kernel_evals_computed
    assert costs[1].kernel_evals_computed < costs[0].kernel_evals_computed


def shrinking_twin(Q, C, epochs, seed, tol):
    """LIBLINEAR's order, shrinking and stopping rule, with the responses recomputed each time."""
    n = len(Q)
    rng = np.random.default_rng(seed)
    alpha, active, drawn = np.zeros(n), list(range(n)), 0
    above, below = np.inf, -np.inf
    for _ in range(epochs):
        order = [sorted(active)[p] for p in rng.permutation(len(active))]
        highest, lowest, position = -np.inf, np.inf, 0
        while position < len(order):
            i = order[position]
            drawn += 1
            slope = 1 - Q[i] @ alpha
            if (alpha[i] == 0 and slope < below) or (alpha[i] == C and slope > above):
                # The last one comes next.
                order[position] = order[-1]
                order.pop()
                continue
            outward = (alpha[i] == 0 and slope < 0) or (alpha[i] == C and slope > 0)
            projected = 0.0 if outward else slope
            highest, lowest = max(highest, projected), min(lowest, projected)
            alpha[i] = np.clip(alpha[i] + slope / Q[i, i], 0, C)
            position += 1
        active = order
        small = max(highest - lowest, highest, -lowest) <= tol
        if small and len(active) == n:
            slopes = 1 - Q @ alpha
            slopes[(alpha == 0) & (slopes < 0) | (alpha == C) & (slopes > 0)] = 0
            if max(np.ptp(slopes), np.abs(slopes).max()) <= tol:
                return alpha, drawn
        if small and len(active) < n:
            active, above, below = list(range(n)), np.inf, -np.inf
        else:
            above = highest if highest > 0 else np.inf
            below = lowest if lowest < 0 else -np.inf
    return alpha, drawn


@pytest.mark.parametrize("C", [1.0, 10.0])
@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_shrinking_and_the_stopping_rule_are_liblinears(task, C, tol, alpha_of):
    alpha, drawn = shrinking_twin(task.Q, C, 5000, 8, tol)
    solver = SDCA(
        "precomputed", C=C, stopping="gradient", shrinking=True, tol=tol, max_epochs=5000,
        dtype="float64", random_state=8,
    ).fit(task.K, task.y)  # fmt: skip
    assert solver.status_ == "converged"
    assert solver.n_iter_ == drawn
    np.testing.assert_allclose(alpha_of(solver.model_, task.y), alpha, rtol=0, atol=1e-8 * C)


@pytest.mark.parametrize("shrinking", [False, True])
def test_an_epoch_without_large_derivatives_is_nearly_optimal(task, shrinking, alpha_of):
    solver = SDCA(
        **task.params, C=10.0, stopping="gradient", shrinking=shrinking, tol=1e-7,
        max_epochs=40_000, dtype="float64", random_state=0,
    ).fit(task.X, task.y)  # fmt: skip
    assert solver.status_ == "converged"
    alpha = alpha_of(solver.model_, task.y)
    slope = 1 - task.Q @ alpha
    assert slope[alpha < 10.0].max() <= 1e-7 * (1 + 1e-6)
    assert slope[alpha > 0].min() >= -1e-7 * (1 + 1e-6)


def test_weights_bound_alpha(task, solve_dual, alpha_of):
    weights = np.random.default_rng(3).integers(0, 3, size=task.n).astype(float)
    solver = SDCA(
        **task.params, C=0.7, tol=1e-8, max_epochs=40_000, dtype="float64", random_state=0
    ).fit(task.X, task.y, sample_weight=weights)
    alpha = alpha_of(solver.model_, task.y)
    assert (alpha <= 0.7 * weights).all()
    kept = np.repeat(np.arange(task.n), weights.astype(int))
    best = solve_dual(task.Q[np.ix_(kept, kept)], task.y[kept], 0.7)
    assert alpha.sum() - 0.5 * alpha @ task.Q @ alpha == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("parameters", [{"stopping": "gradient"}, {"shrinking": True}])
def test_independent_draws_see_no_epoch_of_all_points(rbf_task, parameters):
    with pytest.raises(ValueError, match="order='iid' does not visit every point"):
        SDCA(order="iid", **parameters).fit(rbf_task.X, rbf_task.y)
