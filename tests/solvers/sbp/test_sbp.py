"""SBP against a literal twin of its Algorithm 1, its invariants, and SMO's optimum."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from marginbench.solvers import SBP, KernelOracle
from marginbench.solvers.sbp import sbp as sbp_module
from marginbench.solvers.sbp.holdout import Split

COSTS = [1.0, 10.0, 100.0]


@pytest.fixture(scope="module")
def tied_task():
    """Points on a coarse grid, many of them twice: responses tie at and around the level."""
    rng = np.random.default_rng(11)
    y = np.where(np.arange(90) % 2, 1.0, -1.0)
    X = np.round(rng.standard_normal((90, 2)) + 0.5 * y[:, None])
    squared = np.square(X[:, None] - X).sum(axis=2)
    return Task(y, np.exp(-0.5 * squared))


class Task(NamedTuple):
    y: np.ndarray
    K: np.ndarray

    @property
    def n(self):
        return len(self.y)


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
    """Uniform indices, one after the other."""
    while True:
        yield from rng.integers(n, size=1000).tolist()


def twin(K, y, nu, T, rng, *, ties="le", burn_in=0):
    """SBP12 Algorithm 1, draw by draw."""
    n = len(y)
    draws = covered_draws(np.random.default_rng(rng), n)
    eta0 = 1 / np.sqrt(np.diag(K).max())
    alpha, c, r2 = np.zeros(n), np.zeros(n), 0.0
    alpha_sum, c_sum, counts = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(1, T + 1):
        level = level_by_sorting(c, n * nu)
        covered = c <= level
        if ties == "lt":
            covered = c < level if (c < level).any() else c == c.min()
        i = next(j for j in draws if covered[j])
        eta = eta0 / np.sqrt(t)
        r2 = r2 + 2 * eta * c[i] + eta**2 * K[i, i]
        alpha[i] += eta
        c += eta * y[i] * y * K[i]
        if r2 > 1:
            s = 1 / np.sqrt(r2)
            alpha *= s
            c *= s
            r2 = 1.0
        if t > burn_in:
            alpha_sum += alpha
            c_sum += c
        counts[i] += 1
    mean = alpha_sum / (T - burn_in)
    g = level_by_sorting(c_sum / (T - burn_in), n * nu)
    p = counts / T
    bound = np.sqrt(p @ (K * np.outer(y, y)) @ p) + n * nu * p.max()
    return {"alpha": mean / g if g > 0 else mean, "margin": g, "bound": bound}


def slack_rate(task, best):
    """nu = mean hinge / ||w*||, from the reference optimum."""
    hinge = np.maximum(0, 1 - task.Q @ best.alpha)
    return float(hinge.mean() / np.sqrt(best.squared_norm))


@pytest.mark.parametrize("nu", [0.0, 1e-10, 1e-3, 0.02, 0.3])
def test_average_is_the_literal_one(task, nu, alpha_of):
    expected = twin(task.K, task.y, nu, 4 * task.n, rng=1)
    solver = SBP("precomputed", nu=nu, max_epochs=4, dtype="float64", random_state=1)
    solver.fit(task.K, task.y)
    alpha = alpha_of(solver.model_, task.y)
    scale = expected["alpha"].max()
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-10, atol=1e-10 * scale)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10, abs=1e-13)
    assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-10)
    assert solver.validation_errors_ is None
    assert solver.intercept_[0] == 0
    assert solver.status_ == "budget"
    assert solver.n_iter_ == 4 * task.n


@pytest.mark.parametrize("nu", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("burn_in", [0, 7, 200])
@pytest.mark.parametrize("ties", ["le", "lt"])
def test_variants_are_the_literal_ones(nu, burn_in, ties, tied_task, alpha_of):
    task = tied_task
    expected = twin(task.K, task.y, nu, 5 * task.n, 3, ties=ties, burn_in=burn_in)
    solver = SBP("precomputed", nu=nu, ties=ties, burn_in=burn_in, max_epochs=5, dtype="float64")
    solver.set_params(random_state=3).fit(task.K, task.y)
    alpha = alpha_of(solver.model_, task.y)
    scale = expected["alpha"].max()
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-10, atol=1e-10 * scale)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-10, abs=1e-13)
    assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-10)


def test_without_water_both_tie_rules_draw_the_lowest_points(tied_task):
    le, lt = (
        SBP("precomputed", nu=0.0, ties=ties, max_epochs=3, dtype="float64", random_state=0).fit(
            tied_task.K, tied_task.y
        )
        for ties in ("le", "lt")
    )
    np.testing.assert_array_equal(le.dual_coef_, lt.dual_coef_)


def test_draws_that_cancel_give_an_upper_bound_of_0():
    X, y = np.ones((2, 1)), np.array([1, -1])
    with pytest.warns(ConvergenceWarning, match="the certified gap is inf of its upper bound"):
        solver = SBP("linear", nu=0.0, tol=0.1, max_epochs=1, random_state=0).fit(X, y)
    assert solver.certificate_ == 0
    assert solver.status_ == "budget"


def test_until_the_burn_in_is_over_the_model_is_the_last_iterate(rbf_task, recording_monitor):
    task = rbf_task
    monitor = recording_monitor(stop_after=30)
    late = SBP(**task.params, nu=0.02, burn_in=100, dtype="float64", random_state=4)
    late.fit(task.X, task.y, monitor=monitor)
    alphas = [np.zeros(task.n) for _ in monitor.snapshots]
    for alpha, model in zip(alphas, monitor.snapshots, strict=True):
        alpha[model.support] = model.coef
    # Each differs from the one before at the drawn point, and by a factor elsewhere.
    for before, after in pairwise(alphas[4:]):
        kept = (before != 0) & (after != 0)
        ratios = after[kept] / before[kept]
        assert np.sum(np.abs(ratios / np.median(ratios) - 1) > 1e-9) <= 1


def test_a_burn_in_that_leaves_nothing_is_refused(rbf_task):
    with pytest.raises(ValueError, match="burn_in=300 leaves none of the 300 iterations"):
        SBP(max_epochs=2, burn_in=300).fit(rbf_task.X, rbf_task.y)


def test_computed_kernels_lead_to_the_same_average(task, alpha_of):
    expected = twin(task.K, task.y, 0.01, 3 * task.n, rng=2)
    solver = SBP(**task.params, nu=0.01, max_epochs=3, dtype="float64", random_state=2)
    alpha = alpha_of(solver.fit(task.X, task.y).model_, task.y)
    np.testing.assert_allclose(alpha, expected["alpha"], rtol=1e-9, atol=1e-10)


def test_one_row_an_iteration_whatever_is_rejected(task):
    solver = SBP(**task.params, nu=1e-6, max_epochs=4, random_state=3).fit(task.X, task.y)
    diagonal = 0 if task.params["kernel"] == "rbf" else task.n
    assert solver.counters_.kernel_evals == 4 * task.n * task.n + diagonal
    assert solver.counters_.kernel_evals_computed <= task.n * task.n + diagonal


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
            **task.params, nu=nu, max_epochs=epochs, dtype="float64", random_state=seed
        ).fit(task.X, task.y)
        assert solver.margin_ <= optimal_margin * (1 + 1e-7)
        assert optimal_margin <= solver.certificate_ * (1 + 1e-7)


def test_it_stops_when_the_certified_gap_is_small(rbf_task):
    task, nu, tol = rbf_task, 0.05, 0.5
    solver = SBP(**task.params, nu=nu, tol=tol, max_epochs=500, dtype="float64", random_state=7)
    solver.fit(task.X, task.y)
    assert solver.status_ == "converged"
    assert solver.n_iter_ % task.n == 0
    assert solver.certificate_ - solver.margin_ <= tol * solver.certificate_
    epochs = solver.n_iter_ // task.n
    assert epochs > 1, "choose a smaller tolerance: nothing to see before the stop"
    before = twin(task.K, task.y, nu, (epochs - 1) * task.n, rng=7)
    assert before["bound"] - before["margin"] > tol * before["bound"]


def test_it_checks_as_often_as_it_is_told(rbf_task):
    task = rbf_task
    params = {**task.params, "nu": 0.05, "tol": 0.5, "dtype": "float64", "random_state": 7}
    fits = [
        SBP(**params, check_every=every, max_epochs=500).fit(task.X, task.y)
        for every in (0.1, 1.0, 7.0)
    ]
    assert [fit.n_iter_ % period for fit, period in zip(fits, (15, 150, 1050), strict=True)] == [
        0,
        0,
        0,
    ]
    assert fits[0].n_iter_ < fits[1].n_iter_ < fits[2].n_iter_
    assert {fit.status_ for fit in fits} == {"converged"}


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
    assert 1 - 1e-7 <= solver.certificate_ * norm <= 1.25

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


def holdout_errors(task, split, nu, epochs, rng):
    """The held-out error of the twin's average after each of these epochs of training points."""
    train, held_out = split.order[: split.n_train], split.order[split.n_train :]
    K = task.K[np.ix_(train, train)]
    errors = []
    for epoch in epochs:
        state = np.random.default_rng(0)
        state.bit_generator.state = rng
        fit = twin(K, task.y[train], nu, epoch * split.n_train, state)
        scores = task.K[np.ix_(held_out, train)] @ (fit["alpha"] * task.y[train])
        errors.append(np.mean((scores > 0) != (task.y[held_out] > 0)))
    return errors, fit


def test_held_out_points_are_not_trained_on(rbf_task, alpha_of):
    task, nu, epochs = rbf_task, 0.05, 6
    rng = np.random.default_rng(12)
    split = Split(task.y, 0.2, rng)
    errors, expected = holdout_errors(
        task, split, nu, range(1, epochs + 1), rng.bit_generator.state
    )
    solver = SBP("precomputed", nu=nu, validation_fraction=0.2, patience=100, max_epochs=epochs)
    solver.set_params(dtype="float64", random_state=12).fit(task.K, task.y)
    alpha = alpha_of(solver.model_, task.y)
    train, held_out = split.order[: split.n_train], split.order[split.n_train :]
    np.testing.assert_array_equal(alpha[held_out], 0)
    np.testing.assert_allclose(alpha[train], expected["alpha"], rtol=1e-9, atol=1e-9)
    assert solver.margin_ == pytest.approx(expected["margin"], rel=1e-9)
    assert solver.certificate_ == pytest.approx(expected["bound"], rel=1e-9)
    np.testing.assert_allclose(solver.validation_errors_, errors, atol=1e-12)
    assert solver.n_iter_ == epochs * split.n_train
    # The rows run over the held-out points as well.
    assert solver.counters_.kernel_evals == solver.n_iter_ * task.n + task.n
    predicted = solver.predict(task.K[held_out])
    assert np.mean(predicted != task.y[held_out]) == solver.validation_errors_[-1]


def test_it_stops_when_the_held_out_error_has_stabilised(rbf_task):
    task = rbf_task
    solver = SBP(**task.params, nu=0.05, validation_fraction=0.3, patience=4, check_every=0.5)
    solver.set_params(max_epochs=400, random_state=13).fit(task.X, task.y)
    assert solver.status_ == "converged"
    errors = solver.validation_errors_
    n_train = task.n - round(0.3 * 75) * 2
    assert solver.n_iter_ == len(errors) * round(n_train / 2)
    assert len(errors) - 1 - errors.argmin() == 4
    for check in range(len(errors) - 1):
        assert check - errors[: check + 1].argmin() < 4


def test_a_held_out_part_that_cannot_be_is_refused(rbf_task):
    task = rbf_task
    with pytest.raises(ValueError, match=r"validation_fraction must be below 1, got 1\.0"):
        SBP(validation_fraction=1.0).fit(task.X, task.y)
    with pytest.raises(ValueError, match=r"validation_fraction=0\.001 holds out none of 150"):
        SBP(validation_fraction=0.001).fit(task.X, task.y)


class SlowKernel:
    """A linear kernel that counts every entry it evaluates."""

    def __init__(self):
        self.count = 0

    def __call__(self, A, B):
        self.count += len(A) * len(B)
        return A @ B.T


def test_the_evaluations_of_checks_are_counted_apart(linear_task):
    task, kernel = linear_task, SlowKernel()
    solver = SBP(kernel, nu=0.1, drift_check=60, cache_size=0, max_epochs=3, random_state=14)
    solver.fit(task.X, task.y)
    assert solver.counters_.kernel_evals == 3 * task.n * task.n + task.n
    assert kernel.count == solver.counters_.kernel_evals_computed
    assert kernel.count == solver.counters_.kernel_evals + solver.drift_evals_
    assert 10 * 32 < solver.drift_evals_ <= 10 * 32 * task.n
    assert 0 < solver.drift_ < 1e-5


@pytest.mark.parametrize("bias", [False, True])
def test_checks_change_neither_draws_nor_what_is_charged(task, bias):
    fits = [
        SBP(**task.params, nu=0.02, fit_intercept=bias, drift_check=every, random_state=15)
        .set_params(dtype="float64", max_epochs=3)
        .fit(task.X, task.y)
        for every in (None, 17, 100)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.dual_coef_, fits[0].dual_coef_)
        computed = fit.counters_.kernel_evals_computed - fit.drift_evals_
        assert replace(fit.counters_, kernel_evals_computed=computed) == fits[0].counters_
        assert fit.drift_ < 1e-12
    assert (fits[0].drift_, fits[0].drift_evals_) == (0, 0)


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_drifted_responses_are_found_and_replaced(rbf_task, monkeypatch, fraction):
    task = rbf_task
    checked = []

    class Shaken(sbp_module._Run):
        def check_drift(self):
            if not checked:
                self.path.responses += 1e-3
                self.path.squared_norm *= 0.9
            super().check_drift()
            order = np.arange(task.n) if self.split.order is None else self.split.order
            alpha = self.path.alpha()
            fresh = task.Q[np.ix_(order, order)] @ alpha
            checked.append(np.abs(fresh - self.path.responses).max())
            assert self.path.squared_norm == pytest.approx(alpha @ fresh, rel=1e-9)

    monkeypatch.setattr(sbp_module, "_Run", Shaken)
    solver = SBP(**task.params, nu=0.02, drift_check=100, validation_fraction=fraction)
    solver.set_params(max_epochs=3, dtype="float64", random_state=16).fit(task.X, task.y)
    assert solver.drift_ == pytest.approx(1e-3, rel=1e-6)
    assert len(checked) == solver.n_iter_ // 100
    assert max(checked) < 1e-12


@pytest.mark.parametrize(
    ("sampling", "averaging", "n", "dtype", "cache_size"),
    [
        ("pair", "suffix", 1100, "float32", 0.5),
        ("single", "all", 300, "float64", 9.0),
        pytest.param("pair", "all", 1100, "float32", 0.0, marks=pytest.mark.slow),
        pytest.param("single", "suffix", 1100, "float32", 0.5, marks=pytest.mark.slow),
    ],
)
def test_compiled_iterations_are_those_one_by_one(
    sampling, averaging, n, dtype, cache_size, monkeypatch, recording_monitor
):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    X = (rng.standard_normal((n, 500)) + 0.1 * y[:, None]).astype(np.float32)
    solver = SBP(nu=0.02, gamma=0.001, fit_intercept=True, sampling=sampling, averaging=averaging)
    solver.set_params(dtype=dtype, cache_size=cache_size, burn_in=7, random_state=1, max_epochs=2)
    solver.set_params(drift_check=170)
    (fast, seen), (plain, expected) = (
        (SBP(**solver.get_params()).fit(X, y, monitor=monitor), monitor)
        for monitor in turns(monkeypatch, recording_monitor, every=60.5 * n)
    )
    np.testing.assert_array_equal(fast.dual_coef_, plain.dual_coef_)
    assert fast.intercept_ == plain.intercept_
    assert fast.margin_ == plain.margin_
    assert fast.certificate_ == plain.certificate_
    # Rows are asked for, computed and forgotten in the same order.
    assert fast.counters_ == plain.counters_
    assert seen.iterations == expected.iterations
    assert seen.evals == expected.evals
    # After many iterations it is asked once.
    assert len(seen.evals_asked) < len(expected.evals_asked)


def turns(monkeypatch, recording_monitor, every):
    """A monitor for a run with stored rows, and one for a run without."""
    yield recording_monitor(every=every)
    monkeypatch.setattr(KernelOracle, "stored", None)
    yield recording_monitor(every=every)
