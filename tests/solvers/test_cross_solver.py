"""Solvers against each other: one optimum, certificates that bracket it, equal paths and counts."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import (
    SBP,
    SDCA,
    SGD,
    SMO,
    BatchPerceptron,
    LinearPegasos,
    LinearSDCA,
    Pegasos,
    Perceptron,
    RandomFourierMap,
)
from marginbench.solvers.numeric.counters import SERVED
from marginbench.solvers.numeric.water_level import water_level
from marginbench.solvers.registration import registry
from marginbench.solvers.sbp.two_basins import two_basin_level

# lambda n = 1, 0.1, 0.01 with C = 1 / (lambda n).
COSTS = [1.0, 10.0, pytest.param(100.0, marks=pytest.mark.slow)]
EXACT = {"dtype": "float64"}


def primal(task, coef, C):
    """1/2 ||w||^2 + C sum hinge of w = sum coef_i Phi_i, from the Gram matrix alone."""
    scores = task.K @ coef
    return 0.5 * coef @ scores + C * np.maximum(0, 1 - task.y * scores).sum()


def coefficients(model, n):
    coef = np.zeros(n)
    coef[model.support] = model.coef
    return coef


def slack_rate(task, best):
    """nu = mean hinge loss / ||w*||."""
    margins = task.Q @ best.alpha
    return np.maximum(0, 1 - margins).mean() / np.sqrt(best.squared_norm)


# T1: one optimum


@pytest.mark.parametrize("C", COSTS)
def test_dual_methods_and_the_interior_point_agree(task, C, optimum):
    best = optimum(task, C).value
    common = {**task.params, **EXACT, "C": C}
    fits = [
        SMO(**common, tol=1e-10),
        SDCA(**common, tol=2e-8, max_epochs=40_000, random_state=0),
        SDCA(**common, tol=2e-8, order="iid", max_epochs=40_000, random_state=1),
        SDCA(
            **common, tol=1e-6, stopping="gradient", shrinking=True, max_epochs=40_000,
            random_state=2,
        ),
    ]  # fmt: skip
    for solver in fits:
        solver.fit(task.X, task.y)
        assert solver.status_ == "converged"
        value = primal(task, coefficients(solver.model_, task.n), C)
        assert best * (1 - 1e-9) <= value <= best * (1 + 1e-6)


@pytest.mark.parametrize("C", COSTS)
def test_linear_and_kernel_methods_have_one_optimum(linear_task, C, optimum):
    task = linear_task
    best = optimum(task, C).value
    for parameters in (
        {"stopping": "gap", "tol": 2e-8},
        {"stopping": "gradient", "tol": 1e-6},
        {"stopping": "gap", "tol": 2e-8, "order": "iid", "shrinking": False},
    ):
        solver = LinearSDCA(C=C, max_epochs=40_000, random_state=0, **parameters)
        w = solver.fit(task.X, task.y).coef_[0]
        assert solver.status_ == "converged"
        value = 0.5 * w @ w + C * np.maximum(0, 1 - task.y * (task.X @ w)).sum()
        assert best * (1 - 1e-9) <= value <= best * (1 + 1e-6)


@pytest.mark.parametrize("C", [0.5, 10.0])
def test_weighted_optima_agree(task, C, solve_dual):
    weights = np.random.default_rng(0).integers(0, 4, size=task.n).astype(float)
    kept = np.repeat(np.arange(task.n), weights.astype(int))
    best = solve_dual(task.Q[np.ix_(kept, kept)], task.y[kept], C).value
    common = {**task.params, **EXACT, "C": C}
    for solver in (
        SMO(**common, tol=1e-10),
        SDCA(**common, tol=1e-8, max_epochs=40_000, random_state=0),
        SDCA(
            **common, tol=1e-6, stopping="gradient", shrinking=True, max_epochs=40_000,
            random_state=0,
        ),
    ):  # fmt: skip
        solver.fit(task.X, task.y, sample_weight=weights)
        coef = coefficients(solver.model_, task.n)
        scores = task.K @ coef
        loss = weights @ np.maximum(0, 1 - task.y * scores)
        assert 0.5 * coef @ scores + C * loss == pytest.approx(best, rel=1e-6)
        assert (coef[weights == 0] == 0).all()


# T2: SMO's optimum is that of the slack-constrained problem


@pytest.mark.parametrize("C", COSTS)
def test_the_optimum_reaches_the_water_level_of_its_norm(task, C, optimum):
    best = optimum(task, C)
    norm = np.sqrt(best.squared_norm)
    nu = slack_rate(task, best)
    level = water_level(task.Q @ best.alpha / norm, task.n * nu, 0.0)
    assert level == pytest.approx(1 / norm, rel=1e-6)


@pytest.mark.parametrize("C", COSTS)
def test_the_optimum_with_bias_reaches_the_level_of_two_basins(rbf_task, C):
    task = rbf_task
    solver = SMO(**task.params, **EXACT, C=C, fit_intercept=True, tol=1e-10).fit(task.X, task.y)
    coef, bias = coefficients(solver.model_, task.n), solver.intercept_[0]
    scores = task.K @ coef
    norm = np.sqrt(coef @ scores)
    loss = np.maximum(0, 1 - task.y * (scores + bias))
    gap = norm**2 + C * loss.sum() - np.abs(coef).sum()
    assert gap <= 1e-6 * (0.5 * norm**2 + C * loss.sum())
    assert abs(coef.sum()) <= 1e-10 * np.abs(coef).sum()
    heights = task.y * scores / norm
    levels = two_basin_level(heights[task.y > 0], heights[task.y < 0], loss.sum() / norm)
    assert levels.level == pytest.approx(1 / norm, rel=1e-7)
    assert levels.bias * norm == pytest.approx(bias, abs=1e-6)


# T3: SBP brackets the optimum and reaches it


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("C", COSTS)
def test_sbp_brackets_and_reaches_the_margin_of_the_optimum(rbf_task, C, bias, optimum):
    task = rbf_task
    best = optimum(task, C, bias=bias)
    norm = np.sqrt(best.squared_norm)
    # The loss is what of the optimal value is not half the squared norm.
    nu = (best.value - 0.5 * best.squared_norm) / C / task.n / norm
    solver = SBP(
        "precomputed", nu=nu, fit_intercept=bias, max_epochs=50_000 // task.n, random_state=0,
        **EXACT,
    ).fit(task.K, task.y)  # fmt: skip
    assert solver.margin_ <= (1 + 1e-9) / norm <= solver.certificate_ * (1 + 2e-9)
    assert solver.margin_ * norm >= 0.97
    scores = task.K @ coefficients(solver.model_, task.n) + solver.intercept_[0]
    # All slack is used: the mean loss of the rescaled w is nu / margin exactly.
    loss = np.maximum(0, 1 - task.y * scores).mean()
    assert loss == pytest.approx(nu / solver.margin_, rel=1e-9)


@pytest.mark.parametrize("C", COSTS)
def test_sgd_in_the_ball_of_the_optimum_approaches_its_loss(rbf_task, C, optimum):
    task = rbf_task
    best = optimum(task, C)
    bound = float(np.sqrt(best.squared_norm))
    solver = SGD(
        "precomputed", norm_bound=bound, max_epochs=100_000 // task.n, random_state=0, **EXACT
    ).fit(task.K, task.y)
    coef = coefficients(solver.model_, task.n)
    assert coef @ task.K @ coef <= bound**2 * (1 + 1e-9)
    loss = np.maximum(0, 1 - task.y * (task.K @ coef)).mean()
    least = np.maximum(0, 1 - task.Q @ best.alpha).mean()
    # Zinkevich: the excess is at most of the order bound * radius / sqrt(T).
    assert -1e-6 <= loss - least <= 3 * bound / np.sqrt(solver.n_iter_)


# T4: Pegasos in all its forms


@pytest.mark.parametrize("C", COSTS)
def test_linear_pegasos_of_single_points_is_the_kernel_method(linear_task, C):
    task = linear_task
    linear = LinearPegasos(C=C, projection=False, random_state=4).fit(task.X, task.y)
    for strategy in ("maintained", "on_demand"):
        kernel = Pegasos("linear", C=C, strategy=strategy, random_state=4, **EXACT)
        kernel.fit(task.X, task.y)
        coef = coefficients(kernel.model_, task.n)
        np.testing.assert_allclose(linear.coef_[0], task.X.T @ coef, rtol=0, atol=1e-9 * C)


# T7: the batch perceptron


def test_the_batch_perceptron_keeps_novikoffs_bound(separable_task):
    task = separable_task
    hard = SMO("linear", C=1e6, tol=1e-10, **EXACT).fit(task.X, task.y)
    coef = coefficients(hard.model_, task.n)
    margin = 1 / np.sqrt(coef @ task.K @ coef)
    radius = np.sqrt(np.diag(task.K).max())
    solver = BatchPerceptron("linear", max_iter=1000 * task.n, **EXACT).fit(task.X, task.y)
    assert solver.status_ == "converged"
    assert solver.n_iter_ <= (radius / margin) ** 2
    assert 0 < solver.margin_ <= margin * (1 + 1e-9)
    close = BatchPerceptron("linear", target_margin=0.9 * margin, max_iter=10_000 * task.n, **EXACT)
    assert close.fit(task.X, task.y).status_ == "converged"
    assert close.margin_ >= 0.9 * margin


def test_the_online_perceptron_keeps_its_mistake_bound(rbf_task, optimum):
    task = rbf_task
    best = optimum(task, 10.0)
    for seed in range(5):
        solver = Perceptron(**task.params, max_epochs=1, random_state=seed, **EXACT)
        solver.fit(task.X, task.y)
        wrong = solver.support_
        loss = np.maximum(0, 1 - (task.Q @ best.alpha)[wrong]).sum()
        norm = np.sqrt(best.squared_norm * np.diag(task.K).max())
        assert solver.n_mistakes_ == len(wrong)
        assert solver.n_mistakes_ <= loss + norm * np.sqrt(loss) + norm**2


# T10: random features


def test_random_features_approach_the_gram_matrix(rbf_task):
    task = rbf_task
    worst = []
    for n_pairs in (100, 1600, 25_600):
        features = RandomFourierMap(n_pairs, gamma=task.params["gamma"], random_state=0)
        F = features.fit_transform(task.X)
        error = np.abs(F @ F.T - task.K)
        np.testing.assert_allclose(np.diag(F @ F.T), 1, rtol=1e-12)
        # Hoeffding over all pairs of points.
        assert error.max() <= 2 * np.sqrt(np.log(task.n**2) / n_pairs)
        worst.append(error.max())
    assert worst[0] > 2 * worst[1] > 4 * worst[2]


# T11: counters, and looks that change nothing


def kernel_methods():
    common = {"C": 1.0, "random_state": 0}
    return {
        "SBP": SBP(nu=0.01, max_epochs=4, random_state=0),
        "SBP with bias": SBP(nu=0.01, fit_intercept=True, max_epochs=4, random_state=0),
        "Pegasos": Pegasos(**common, max_epochs=4),
        "Pegasos on demand": Pegasos(**common, max_epochs=4, strategy="on_demand"),
        "SDCA": SDCA(**common, max_epochs=4, tol=0.0),
        "SGD": SGD(norm_bound=5.0, max_epochs=4, random_state=0),
        "Perceptron": Perceptron(max_epochs=4, random_state=0),
        "BatchPerceptron": BatchPerceptron(max_iter=500),
    }


@pytest.mark.parametrize("name", kernel_methods())
def test_computed_evaluations_are_among_those_asked_for(task, name):
    solver = kernel_methods()[name].set_params(**task.params, dtype="float64")
    for cache_size in (0.0, 0.01, 100.0):
        counters = solver.set_params(cache_size=cache_size).fit(task.X, task.y).counters_
        assert 0 < counters.kernel_evals_computed <= counters.kernel_evals


@pytest.mark.parametrize(
    "name", [name for name, cls in registry().items() if ".peers." not in cls.__module__]
)
def test_one_tally_counts_the_entries_of_every_method(rbf_task, name):
    asked, computed = SERVED.asked, SERVED.computed
    solver = registry()[name]()
    if "kernel" in solver.get_params():
        solver.set_params(kernel="rbf", gamma=0.5)
    solver.fit(rbf_task.X, rbf_task.y)
    counters = solver.counters_
    assert counters.kernel_evals == SERVED.asked - asked
    assert counters.kernel_evals_computed == SERVED.computed - computed


@pytest.mark.parametrize("name", kernel_methods())
def test_looks_and_repetition_change_nothing(rbf_task, name, recording_monitor):
    task = rbf_task
    solver = kernel_methods()[name].set_params(**task.params)
    alone = solver.fit(task.X, task.y).model_
    counters = solver.counters_
    paths = []
    for _ in range(2):
        monitor = recording_monitor(every=task.n)
        watched = solver.fit(task.X, task.y, monitor=monitor)
        assert watched.counters_ == counters
        np.testing.assert_array_equal(watched.model_.support, alone.support)
        np.testing.assert_array_equal(watched.model_.coef, alone.coef)
        paths.append(monitor)
    # T12: the same seed gives the same history.
    assert paths[0].evals == paths[1].evals
    assert len(paths[0].evals) > 3
    for first, second in zip(paths[0].snapshots, paths[1].snapshots, strict=True):
        np.testing.assert_array_equal(first.coef, second.coef)


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_sbp_asks_for_a_row_for_each_draw(task, bias):
    solver = SBP(**task.params, nu=0.01, fit_intercept=bias, max_epochs=3, random_state=0)
    solver.fit(task.X, task.y)
    rows = (2 if bias else 1) * solver.n_iter_
    diagonal = 0 if task.params["kernel"] == "rbf" else task.n
    assert solver.counters_.kernel_evals == rows * task.n + diagonal
