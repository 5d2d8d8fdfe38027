"""SBP against a literal twin of its Algorithm 1, its invariants, and SMO's optimum."""

from __future__ import annotations

import numpy as np
import pytest

from solvers import SBP
from solvers.sbp import _State

COSTS = [1.0, 10.0, 100.0]


def level_by_sorting(c, volume):
    """The water level from the sorted heights over the lowest one."""
    base = c.min()
    if volume == 0:
        return base
    ordered = np.sort(c - base)
    levels = (volume + np.cumsum(ordered)) / np.arange(1, len(c) + 1)
    k = int(np.argmax(levels <= np.r_[ordered[1:], np.inf]))
    return base + levels[k]


def covered_draws(rng, n):
    """Uniform indices in blocks of n; the caller sends whether the last one was taken."""
    while True:
        yield from rng.integers(n, size=n)


def twin(K, y, nu, T, seed, each=None):
    """SBP12 Algorithm 1, draw by draw; ``each`` sees (t, alpha, c, r2, level) of every step."""
    n = len(y)
    draws = covered_draws(np.random.default_rng(seed), n)
    eta0 = 1 / np.sqrt(np.diag(K).max())
    alpha, c, r2 = np.zeros(n), np.zeros(n), 0.0
    alpha_sum, c_sum, counts = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(1, T + 1):
        level = level_by_sorting(c, n * nu)
        i = next(j for j in draws if c[j] <= level)
        eta = eta0 / np.sqrt(t)
        r2 = r2 + 2 * eta * c[i] + eta**2 * K[i, i]
        alpha[i] += eta
        c += eta * y[i] * y * K[i]
        if r2 > 1:
            s = 1 / np.sqrt(r2)
            alpha *= s
            c *= s
            r2 = 1.0
        alpha_sum += alpha
        c_sum += c
        counts[i] += 1
        if each is not None:
            each(t, alpha, c, r2, level)
    g = level_by_sorting(c_sum / T, n * nu)
    mean = alpha_sum / T
    p = counts / T
    bound = np.sqrt(p @ (K * np.outer(y, y)) @ p) + n * nu * p.max()
    return {"alpha": mean / g if g > 0 else mean, "margin": g, "bound": bound}


def slack_rate(task, best):
    """nu = mean hinge / ||w*||, from the reference optimum."""
    hinge = np.maximum(0, 1 - task.Q @ best.alpha)
    return float(hinge.mean() / np.sqrt(best.squared_norm))


@pytest.mark.parametrize("nu", [0.0, 1e-10, 1e-3, 0.02, 0.3])
def test_average_is_the_literal_one(task, nu, alpha_of):
    expected = twin(task.K, task.y, nu, 6 * task.n, seed=1)
    solver = SBP("precomputed", nu=nu, max_epochs=6, dtype="float64", random_state=1)
    solver.fit(task.K, task.y)
    alpha = alpha_of(solver.model_, task.y)
    scale = expected["alpha"].max()
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-10, atol=1e-10 * scale)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10, abs=1e-13)
    assert solver.certificate_ is None
    assert solver.status_ == "budget"
    assert solver.n_iter_ == 6 * task.n


def test_computed_kernels_lead_to_the_same_average(task, alpha_of):
    expected = twin(task.K, task.y, 0.01, 3 * task.n, seed=2)
    solver = SBP(**task.params, nu=0.01, max_epochs=3, dtype="float64", random_state=2)
    alpha = alpha_of(solver.fit(task.X, task.y).model_, task.y)
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-9, atol=1e-10)


def test_one_row_an_iteration_whatever_is_rejected(task):
    solver = SBP(**task.params, nu=1e-6, max_epochs=4, random_state=3).fit(task.X, task.y)
    diagonal = 0 if task.params["kernel"] == "rbf" else task.n
    assert solver.counters_.kernel_evals == 4 * task.n * task.n + diagonal
    assert solver.counters_.kernel_evals_computed <= task.n * task.n + diagonal


@pytest.mark.parametrize("nu", [0.0, 0.02])
def test_iterates_keep_to_their_invariants(rbf_task, nu):
    """The state's recursions over 1e4 steps, against values computed from scratch."""
    n, K, y, Q = rbf_task.n, rbf_task.K, rbf_task.y, rbf_task.Q
    rng = np.random.default_rng(4)
    state = _State(n, volume=n * nu, certify=True)
    eta0 = 1 / np.sqrt(np.diag(K).max())
    seen_on_the_sphere = False
    for t in range(1, 10_001):
        level = level_by_sorting(state.responses, n * nu)
        i = int(rng.choice(np.flatnonzero(state.responses <= level)))
        state.move(i, eta0 / np.sqrt(t), y, K[i], K[i, i])
        assert state.squared_norm <= 1
        seen_on_the_sphere |= state.squared_norm == 1
        if t in (1, 3, 10, 100, 1000, 10_000):
            assert state.alpha.min() >= 0
            assert np.count_nonzero(state.alpha) <= t
            c = Q @ state.alpha
            np.testing.assert_allclose(state.responses, c, rtol=1e-10, atol=1e-10)
            assert state.squared_norm == pytest.approx(state.alpha @ c, rel=1e-10)
            np.testing.assert_allclose(
                state.count_responses, Q @ state.counts, rtol=1e-10, atol=1e-10 * t
            )
            assert state.counts.sum() == t
    assert seen_on_the_sphere


def test_the_step_direction_is_a_supergradient(rbf_task):
    # f(v) <= f(w) + <v - w, sum_i p_i y_i Phi_i>, p uniform on the covered points of w.
    task, V = rbf_task, 150 * 0.02
    rng = np.random.default_rng(5)
    for _ in range(50):
        a, b = rng.exponential(size=(2, task.n)) * (rng.random((2, task.n)) < 0.2)
        c_a, c_b = task.Q @ a, task.Q @ b
        level = level_by_sorting(c_a, V)
        p = (c_a <= level) / np.count_nonzero(c_a <= level)
        assert level_by_sorting(c_b, V) <= level + p @ (c_b - c_a) + 1e-10


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_weak_duality_brackets_the_optimum(task, C, seed, optimum):
    best = optimum(task, C)
    nu, optimal_margin = slack_rate(task, best), 1 / np.sqrt(best.squared_norm)
    for epochs in (1, 3, 20):
        solver = SBP(
            **task.params, nu=nu, tol=1e-9, max_epochs=epochs, dtype="float64", random_state=seed
        ).fit(task.X, task.y)
        assert solver.margin_ <= optimal_margin * (1 + 1e-7)
        assert optimal_margin <= solver.certificate_ * (1 + 1e-7)


def test_the_certificate_is_the_bound_at_the_frequencies_of_the_draws(task):
    expected = twin(task.K, task.y, 0.02, 5 * task.n, seed=6)
    solver = SBP(
        "precomputed", nu=0.02, tol=1e-9, max_epochs=5, dtype="float64", random_state=6
    ).fit(task.K, task.y)
    assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-10)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10)


def test_it_stops_when_the_certified_gap_is_small(rbf_task):
    task, nu, tol = rbf_task, 0.05, 0.5
    solver = SBP(**task.params, nu=nu, tol=tol, max_epochs=500, dtype="float64", random_state=7)
    solver.fit(task.X, task.y)
    assert solver.status_ == "converged"
    assert solver.n_iter_ % task.n == 0
    assert solver.certificate_ - solver.margin_ <= tol * solver.certificate_
    epochs = solver.n_iter_ // task.n
    assert epochs > 1, "choose a smaller tolerance: nothing to see before the stop"
    before = twin(task.K, task.y, nu, (epochs - 1) * task.n, seed=7)
    assert before["bound"] - before["margin"] > tol * before["bound"]


def test_watching_the_certificate_does_not_change_the_model(task):
    fits = [
        SBP(**task.params, nu=0.02, tol=tol, max_epochs=3, random_state=8).fit(task.X, task.y)
        for tol in (0.0, 1e-9)
    ]
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert fits[0].counters_.kernel_evals == fits[1].counters_.kernel_evals


@pytest.mark.parametrize("C", COSTS)
def test_long_runs_reach_the_optimal_margin(rbf_task, C, optimum, alpha_of):
    task, best = rbf_task, optimum(rbf_task, C)
    nu, norm = slack_rate(task, best), np.sqrt(best.squared_norm)
    # T = 5e4 iterations, rounded up to whole epochs.
    solver = SBP(**task.params, nu=nu, max_epochs=334, dtype="float64", random_state=0)
    solver.fit(task.X, task.y)
    assert 0.97 <= solver.margin_ * norm <= 1 + 1e-7

    alpha = alpha_of(solver.model_, task.y)
    margins = task.Q @ alpha
    loss = np.maximum(0, 1 - margins).mean()
    # All slack is used: Lhat = nu / g. The returned w is wbar / g, hence of norm <= 1 / g.
    assert loss == pytest.approx(nu / solver.margin_, rel=1e-9)
    assert np.sqrt(alpha @ margins) <= 1 / solver.margin_ * (1 + 1e-9)
    # SBP12 Lemma 2.1, with equality for the loss.
    gap = 1 / norm - solver.margin_
    optimal_loss = np.maximum(0, 1 - task.Q @ best.alpha).mean()
    assert loss == pytest.approx(optimal_loss / (1 - gap * norm), rel=1e-6)
    assert np.sqrt(alpha @ margins) <= norm / (1 - gap * norm) * (1 + 1e-6)


@pytest.mark.parametrize("nu", [1e-4, 0.02, 0.3])
@pytest.mark.parametrize("epochs", [1, 4])
def test_all_slack_is_used(task, nu, epochs, alpha_of):
    solver = SBP(**task.params, nu=nu, max_epochs=epochs, dtype="float64", random_state=9)
    solver.fit(task.X, task.y)
    margins = task.Q @ alpha_of(solver.model_, task.y)
    if solver.margin_ > 0:
        assert np.maximum(0, 1 - margins).mean() == pytest.approx(nu / solver.margin_, rel=1e-9)
    else:
        # No level to divide by: the plain average, whose level the margin is.
        assert level_by_sorting(margins, task.n * nu) == pytest.approx(solver.margin_, abs=1e-9)


def test_without_slack_it_finds_the_hard_margin(separable_task, solve_dual):
    task = separable_task
    hard = solve_dual(task.Q, task.y, None)
    solver = SBP(**task.params, nu=0.0, max_epochs=500, dtype="float64", random_state=0)
    solver.fit(task.X, task.y)
    assert 0.97 <= solver.margin_ * np.sqrt(hard.squared_norm) <= 1 + 1e-7
    assert (task.y * solver.decision_function(task.X)).min() == pytest.approx(1.0, rel=1e-9)


def test_without_slack_on_inseparable_points_the_average_stays_unscaled(linear_task):
    solver = SBP(**linear_task.params, nu=0.0, max_epochs=2, random_state=0)
    solver.fit(linear_task.X, linear_task.y)
    assert solver.margin_ <= 0
    scores = solver.decision_function(linear_task.X)
    assert np.isfinite(scores).all()
    assert (linear_task.y * scores).min() == pytest.approx(solver.margin_, rel=1e-5)
    assert solver.model_.squared_norm() <= 1 + 1e-6


def test_float32_is_close_to_float64(task):
    scores = [
        SBP(**task.params, nu=0.05, max_epochs=20, dtype=dtype, random_state=10)
        .fit(task.X, task.y)
        .decision_function(task.X)
        for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=0.02 * np.abs(scores[1]).max())


def test_the_cache_changes_the_cost_but_not_the_result(task):
    fits = [
        SBP(**task.params, cache_size=size, max_epochs=3, random_state=0).fit(task.X, task.y)
        for size in (0.0, 0.01, 200.0)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.dual_coef_, fits[0].dual_coef_)
        assert fit.counters_.kernel_evals == fits[0].counters_.kernel_evals
    computed = [fit.counters_.kernel_evals_computed for fit in fits]
    assert computed[0] == fits[0].counters_.kernel_evals
    assert computed[0] >= computed[1] >= computed[2]
    assert computed[2] <= task.n * (task.n + 1)


def test_points_without_any_norm_are_refused():
    with pytest.raises(ValueError, match=r"every k\(x, x\) is 0"):
        SBP("linear").fit(np.zeros((4, 2)), [0, 1, 0, 1])


@pytest.mark.parametrize("nu", [-0.1, np.nan, np.inf, None, "reference"])
def test_nu_out_of_range_is_refused(rbf_task, nu):
    with pytest.raises(ValueError, match="nu must be a number >= 0, got"):
        SBP(nu=nu).fit(rbf_task.X, rbf_task.y)
