"""The weight at which two points are merged, and the tables of what that loses."""

import math

import numpy as np
import pytest

from marginbench.solvers.budget.merging import (
    best_weight,
    degradation,
    golden_weight,
    merge_tables,
)

SAME_SIGN = [(r, k) for r in (1e-6, 0.1, 0.93, 1.0) for k in (1e-9, 0.2, 0.95, 1.0)]
OPPOSITE = [(-r, k) for r in (1e-4, 0.1, 0.5) for k in (1e-9, 0.3, 0.7)]


@pytest.mark.parametrize(("r", "kappa"), [*SAME_SIGN, *OPPOSITE])
def test_all_searches_find_the_weight_that_loses_least(r, kappa, best_loss):
    log_kappa = math.log(kappa)
    weight, expected = best_weight(r, log_kappa), best_loss(np.array([r]), kappa)[0]
    c = kappa ** (weight**2) + r * kappa ** ((1 - weight) ** 2)
    assert 1 + r * r + 2 * r * kappa - c * c <= expected + 1e-14
    assert degradation(weight, r, log_kappa) == pytest.approx(expected, abs=1e-14)
    if kappa == 1.0 or (r == 1.0 and kappa < math.exp(-2)):
        return  # every weight is as good as any other; or an optimum and its mirror
    # Near the optimum, values of the function do not tell nearer points apart.
    rounding = math.sqrt(2e-15 / (abs(r) * -log_kappa))
    for tolerance in (0.01, 1e-10):
        found = golden_weight(r, log_kappa, tolerance)
        assert found == pytest.approx(weight, abs=0.5 * tolerance + min(rounding, 0.02))


@pytest.mark.parametrize("same_sign", [True, False])
def test_tables_hold_what_the_best_merge_loses(same_sign, best_loss):
    tables = merge_tables(21, same_sign)
    ratios = np.linspace(0, 1, 21) if same_sign else np.linspace(-1, 1, 41)
    assert tables.lowest == ratios[0]
    assert tables.costs.shape == (len(ratios), 21)
    r, kappa = np.meshgrid(ratios, np.linspace(0, 1, 21), indexing="ij")
    known = (r != 0) & (kappa != 0)
    expected = best_loss(r[known], kappa[known]) / r[known] ** 2
    found = (tables.costs * (1 - kappa) ** 2)[known]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7)
    np.testing.assert_allclose(tables.costs[-1, -1], 0.5)
