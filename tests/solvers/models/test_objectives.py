"""Objectives: cases computed by hand, and their units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from marginbench.solvers.models import objectives

MARGINS = np.array([2.0, 1.0, 0.25, -1.0])  # hinge losses 0, 0, 0.75, 2


def test_hinge():
    np.testing.assert_array_equal(objectives.hinge(MARGINS), [0, 0, 0.75, 2])


def test_primal_value_in_C_units():
    assert objectives.primal_value(3.0, MARGINS, C=10.0) == 1.5 + 10 * 2.75


def test_dual_value_in_C_units():
    assert objectives.dual_value(np.array([1.0, 0.5]), 3.0) == 1.5 - 1.5


def test_gap_is_primal_minus_dual():
    assert objectives.duality_gap(np.array([1.0, 0.75]), 3.0, MARGINS, C=10.0) == 29.0 - 0.25


def test_lambda_is_the_factor_between_the_units():
    n, C, squared_norm = 4, 10.0, 3.0
    lam = objectives.regularization(C, n)
    assert lam == 1 / 40
    in_lambda_units = lam / 2 * squared_norm + np.mean([0, 0, 0.75, 2])
    assert lam * objectives.primal_value(squared_norm, MARGINS, C) == pytest.approx(in_lambda_units)


def test_objective_at_zero_is_one_in_lambda_units():
    value = objectives.primal_value(0.0, np.zeros(7), C=3.0)
    assert value * objectives.regularization(3.0, 7) == pytest.approx(1.0)


def test_slack_rate():
    assert objectives.slack_rate(4.0, MARGINS) == (2.75 / 4) / 2


@pytest.mark.parametrize("squared_norm", [0.0, -1e-20])
def test_slack_rate_of_the_zero_model_is_refused(squared_norm):
    with pytest.raises(ValueError, match="w = 0"):
        objectives.slack_rate(squared_norm, MARGINS)


@pytest.mark.parametrize(
    ("alpha", "margin", "violation"),
    [
        (0.0, 1.5, 0.0),
        (0.0, 0.5, 0.5),
        (2.0, 0.5, 0.0),
        (2.0, 1.5, 0.5),
        (1.0, 1.0, 0.0),
        (1.0, 0.75, 0.25),
        (1.0, 1.25, 0.25),
    ],
)
def test_kkt_violation_of_one_point(alpha, margin, violation):
    assert objectives.kkt_violation(np.array([alpha]), np.array([margin]), C=2.0) == violation


def test_kkt_violation_is_the_largest():
    alpha, margins = np.array([0.0, 2.0, 1.0]), np.array([0.9, 1.4, 1.2])
    assert objectives.kkt_violation(alpha, margins, C=2.0) == pytest.approx(0.4)


@given(seed=st.integers(0, 10**6), C=st.floats(1e-3, 1e3))
def test_gap_of_a_feasible_alpha_is_never_negative(seed, C):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 3))
    Q = A @ A.T
    alpha = C * np.clip(rng.uniform(-0.5, 1.5, size=8), 0, 1)
    margins = Q @ alpha
    squared_norm = float(alpha @ margins)
    gap = objectives.duality_gap(alpha, squared_norm, margins, C)
    assert gap >= -1e-12 * objectives.primal_value(squared_norm, margins, C)


def test_slack_rate_of_a_short_w_is_a_number():
    assert objectives.slack_rate(0.25, MARGINS) == (2.75 / 4) / 0.5
