"""Solvers against each other: one optimum, certificates that bracket it, equal paths and counts."""

from __future__ import annotations

import numpy as np
import pytest

from marginbench.solvers import (
    SDCA,
    SMO,
    LinearPegasos,
    Pegasos,
)
from marginbench.solvers.numeric.counters import SERVED
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


@pytest.mark.parametrize("C", COSTS)
def test_dual_methods_and_the_interior_point_agree(task, C, optimum):
    best = optimum(task, C).value
    common = {**task.params, **EXACT, "C": C}
    fits = [
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


@pytest.mark.parametrize("C", COSTS)
def test_linear_pegasos_of_single_points_is_the_kernel_method(linear_task, C):
    task = linear_task
    linear = LinearPegasos(C=C, projection=False, random_state=4).fit(task.X, task.y)
    for strategy in ("maintained", "on_demand"):
        kernel = Pegasos("linear", C=C, strategy=strategy, random_state=4, **EXACT)
        kernel.fit(task.X, task.y)
        coef = coefficients(kernel.model_, task.n)
        np.testing.assert_allclose(linear.coef_[0], task.X.T @ coef, rtol=0, atol=1e-9 * C)


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
