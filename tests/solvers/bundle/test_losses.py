"""Losses of the bundle methods: by hand, by brute force, and their subgradients."""

from itertools import product

import numpy as np
import pytest

from marginbench.solvers import (
    F1,
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    PrecisionAtK,
    Quantile,
    ROCArea,
    SquaredHinge,
)

# Each with the loss of one point, written again.
POINTWISE = {
    Hinge(): lambda s, y: np.maximum(0.0, 1 - y * s),
    SquaredHinge(): lambda s, y: 0.5 * np.maximum(0.0, 1 - y * s) ** 2,
    Logistic(): lambda s, y: np.logaddexp(0.0, -y * s),
    LeastSquares(): lambda s, y: 0.5 * (s - y) ** 2,
    EpsilonInsensitive(0.3): lambda s, y: np.maximum(0.0, abs(s - y) - 0.3),
    Quantile(0.2): lambda s, y: np.maximum(0.2 * (y - s), 0.8 * (s - y)),
    Novelty(1.5): lambda s, y: np.maximum(0.0, 1.5 - s),
    Multiclass(): lambda s, y: np.max(
        (np.arange(4) != y[:, None]) + s - s[range(len(y)), y][:, None], axis=1
    ),
}
WHOLE = [ROCArea(), PrecisionAtK(3), PrecisionAtK(), PrecisionAtK(9, 0.4), F1(), F1(0.7)]


def case(loss, n, rounded):
    """Random scores, targets and weights that the loss takes, some of the weights 0."""
    rng = np.random.default_rng(5)
    weights = rng.random(n) * (rng.random(n) < 0.9) if loss.supports_weights else np.ones(n)
    scores = 2 * rng.standard_normal((n, 4) if isinstance(loss, Multiclass) else n)
    if loss.targets == "classes":
        y = np.append(np.arange(4), rng.integers(4, size=n - 4))
    elif loss.targets == "numbers":
        y = rng.standard_normal(n)
    else:
        y = np.where(rng.permutation(n) < 5, 1.0, -1.0)
    if rounded:  # kinks and ties
        scores, y = np.round(scores), np.round(y).astype(y.dtype)
    return scores, y, weights / weights.sum()


def name(loss):
    return "-".join([type(loss).__name__, *map(str, vars(loss).values())])


def by_hand(loss, scores, y, weights):
    """The mean over points or pairs of them, or the largest value of any labelling admitted."""
    if loss in POINTWISE:
        return weights @ POINTWISE[loss](scores, y)
    if isinstance(loss, ROCArea):
        pairs = np.outer(weights[y > 0], weights[y < 0])
        losses = np.maximum(0, 1 - scores[y > 0][:, None] + scores[y < 0])
        return (pairs * losses).sum() / pairs.sum()
    scale = 1 / len(y) if loss.scale is None else loss.scale
    k = None
    if isinstance(loss, PrecisionAtK):
        k = int((y > 0).sum()) if loss.k is None else loss.k
    best = 0.0
    for labels in product((-1.0, 1.0), repeat=len(y)):
        p = np.array(labels)
        chosen, true = (p > 0).sum(), ((p > 0) & (y > 0)).sum()
        if k is not None and chosen != k:
            continue
        lost = 1 - true / k if k else 1 - 2 * true / (chosen + (y > 0).sum())
        best = max(best, lost + scale * ((p - y) * scores).sum())
    return best


@pytest.mark.parametrize(
    ("loss", "n", "rounded"),
    [
        *((loss, 11, rounded) for loss in [*POINTWISE, *WHOLE] for rounded in (False, True)),
        *((loss, 3000, False) for loss in POINTWISE),
    ],
    ids=lambda value: name(value) if isinstance(value, Loss) else str(value),
)
def test_the_risk_is_that_by_hand_and_its_subgradient_bounds_it_from_below(loss, n, rounded):
    scores, y, weights = case(loss, n, rounded)
    value, subgradient = loss.evaluate(scores, y, weights)
    expected = by_hand(loss, scores, y, weights)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert value >= loss.lower_bound
    rng = np.random.default_rng(6)
    for size in (1e-4, 0.1, 1.0, 10.0):
        for _ in range(10):
            other = scores + size * rng.standard_normal(scores.shape)
            there, _ = loss.evaluate(other, y, weights)
            assert there >= value + (subgradient * (other - scores)).sum() - 1e-12 * (1 + there)


class Falling(PointwiseLoss):
    def pointwise(self, scores, y):
        return -scores, np.full(len(scores), -1.0)


def test_what_makes_no_sense_is_refused():
    y, equal = np.array([1.0, -1, 1, -1]), np.full(4, 0.25)
    # A minimum where all scores are above rho; but a loss that falls for ever has none.
    assert Novelty().without_offset(np.zeros(4), np.ones(4), equal)[0] == 0.0
    for refused, message in (
        (lambda: Falling().without_offset(np.zeros(4), y, equal), "no minimum over the offset"),
        *((lambda loss=loss: loss.check(np.arange(4.0), equal), "takes labels -1 and")
          for loss in (Hinge(), ROCArea(), F1())),
        *((lambda loss=loss: loss.check(np.ones(4), equal), "needs points of both labels")
          for loss in (ROCArea(), F1(), PrecisionAtK(2))),
        (lambda: F1().check(y, np.array([0.1, 0.2, 0.3, 0.4])), "F1 has no weights of points"),
        (lambda: PrecisionAtK(5).check(y, equal), "k must be at most the number of points, 4"),
        (lambda: Multiclass().check(y, equal), "Multiclass takes classes 0, 1, 2"),
        (lambda: Multiclass().check(0 * y.astype(int), equal), "two classes or more, got only"),
        (lambda: Quantile(1.0), "tau must lie between 0 and 1"),
        (lambda: EpsilonInsensitive(-1.0), "epsilon must be a number"),
        (lambda: Novelty(-1.0), "rho must be a number"),
        (lambda: F1(-1.0), "scale must be a number"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            refused()


def test_logistic_losses_of_any_margin():
    margins = np.array([0.0, 800.0, 1e308, np.inf])
    one = np.ones(1)
    for margin, y in product(margins, (-1.0, 1.0)):
        value, gradient = Logistic().evaluate(np.array([y * margin]), y * one, one)
        assert value <= np.log(2.0)
        assert -0.5 <= y * gradient[0] <= 0.0
        # On the wrong side the loss is the margin itself.
        value, gradient = Logistic().evaluate(np.array([-y * margin]), y * one, one)
        assert value == max(margin, np.log(2.0))
        assert gradient[0] == -y * (1.0 if margin else 0.5)
    value, gradient = Logistic().evaluate(np.array([np.nan, 1.0]), np.ones(2), np.ones(2))
    assert np.isnan([value, gradient[0]]).all()
    assert np.isfinite(gradient[1])
    # Small losses keep their digits.
    margins = np.linspace(30.0, 600.0, 1000)
    value, gradient = Logistic().evaluate(margins, np.ones(1000), np.ones(1000))
    assert value == pytest.approx(np.exp(-margins).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, -np.exp(-margins), rtol=1e-12)
