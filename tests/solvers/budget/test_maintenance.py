"""One event of budget maintenance on a model of known points: its loss, and the best choice."""

import math

import numpy as np
import pytest

from marginbench.solvers.budget.maintenance import PROJECTION, STRATEGIES, maintain, rule_of
from marginbench.solvers.budget.merging import (
    best_weight,
    degradation,
    golden_weight,
    merge_tables,
)
from marginbench.solvers.budget.model import (
    KernelCode,
    empty_state,
    squared_distances,
)
from marginbench.solvers.budget.projection import extend_gram

GAUSS = KernelCode(0, 0, 0.0, 0.0)
MERGING = [name for name in STRATEGIES if name.startswith("merge")]
PAIRINGS = ["label", "any", "sign"]


def gram(A, B):
    return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))


def maintained(points, coef, name, pairing="sign", labels=None):
    """The state that one event of maintenance leaves of a model of one point too many; its loss."""
    (size, d), rule = points.shape, rule_of(name, pairing)
    projects, labelled = rule.kind == PROJECTION, pairing == "label"
    model = empty_state(d, size - 1, "float64", gram=projects, labels=labelled)
    for j in range(size):
        model.points[:, j], model.coef[j], model.roots[j] = points[j], coef[j], 1.0
        if projects and j < size - 1:
            extend_gram(model, GAUSS, j)
    if labelled:
        model.labels[:size] = labels
    model.counts["n_points"] = size
    squared_distances(points[-1].copy(), model.points, len(model.coef), model.distances)
    return model, maintain(model, GAUSS, rule)


def one_event(points, coef, name, pairing="sign", labels=None):
    """What such an event leaves: points, coefficients, loss and search evaluations."""
    model, lost = maintained(points, coef, name, pairing, labels)
    left = int(model.counts["n_points"])
    assert not model.coef[left:].any()
    found = model.points[:, :left].T.copy(), model.coef[:left].copy()
    return *found, lost, int(model.counts["search_evals"])


def allowed(pairing, coef, labels, i, j):
    """Whether points i and j may be merged."""
    if pairing == "any":
        return True
    kind = coef if pairing == "sign" else labels
    return kind[i] * kind[j] > 0


def random_model(rng, size, spread=1.0):
    points = spread * rng.standard_normal((size, 3))
    coef = rng.uniform(0.05, 2.0, size) * rng.choice([-1.0, 1.0], size)
    return points, coef


def pair_losses(points, coef, light, pairing="sign", labels=None):
    """The exact loss of merging ``light`` with each other point; infinity where it may not."""
    losses = np.full(len(coef), np.inf)
    for j in range(len(coef)):
        if j == light or not allowed(pairing, coef, labels, light, j):
            continue
        a, b = (light, j) if abs(coef[light]) >= abs(coef[j]) else (j, light)
        r, log_entry = coef[b] / coef[a], -((points[a] - points[b]) ** 2).sum()
        t = best_weight(r, log_entry)
        c = math.exp(t * t * log_entry) + r * math.exp((1 - t) ** 2 * log_entry)
        losses[j] = coef[a] ** 2 * (1 + r * r + 2 * r * math.exp(log_entry) - c * c)
    return losses


@pytest.mark.parametrize(
    ("name", "pairing"),
    [
        (name, pairing)
        for name in sorted(STRATEGIES)
        for pairing in (PAIRINGS if name in MERGING else ["sign"])
    ],
)
@pytest.mark.parametrize("spread", [0.3, 30.0])
def test_the_degradation_is_the_explicit_norm(name, pairing, spread):
    rng = np.random.default_rng(0)
    for size in (2, 3, 7, 20):
        points, coef = random_model(rng, size, spread=spread)
        labels = rng.choice([-1.0, 1.0], size)
        after, coef_after, lost, _ = one_event(points, coef, name, pairing, labels)
        assert len(coef_after) == size - 1
        everything, difference = np.vstack([points, after]), np.concatenate([coef, -coef_after])
        expected = difference @ gram(everything, everything) @ difference
        assert lost >= 0
        assert lost == pytest.approx(expected, rel=1e-9, abs=1e-13 * (coef @ coef))


def test_projection_is_the_best_expression_in_the_other_points():
    rng = np.random.default_rng(2)
    for size in (2, 5, 17, 40):
        points, coef = random_model(rng, size)
        after, coef_after, lost, _ = one_event(points, coef, "project")
        p = np.argmin(np.abs(coef))
        rest = np.delete(np.arange(size), p)
        K = gram(points, points)
        delta = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, p] * coef[p])
        by_position = dict(zip(map(tuple, points[rest]), coef[rest] + delta, strict=True))
        wanted = [by_position[tuple(point)] for point in after]
        np.testing.assert_allclose(coef_after, wanted, rtol=1e-6)
        assert lost == pytest.approx(coef[p] * (coef[p] - K[p, rest] @ delta), rel=1e-5)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("name", ["merge", "merge-golden-precise"])
@pytest.mark.parametrize("spread", [0.2, 2.0])
def test_the_chosen_partner_is_the_best_of_those_allowed(name, pairing, spread):
    rng = np.random.default_rng(3)
    for _ in range(40):
        points, coef = random_model(rng, 25, spread=spread)
        labels = rng.choice([-1.0, 1.0], 25)
        light = int(np.argmin(np.abs(coef)))
        after, _, lost, evals = one_event(points, coef, name, pairing, labels)
        best = pair_losses(points, coef, light, pairing, labels).min()
        # Tables may mistake one partner for another that loses hardly more.
        assert lost <= best + (2e-3 if name == "merge" else 1e-9) * coef[light] ** 2
        assert lost >= best - 1e-12
        assert evals == 24
        gone = [j for j in range(25) if points[j].tolist() not in after.tolist()]
        assert len(gone) == 2
        assert light in gone
        assert allowed(pairing, coef, labels, *gone)


@pytest.mark.parametrize("pairing", ["label", "sign"])
@pytest.mark.parametrize("name", MERGING)
def test_a_point_alone_of_its_kind_leaves_the_merging_to_the_others(name, pairing):
    points = np.array([[0.0], [0.1], [0.3], [2.0], [2.2]])
    # By label the coefficients' signs say nothing.
    coef = np.array([-0.01, 1.0, 2.0, 3.0, 4.0]) * (-1.0 if pairing == "label" else 1.0)
    labels = np.array([-1.0, 1.0, 1.0, 1.0, 1.0])
    after, coef_after, _, evals = one_event(points, coef, name, pairing, labels)
    assert coef[0] in coef_after
    assert [0.0] in after.tolist()
    # The newest point's row does not serve for the other ones.
    assert evals >= 2 * 4
    # The only two points are merged whatever they are.
    model, lost = maintained(points[:2], np.array([1.0, -0.5]), name, pairing, -labels[:2])
    assert model.counts["n_points"] == 1
    assert lost < 0.5**2
    if pairing == "label":
        # Of two labels the merged point has that of its heavier part.
        assert model.labels[0] == 1.0


def test_a_merged_point_has_the_label_of_its_parts_and_the_others_keep_theirs():
    rng = np.random.default_rng(7)
    for _ in range(60):
        points, coef = random_model(rng, 16)
        labels = rng.choice([-1.0, 1.0], 16)
        model, _ = maintained(points, coef, "merge", "label", labels)
        known = {tuple(point): label for point, label in zip(points, labels, strict=True)}
        left = int(model.counts["n_points"])
        after = [tuple(point) for point in model.points[:, :left].T]
        parts = {known[point] for point in set(known) - set(after)}
        assert len(parts) == 1
        for point, label in zip(after, model.labels, strict=False):
            assert label == known.get(point, *parts)


def test_a_weightless_point_goes_for_free():
    points, coef = random_model(np.random.default_rng(6), 9)
    coef[4] = 0.0
    _, coef_after, lost, evals = one_event(points, coef, "merge")
    assert lost == 0
    assert evals == 0
    assert sorted(coef_after) == sorted(np.delete(coef, 4))


SAME_SIGN = [(r, k) for r in (1e-6, 0.1, 0.93, 1.0) for k in (1e-9, 0.2, 0.95, 1.0)]
OPPOSITE = [(-r, k) for r in (1e-4, 0.1, 0.5) for k in (1e-9, 0.3, 0.7)]


def loss(t, r, kappa):
    """||phi_heavy + r phi_light - c phi(z)||^2 with the best c, straight from the definition."""
    c = kappa ** (t * t) + r * kappa ** ((1 - t) ** 2)
    return 1 + r * r + 2 * r * kappa - c * c


@pytest.mark.parametrize(("r", "kappa"), [*SAME_SIGN, *OPPOSITE])
def test_all_searches_find_the_weight_that_loses_least(r, kappa):
    log_kappa = math.log(kappa)
    weight = best_weight(r, log_kappa)
    # By brute force, refined around the best of a fine grid.
    low, high = (0.0, 1.0) if r >= 0 else (-5.0, 0.0)
    for _ in range(4):
        t = np.linspace(low, high, 20_001)
        expected, best, width = (
            loss(t, r, kappa).min(),
            t[np.argmin(loss(t, r, kappa))],
            t[1] - t[0],
        )
        low, high = max(best - width, low), min(best + width, high)
    assert loss(weight, r, kappa) <= expected + 1e-14
    assert degradation(weight, r, log_kappa) == pytest.approx(expected, abs=1e-14)
    if kappa == 1.0 or (r == 1.0 and kappa < math.exp(-2)):
        return  # every weight is as good as any other; or an optimum and its mirror
    # Near the optimum, values of the function do not tell nearer points apart.
    rounding = math.sqrt(2e-15 / (abs(r) * -log_kappa))
    for tolerance in (0.01, 1e-10):
        found = golden_weight(r, log_kappa, tolerance)
        assert found == pytest.approx(weight, abs=0.5 * tolerance + min(rounding, 0.02))


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
