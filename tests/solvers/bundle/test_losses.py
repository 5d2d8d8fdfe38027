"""Losses of the bundle methods: by hand, by brute force, and their subgradients."""

from itertools import product

import numpy as np
import pytest

from marginbench.solvers.bundle import (
    F1,
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
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
    Hinge(): lambda s, y: max(0.0, 1 - y * s),
    SquaredHinge(): lambda s, y: 0.5 * max(0.0, 1 - y * s) ** 2,
    Logistic(): lambda s, y: np.logaddexp(0.0, -y * s),
    LeastSquares(): lambda s, y: 0.5 * (s - y) ** 2,
    EpsilonInsensitive(0.3): lambda s, y: max(0.0, abs(s - y) - 0.3),
    Quantile(0.2): lambda s, y: 0.2 * max(0.0, y - s) + 0.8 * max(0.0, s - y),
    Novelty(1.5): lambda s, y: max(0.0, 1.5 - s),
}
WHOLE = [ROCArea(), PrecisionAtK(3), PrecisionAtK(), PrecisionAtK(9, 0.4), F1(), F1(0.7)]
LOSSES = [*POINTWISE, *WHOLE, Multiclass()]


def case(loss, seed, n=14):
    """Random scores, targets and weights that the loss takes."""
    rng = np.random.default_rng(seed)
    weights = rng.random(n) + 0.1 if loss.supports_weights else np.ones(n)
    shape = (n, 4) if isinstance(loss, Multiclass) else n
    scores = 2 * rng.standard_normal(shape)
    if loss.targets == "classes":
        y = np.append(np.arange(4), rng.integers(4, size=n - 4))
    elif loss.targets == "numbers":
        y = rng.standard_normal(n)
    else:
        y = np.where(rng.permutation(n) < 5, 1.0, -1.0)
    return scores, y, weights / weights.sum()


def name(loss):
    return "-".join([type(loss).__name__, *map(str, vars(loss).values())])


@pytest.mark.parametrize("loss", POINTWISE, ids=name)
def test_pointwise_losses_are_weighted_means(loss):
    scores, y, weights = case(loss, 1)
    expected = sum(w * POINTWISE[loss](s, t) for s, t, w in zip(scores, y, weights, strict=True))
    value, _ = loss.evaluate(scores, y, weights)
    assert value == pytest.approx(expected, rel=1e-13)


def test_multiclass_by_hand():
    loss = Multiclass()
    scores, y, weights = case(loss, 2)
    expected = sum(
        weights[i] * max(float(c != y[i]) + scores[i, c] - scores[i, y[i]] for c in range(4))
        for i in range(len(y))
    )
    assert loss.evaluate(scores, y, weights)[0] == pytest.approx(expected, rel=1e-13)
    assert loss.n_outputs(y) == 4


def brute_force_roc(scores, y, weights):
    pairs = [(i, j) for i in np.flatnonzero(y > 0) for j in np.flatnonzero(y < 0)]
    total = sum(weights[i] * weights[j] for i, j in pairs)
    lost = sum(weights[i] * weights[j] * max(0, 1 - scores[i] + scores[j]) for i, j in pairs)
    return lost / total


def brute_force_sets(loss, scores, y):
    """The largest value over every labelling that the loss admits."""
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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", WHOLE, ids=name)
def test_ranking_losses_by_brute_force(loss, seed):
    scores, y, weights = case(loss, seed, n=11)
    if seed == 4:
        scores = np.round(scores)  # ties
    if isinstance(loss, ROCArea):
        expected = brute_force_roc(scores, y, weights)
    else:
        expected = brute_force_sets(loss, scores, y)
    assert loss.evaluate(scores, y, weights)[0] == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_subgradient_bounds_the_risk_from_below(loss, rounded):
    scores, y, weights = case(loss, 5)
    if rounded:
        scores, y = np.round(scores), np.round(y) if y.dtype.kind == "f" else y  # kinks
    value, subgradient = loss.evaluate(scores, y, weights)
    assert value >= loss.lower_bound
    rng = np.random.default_rng(6)
    for size in (0.1, 1.0, 10.0):
        for _ in range(20):
            other = scores + size * rng.standard_normal(scores.shape)
            there, _ = loss.evaluate(other, y, weights)
            assert there >= value + (subgradient * (other - scores)).sum() - 1e-12 * (1 + there)


def test_no_best_offset():
    loss = Novelty()
    y, weights = np.ones(3), np.full(3, 1 / 3)
    # A minimum where all scores are above rho; but a loss that falls for ever has none.
    assert loss.without_offset(np.zeros(3), y, weights)[0] == 0.0
    with pytest.raises(ValueError, match="Falling risk has no minimum over the offset"):
        Falling().without_offset(np.zeros(3), y, weights)


class Falling(PointwiseLoss):
    def pointwise(self, scores, y):
        return -scores, np.full(len(scores), -1.0)


def test_what_makes_no_sense_is_refused():
    equal = np.full(4, 0.25)
    for loss in (Hinge(), ROCArea(), F1()):
        with pytest.raises(ValueError, match="takes labels -1 and"):
            loss.check(np.arange(4.0), equal)
    for loss in (ROCArea(), F1(), PrecisionAtK(2)):
        with pytest.raises(ValueError, match="needs points of both labels"):
            loss.check(np.ones(4), equal)
    y = np.array([1.0, -1, 1, -1])
    with pytest.raises(ValueError, match="F1 has no weights of points"):
        F1().check(y, np.array([0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(ValueError, match="k must be at most the number of points, 4, got 5"):
        PrecisionAtK(5).check(y, equal)
    with pytest.raises(ValueError, match="Multiclass takes classes 0, 1, 2"):
        Multiclass().check(y, equal)


def test_one_class_is_no_problem_of_several():
    with pytest.raises(ValueError, match="two classes or more, got only class 0"):
        Multiclass().check(np.zeros(3, dtype=int), np.ones(3))
    with pytest.raises(ValueError, match="tau must lie between 0 and 1"):
        Quantile(1.0)
    for make, word in ((EpsilonInsensitive, "epsilon"), (Novelty, "rho"), (F1, "scale")):
        with pytest.raises(ValueError, match=f"{word} must be a number"):
            make(-1.0)


def test_compiled_passes_are_the_plain_formulas():
    rng = np.random.default_rng(9)
    scores, y = 30 * rng.standard_normal(3000), np.where(rng.random(3000) < 0.3, 1.0, -1.0)
    for weights in (np.full(3000, 1 / 3000), np.repeat(rng.random(30), 100), rng.random(3000)):
        margins, slack = y * scores, np.maximum(0.0, 1.0 - y * scores)
        of_margins = -y / (1.0 + np.exp(margins))
        plain = (
            (Hinge(), slack, np.where(slack > 0, -y, 0.0)),
            (SquaredHinge(), 0.5 * slack**2, -y * slack),
            (Logistic(), np.logaddexp(0.0, -margins), of_margins),
        )
        for loss, losses, slopes in plain:
            value, gradient = loss.evaluate(scores, y, weights)
            assert value == pytest.approx(weights @ losses, rel=1e-12)
            np.testing.assert_allclose(gradient, weights * slopes, rtol=1e-12, atol=0)


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
