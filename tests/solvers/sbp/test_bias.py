"""SBP with an unregularised bias against a literal twin, its invariants, and SMO's optimum."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import SBP, SMO
from marginbench.solvers.sbp.holdout import Split

COSTS = [1.0, 10.0, pytest.param(100.0, marks=pytest.mark.slow)]


def two_basins(c, y, volume):
    """Level, bias and the covered points of each class, by sorting; ties in index order."""
    order = [np.flatnonzero(y == label) for label in (1, -1)]
    order = [members[np.argsort(c[members], kind="stable")] for members in order]
    a, d = (c[members] for members in order)
    k_max = min(len(a), len(d))
    m = a[:k_max] + d[:k_max]
    heights = m - m[0]
    filled = np.arange(k_max) * heights - np.r_[0, np.cumsum(heights)[:-1]]
    k = max(1, int(np.sum(filled < volume)))
    depth = (volume - filled[k - 1]) / k
    room = [
        min(depth, heights[k] - heights[k - 1]) if k < len(heights) else depth for heights in (a, d)
    ]
    u = a[k - 1] + (depth + room[0] - room[1]) / 2
    v = d[k - 1] + (depth - room[0] + room[1]) / 2
    return (u + v) / 2, (v - u) / 2, order[0][:k], order[1][:k]


def candidates(rng, members):
    while True:
        yield from members[rng.integers(len(members), size=1000)].tolist()


def twin(K, y, nu, T, seed, *, sampling="pair", burn_in=0):
    """The algorithm with two basins, draw by draw."""
    n, rng = len(y), np.random.default_rng(seed)
    members = [np.flatnonzero(y > 0), np.flatnonzero(y < 0)]
    if sampling == "pair":
        rngs = [np.random.default_rng(rng.integers(2**63)) for _ in members]
        streams = [candidates(r, points) for r, points in zip(rngs, members, strict=True)]
    else:
        streams = [candidates(rng, np.arange(n))]
    eta0 = 1 / np.sqrt(np.diag(K).max())
    alpha, c, r2 = np.zeros(n), np.zeros(n), 0.0
    alpha_sum, c_sum, counts = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(1, T + 1):
        covered = np.zeros(n, dtype=bool)
        covered[np.concatenate(two_basins(c, y, n * nu)[2:])] = True
        step = eta0 / np.sqrt(t) / len(streams)
        for stream in streams:
            i = next(j for j in stream if covered[j])
            r2 = r2 + 2 * step * c[i] + step**2 * K[i, i]
            alpha[i] += step
            c += step * y[i] * y * K[i]
            counts[i] += 1
        if r2 > 1:
            alpha /= np.sqrt(r2)
            c /= np.sqrt(r2)
            r2 = 1.0
        if t > burn_in:
            alpha_sum += alpha
            c_sum += c
    g, b = two_basins(c_sum / (T - burn_in), y, n * nu)[:2]
    scale = 1 / g if g > 0 else 1.0
    p = np.zeros(n)
    for points in members:
        p[points] = counts[points] / counts[points].sum() / 2
    bound = np.sqrt(p @ (K * np.outer(y, y)) @ p) + n * nu * p.max()
    return {
        "alpha": alpha_sum / (T - burn_in) * scale,
        "bias": b * scale,
        "margin": g,
        "bound": bound,
    }


@pytest.fixture(scope="module")
def optimum_with_bias():
    """``solve(task, C)``: SMO's optimum, with ||w*||, nu and the bias."""

    def solve(task, C):
        smo = SMO("precomputed", C=C, fit_intercept=True, dtype="float64", tol=1e-10)
        smo.fit(task.K, task.y)
        alpha = np.zeros(task.n)
        alpha[smo.support_] = smo.dual_coef_[0] * task.y[smo.support_]
        norm = np.sqrt(alpha @ task.Q @ alpha)
        loss = np.maximum(0, 1 - task.Q @ alpha - task.y * smo.intercept_[0]).mean()
        return norm, loss / norm, float(smo.intercept_[0])

    return solve


def fit(task, **params):
    return SBP("precomputed", fit_intercept=True, dtype="float64", **params).fit(task.K, task.y)


@pytest.mark.parametrize("nu", [0.0, 1e-10, 1e-3, 0.02, 0.3])
@pytest.mark.parametrize("sampling", ["pair", "single"])
def test_average_and_bias_are_the_literal_ones(task, nu, sampling, alpha_of):
    expected = twin(task.K, task.y, nu, 2 * task.n, 1, sampling=sampling, burn_in=30)
    solver = fit(task, nu=nu, sampling=sampling, burn_in=30, max_epochs=2, random_state=1)
    alpha = alpha_of(solver.model_, task.y)
    scale = expected["alpha"].max()
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-10, atol=1e-10 * scale)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10, abs=1e-13)
    assert solver.intercept_[0] == pytest.approx(expected["bias"], rel=1e-9, abs=1e-11)
    assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-10)


@pytest.mark.parametrize("positives", [3, 147])
def test_a_small_class_is_covered_as_a_whole(rbf_task, positives, alpha_of):
    task = rbf_task
    y = np.where(np.argsort(np.argsort(task.X[:, 0])) >= task.n - positives, 1.0, -1.0)
    expected = twin(task.K, y, 0.3, 3 * task.n, 2)
    solver = SBP(
        "precomputed", nu=0.3, fit_intercept=True, max_epochs=3, dtype="float64", random_state=2
    ).fit(task.K, y)
    np.testing.assert_allclose(alpha_of(solver.model_, y), expected["alpha"], rtol=1e-9, atol=1e-9)
    assert solver.intercept_[0] == pytest.approx(expected["bias"], rel=1e-9)


@pytest.mark.parametrize("nu", [1e-6, 0.02])
def test_the_coefficients_of_both_classes_balance(task, nu, recording_monitor):
    monitor = recording_monitor()
    solver = SBP(**task.params, nu=nu, fit_intercept=True, burn_in=50, random_state=3)
    solver.set_params(max_epochs=2).fit(task.X, task.y, monitor=monitor)
    # Burn-in: these are iterates, later ones averages; all of them balance.
    for model in [*monitor.snapshots, solver.model_]:
        assert abs(model.coef.sum()) <= 1e-12 * np.abs(model.coef).sum()


def test_rows_are_counted(task):
    diagonal = 0 if task.params["kernel"] == "rbf" else task.n
    for sampling, rows in (("pair", 2), ("single", 1)):
        solver = SBP(**task.params, nu=1e-6, fit_intercept=True, sampling=sampling, max_epochs=4)
        solver.set_params(random_state=3).fit(task.X, task.y)
        assert solver.counters_.kernel_evals == rows * 4 * task.n * task.n + diagonal
        assert solver.counters_.kernel_evals_computed <= task.n * task.n + diagonal


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("sampling", ["pair", "single"])
def test_weak_duality_brackets_the_optimum(task, C, sampling, optimum_with_bias):
    norm, nu, _ = optimum_with_bias(task, C)
    for epochs in (1, 8):
        solver = fit(task, nu=nu, sampling=sampling, max_epochs=epochs, random_state=4)
        assert solver.margin_ <= (1 + 1e-7) / norm <= solver.certificate_ * (1 + 2e-7)


@pytest.mark.parametrize("C", COSTS)
def test_long_runs_reach_the_optimal_margin(rbf_task, C, optimum_with_bias, alpha_of):
    task = rbf_task
    norm, nu, bias = optimum_with_bias(task, C)
    # T = 5e4 iterations, rounded up to whole epochs.
    solver = fit(task, nu=nu, max_epochs=334, random_state=0)
    assert 0.97 <= solver.margin_ * norm <= 1 + 1e-7
    assert 1 - 1e-7 <= solver.certificate_ * norm <= 1.25
    assert solver.intercept_[0] == pytest.approx(bias, abs=0.15)

    alpha = alpha_of(solver.model_, task.y)
    margins = task.Q @ alpha + task.y * solver.intercept_[0]
    loss = np.maximum(0, 1 - margins).mean()
    assert loss == pytest.approx(nu / solver.margin_, rel=1e-9)
    # SBP12 Lemma 2.1, with equality for the loss: nu is L(w*) / ||w*||.
    gap = 1 / norm - solver.margin_
    assert loss == pytest.approx(nu * norm / (1 - gap * norm), rel=1e-6)
    assert np.sqrt(alpha @ task.Q @ alpha) <= norm / (1 - gap * norm) * (1 + 1e-6)


@pytest.mark.parametrize("nu", [1e-4, 0.02, 0.3])
@pytest.mark.parametrize("sampling", ["pair", "single"])
def test_all_slack_is_used(task, nu, sampling, alpha_of):
    solver = fit(task, nu=nu, sampling=sampling, max_epochs=4, random_state=9)
    margins = task.Q @ alpha_of(solver.model_, task.y) + task.y * solver.intercept_[0]
    if solver.margin_ > 0:
        assert np.maximum(0, 1 - margins).mean() == pytest.approx(nu / solver.margin_, rel=1e-9)
    else:
        used = np.maximum(0, solver.margin_ - margins).mean()
        assert used == pytest.approx(nu, rel=1e-9)


def test_without_slack_it_finds_the_hard_margin_with_its_bias(separable_task, solve_dual):
    task = separable_task
    X = task.X + [4.0, -1.0]
    hard = solve_dual((X @ X.T) * np.outer(task.y, task.y), task.y, None, bias=True)
    solver = SBP("linear", nu=0.0, fit_intercept=True, max_epochs=1000, dtype="float64")
    solver.set_params(random_state=0).fit(X, task.y)
    assert 0.97 <= solver.margin_ * np.sqrt(hard.squared_norm) <= 1 + 1e-7
    assert (task.y * solver.decision_function(X)).min() == pytest.approx(1.0, rel=1e-8)


def test_it_stops_when_the_certified_gap_is_small(rbf_task):
    task, tol = rbf_task, 0.4
    solver = fit(task, nu=0.05, tol=tol, max_epochs=500, random_state=7)
    assert solver.status_ == "converged"
    assert solver.certificate_ - solver.margin_ <= tol * solver.certificate_
    epochs = solver.n_iter_ // task.n
    assert epochs > 1, "choose a smaller tolerance: nothing to see before the stop"
    before = twin(task.K, task.y, 0.05, (epochs - 1) * task.n, 7)
    assert before["bound"] - before["margin"] > tol * before["bound"]


def test_the_held_out_error_is_that_of_the_model_with_its_bias(rbf_task):
    task = rbf_task
    y = np.where(task.X[:, 0] > 1.2, 1.0, -1.0)
    solver = SBP("precomputed", nu=0.02, fit_intercept=True, validation_fraction=0.4, patience=3)
    solver.set_params(max_epochs=6, random_state=5).fit(task.K, y)
    split = Split(y, 0.4, np.random.default_rng(5))
    held_out = split.order[split.n_train :]
    error = np.mean(solver.predict(task.K[held_out]) != y[held_out])
    assert solver.validation_errors_[-1] == pytest.approx(error, abs=1e-12)
    assert not np.isin(solver.support_, held_out).any()


def test_float32_is_close_to_float64(task):
    scores = [
        SBP(**task.params, nu=0.05, fit_intercept=True, dtype=dtype, random_state=10)
        .set_params(max_epochs=20)
        .fit(task.X, task.y)
        .decision_function(task.X)
        for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=0.02 * np.abs(scores[1]).max())


def test_the_seed_decides_the_run(rbf_task):
    one, again, other = (fit(rbf_task, max_epochs=3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.dual_coef_, again.dual_coef_)
    assert one.intercept_ == again.intercept_
    assert not np.array_equal(one.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("sampling", ["pair", "single"])
def test_watching_changes_nothing_and_snapshots_stay(rbf_task, sampling, recording_monitor):
    task = rbf_task
    params = {**task.params, "nu": 0.02, "fit_intercept": True, "sampling": sampling}
    alone, watched = (SBP(**params, max_epochs=3, random_state=6) for _ in range(2))
    alone.fit(task.X, task.y)
    monitor = recording_monitor(every=5 * task.n)
    watched.fit(task.X, task.y, monitor=monitor)
    np.testing.assert_array_equal(watched.dual_coef_, alone.dual_coef_)
    assert watched.intercept_ == alone.intercept_
    assert watched.counters_ == alone.counters_
    stopped = recording_monitor(every=5 * task.n, stop_after=7)
    short = SBP(**params, max_epochs=3, random_state=6).fit(task.X, task.y, monitor=stopped)
    assert short.status_ == "stopped"
    for model in (short.model_, stopped.snapshots[6]):
        np.testing.assert_array_equal(monitor.snapshots[6].coef, model.coef)
        assert monitor.snapshots[6].intercept == model.intercept
