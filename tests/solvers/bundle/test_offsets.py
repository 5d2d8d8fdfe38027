"""The best offset: against all breakpoints, with a plane below the risk."""

import numpy as np
import pytest

from marginbench.solvers import (
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Novelty,
    Quantile,
    SquaredHinge,
    minimize_risk,
)
from marginbench.solvers.bundle.offsets import quantile_interval

KINKED = (Hinge, Novelty, Quantile, EpsilonInsensitive)


def random_loss(rng):
    return [
        Hinge(),
        Novelty(rng.choice([1e-3, 1.0])),
        Quantile(rng.choice([1e-6, 0.01, 0.25, 0.5, 0.999])),
        EpsilonInsensitive(rng.choice([0.0, 0.5, 1.0, 50.0])),
        SquaredHinge(),
        Logistic(),
        LeastSquares(),
    ][rng.integers(7)]


def random_case(rng, loss):
    """Few points with many ties, and weights of which some are 0."""
    kinked = isinstance(loss, KINKED)
    n = rng.integers(1 if kinked else 2, 9)
    spread = rng.choice([1e-3, 1.0, 1e3])
    scores, y = spread * rng.integers(-3, 4, n), spread * rng.integers(-3, 4, n)
    if rng.random() < 0.3:
        scores = spread * rng.standard_normal(n)
    weights = rng.integers(0, 3, n).astype(float)
    weights[rng.integers(n)] += 1.0
    if loss.targets == "labels":
        y = rng.choice([-1.0, 1.0], n)
        if not kinked:  # whose risk has a minimum with both labels alone
            y[:2], weights[:2] = (1.0, -1.0), weights[:2] + 0.1
    if rng.random() < 0.3:
        weights *= 10.0 ** rng.integers(-5, 6, n)
    return scores.astype(float), y.astype(float), weights / weights.sum()


def test_the_best_offset_of_the_risk_and_its_plane():
    rng = np.random.default_rng(200)
    for _ in range(350):
        loss = random_loss(rng)
        scores, y, weights = random_case(rng, loss)
        kinked, some = isinstance(loss, KINKED), weights > 0
        value, balanced, b = loss.without_offset(scores, y, weights, 10 * rng.standard_normal())
        size = 1.0 + np.abs(scores).max() + np.abs(y).max() + abs(b)
        there, _ = loss.evaluate(scores + b, y, weights)
        assert value == pytest.approx(there, rel=1e-13, abs=1e-13 * size * kinked)
        assert abs(balanced.sum()) <= (1e-14 if kinked else 1e-13 * size)
        # The plane supports the risk everywhere, at any offset: at the breakpoints of a kinked one.
        rounding = 1e-13 * size * (1.0 if kinked else 1.0 + value)
        move = size * rng.choice([1e-3, 1.0]) * rng.standard_normal(len(y))
        for other in (scores, scores + move):
            offsets = size * rng.standard_normal(6)
            if kinked:
                offsets = np.unique(loss.kinks(y[some])[0] - other[some, None])
            risks = np.array([loss.evaluate(other + offset, y, weights)[0] for offset in offsets])
            assert risks.min() >= value + balanced @ (other - scores) - rounding
            # The middle of the best offsets, or the end of a half-line. With tiny weights, others
            # are as good within rounding.
            if kinked and other is scores and weights[some].min() > 1e-3:
                best = offsets[risks <= risks.min() + rounding]
                assert b == pytest.approx(0.5 * (best.min() + best.max()), abs=1e-11 * size)


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()])
def test_the_offset_of_huge_scores_is_found(loss):
    y, weights = np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 0.25)
    # The offset parts the classes: it lies between their scores, and no error is left.
    scores = 1e18 * np.array([-3.0, -5.0, -3.5, -4.5])
    value, _, b = loss.without_offset(scores, y, weights)
    assert 3.5e18 <= b <= 4.5e18
    assert value == 0.0


@pytest.mark.parametrize("n", [4, 2000, 5000])
@pytest.mark.parametrize("kind", ["even", "tied", "one far", "heavy", "equal"])
def test_weighted_quantiles_are_those_of_the_sorted_values(kind, n):
    rng = np.random.default_rng(n)
    values, weights = rng.standard_normal(n), rng.random(n)
    if kind == "tied":
        values = np.round(values)
    if kind == "one far":
        values[0], weights[0] = 1e6, 10 * n
    if kind == "heavy":
        weights[rng.random(n) < 0.9] = 0.0
        weights[:2] = 0.4, 0.7
    if kind == "equal":
        weights[:] = 1.0
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0]
    rising, reached = np.r_[-np.inf, values[order], np.inf], np.r_[0.0, np.cumsum(weights[order])]
    # Between the values, at the first and last of them, and beyond.
    targets = [*(share * reached[-1] for share in (1e-9, 0.01, 0.3, 0.5, 0.97, 1 - 1e-9))]
    targets += [reached[k] for k in (0, 1, n // 4, n // 2) if k < len(reached)] + [reached[-1]]
    slack = 1e-11 * reached[-1]
    for target in targets:
        ends = (
            rising[np.searchsorted(reached, target - slack)],
            rising[np.searchsorted(reached, target + slack, side="right")],
        )
        assert quantile_interval(values, weights, target, slack) == ends


@pytest.mark.parametrize("n", [5_000, 100_000])
def test_running_sums_may_fall_short_of_all_weight_by_rounding(n):
    # All points of one class: the offset at which the last hinge ends.
    X = np.random.default_rng(0).standard_normal((n, 2))
    found = minimize_risk(X, np.ones(n), "hinge", lam=0.1, offset="eliminated")
    assert found.status == "converged"
    assert found.objective == pytest.approx(0.0, abs=1e-12)
