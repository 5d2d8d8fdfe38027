"""Merging two points: every way to find the best merge against brute force and explicit norms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbench.solvers.budget import Merging, merge_tables
from marginbench.solvers.budget.pairs import (
    best_weight,
    degradation,
    golden_weight,
    interpolated,
    merged_coefficient,
)

SAME_SIGN = [(r, k) for r in (1e-6, 0.1, 0.5, 0.93, 1.0) for k in (1e-9, 0.05, 0.2, 0.6, 0.95, 1.0)]
OPPOSITE = [(-r, k) for r in (1e-4, 0.1, 0.5) for k in (1e-9, 0.05, 0.3, 0.7)]


def loss(t, r, kappa):
    """||phi_heavy + r phi_light - c phi(z)||^2 with the best c, straight from the definition."""
    c = kappa ** (t * t) + r * kappa ** ((1 - t) ** 2)
    return 1 + r * r + 2 * r * kappa - c * c


def least_loss(r, kappa):
    """By brute force, refined around the best of a fine grid."""
    low, high = (0.0, 1.0) if r >= 0 else (-5.0, 0.0)
    for _ in range(4):
        t = np.linspace(low, high, 20_001)
        best = t[np.argmin(loss(t, r, kappa))]
        width = (high - low) / 20_000
        low, high = max(best - width, low), min(best + width, high)
    return float(loss(best, r, kappa)), float(best)


@pytest.mark.parametrize(("r", "kappa"), [*SAME_SIGN, *OPPOSITE])
def test_all_searches_find_the_weight_that_loses_least(r, kappa):
    log_kappa = math.log(kappa)
    weight = best_weight(r, log_kappa)
    expected, _ = least_loss(r, kappa)
    assert loss(weight, r, kappa) <= expected + 1e-14
    assert degradation(weight, r, log_kappa) == pytest.approx(expected, abs=1e-14)
    if r == 1.0 and kappa < math.exp(-2):
        return  # two optima, one the mirror of the other
    if kappa == 1.0:
        return  # every weight is as good as any other
    # Near the optimum, values of the function do not tell nearer points apart.
    rounding = math.sqrt(2e-15 / (abs(r) * -log_kappa))
    for tolerance in (0.01, 1e-10):
        found = golden_weight(r, log_kappa, tolerance)
        assert found == pytest.approx(weight, abs=0.5 * tolerance + min(rounding, 0.02))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_coefficient_and_loss_are_those_of_explicit_points(sign):
    rng = np.random.default_rng(0)
    for _ in range(50):
        heavy, light = rng.standard_normal((2, 3))
        beta = np.array([2.0, sign * rng.uniform(0, 2.0)])
        r, log_entry = beta[1] / beta[0], -((heavy - light) ** 2).sum()
        t = best_weight(r, log_entry)
        z = heavy + t * (light - heavy)
        points = np.array([heavy, light, z])
        K = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
        c = beta[0] * merged_coefficient(t, r, log_entry)
        assert c == pytest.approx(beta @ K[:2, 2], rel=1e-12)
        difference = np.array([*beta, -c])
        lost = beta[0] ** 2 * degradation(t, r, log_entry)
        assert lost == pytest.approx(difference @ K @ difference, abs=1e-13)


def test_no_point_off_the_line_is_better():
    rng = np.random.default_rng(1)
    heavy, light, r = np.zeros(2), np.array([1.0, 0.0]), 0.6
    t = best_weight(r, -1.0)
    best = np.exp(-(t**2)) + r * np.exp(-((1 - t) ** 2))
    z = rng.uniform(-1, 2, (20_000, 2))
    values = np.exp(-((z - heavy) ** 2).sum(1)) + r * np.exp(-((z - light) ** 2).sum(1))
    assert values.max() <= best


@pytest.mark.parametrize("same_sign", [True, False])
def test_tables_hold_what_precise_golden_section_finds(same_sign):
    grid = 21
    tables = merge_tables(grid, same_sign)
    ratios = np.linspace(0 if same_sign else -1, 1, grid if same_sign else 2 * grid - 1)
    kappas = np.linspace(0, 1, grid)
    assert tables.lowest == ratios[0]
    assert tables.costs.shape == (len(ratios), grid)
    for a, r in enumerate(ratios):
        for b, kappa in enumerate(kappas):
            if r == 0 or kappa == 0 or (r == -1 and kappa > 0.3):
                # At r = -1 the optimum leaves the interval that golden section searches.
                continue
            weight = golden_weight(r, math.log(kappa), 1e-10)
            cost = max(loss(weight, r, kappa), 0.0) / r**2
            assert tables.costs[a, b] * (1 - kappa) ** 2 == pytest.approx(cost, abs=2e-7)
    np.testing.assert_allclose(tables.costs[-1, -1], 0.5)


def test_interpolated_costs_are_close_between_the_nodes():
    tables = merge_tables(100, True)
    rng = np.random.default_rng(2)
    errors = []
    for m, kappa in rng.uniform([0.5, 0.0], 1.0, (3000, 2)):
        r = (1 - m) / m
        cost = interpolated(tables.costs, r * 99, kappa * 99) * (1 - kappa) ** 2
        # In the units of the sum of both coefficients.
        errors.append(abs(cost * r**2 - least_loss_fast(r, kappa)) / (1 + r) ** 2)
    assert np.mean(errors) < 2e-5
    assert max(errors) < 1e-3


def test_interpolated_costs_keep_their_digits_for_close_points():
    tables = merge_tables(100, True)
    for r in (0.05, 0.4, 0.9, 1.0):
        for exponent in (1e-6, 1e-4, 1e-3, 1e-2, 0.1):
            cost = interpolated(tables.costs, r * 99, math.exp(-exponent) * 99)
            cost *= math.expm1(-exponent) ** 2
            exact = degradation(best_weight(r, -exponent), r, -exponent) / r**2
            assert cost == pytest.approx(exact, rel=2e-3)


def least_loss_fast(r, kappa):
    return loss(best_weight(r, math.log(kappa)), r, kappa)


def test_tables_are_shared_and_cannot_be_written_to():
    tables = merge_tables(21, True)
    assert merge_tables(21, True) is tables
    with pytest.raises(ValueError, match="read-only"):
        tables.costs[0, 0] = 1.0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("search", "gold"), ("tolerance", 0.0), ("grid", 1)],
)
def test_a_strategys_parameter_out_of_range_is_named(parameter, value):
    with pytest.raises(ValueError, match=parameter) as failure:
        Merging(**{parameter: value}).check()
    assert repr(value) in str(failure.value)
