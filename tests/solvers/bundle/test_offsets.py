"""The best offset: against all breakpoints, and as the support of planes."""

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


def random_loss(rng):
    return [
        Hinge(),
        Novelty(rng.choice([1e-3, 1.0])),
        Quantile(rng.choice([1e-6, 0.01, 0.25, 0.5, 0.999])),
        EpsilonInsensitive(rng.choice([0.0, 0.5, 1.0, 50.0])),
    ][rng.integers(4)]


def random_case(rng, loss):
    """Few points with many ties, and weights of which some are 0."""
    n = rng.integers(1, 9)
    spread = rng.choice([1e-3, 1.0, 1e3])
    scores, y = spread * rng.integers(-3, 4, n), spread * rng.integers(-3, 4, n)
    if rng.random() < 0.3:
        scores = spread * rng.standard_normal(n)
    if loss.targets == "labels":
        y = rng.choice([-1.0, 1.0], n)
    weights = rng.integers(0, 3, n).astype(float)
    weights[rng.integers(n)] += 1.0
    if rng.random() < 0.3:
        weights *= 10.0 ** rng.integers(-5, 6, n)
    return scores.astype(float), y.astype(float), weights / weights.sum()


def brute_force(loss, scores, y, weights):
    """The smallest risk over all breakpoints, and those that have it, of points with weight."""
    some = weights > 0
    kinks, _ = loss.kinks(y[some])
    breakpoints = np.unique(kinks - scores[some, None])
    values = np.array([loss.evaluate(scores + b, y, weights)[0] for b in breakpoints])
    near = values <= values.min() + 1e-13 * (np.abs(breakpoints).max() + np.abs(scores).max())
    return values.min(), breakpoints[near]


def test_piecewise_linear_losses_against_all_breakpoints():
    rng = np.random.default_rng(200)
    for _ in range(200):
        loss = random_loss(rng)
        scores, y, weights = random_case(rng, loss)
        value, balanced, b = loss.without_offset(scores, y, weights)
        lowest, best = brute_force(loss, scores, y, weights)
        size = 1.0 + np.abs(scores).max() + np.abs(y).max() + abs(b)
        assert value == pytest.approx(lowest, rel=1e-13, abs=1e-13 * size)
        there, _ = loss.evaluate(scores + b, y, weights)
        assert there == pytest.approx(lowest, rel=1e-13, abs=1e-13 * size)
        assert abs(balanced.sum()) <= 1e-14
        # The plane supports the risk without offset everywhere.
        other = scores + size * rng.choice([1e-3, 1.0]) * rng.standard_normal(len(y))
        elsewhere, _ = brute_force(loss, other, y, weights)
        assert elsewhere >= value + balanced @ (other - scores) - 1e-13 * size
        # The middle of the best offsets, or the end of a half-line. With tiny weights, others are
        # as good within rounding.
        if weights[weights > 0].min() > 1e-3:
            assert b == pytest.approx(0.5 * (best.min() + best.max()), abs=1e-11 * size)


def test_smooth_losses_have_balanced_planes_below_the_risk():
    rng = np.random.default_rng(150)
    for _ in range(150):
        loss = [SquaredHinge(), Logistic(), LeastSquares()][rng.integers(3)]
        scores, y, weights = random_case(rng, loss)
        if loss.targets == "labels":
            if len(y) == 1:
                continue
            y[:2], weights[:2] = (1.0, -1.0), weights[:2] + 0.1
            weights /= weights.sum()
        value, balanced, b = loss.without_offset(scores, y, weights, 10 * rng.standard_normal())
        size = 1.0 + np.abs(scores).max() + np.abs(y).max() + abs(b)
        rounding = 1e-13 * (1.0 + value) * size
        assert value == pytest.approx(loss.evaluate(scores + b, y, weights)[0], rel=1e-13)
        assert abs(balanced.sum()) <= 1e-13 * size
        other = scores + size * rng.choice([1e-3, 1.0]) * rng.standard_normal(len(y))
        for shift in (0.0, *(size * rng.standard_normal(5))):
            elsewhere, _ = loss.evaluate(other + shift, y, weights)
            assert elsewhere >= value + balanced @ (other - scores) - rounding


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
