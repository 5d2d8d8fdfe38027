"""Merging: the lightest point and its best partner become one point (Gaussian kernel).

Of two points, call the one with the larger coefficient magnitude the heavy one. With its
coefficient taken as 1, the light one has the ratio ``r`` in [-1, 1], and ``log_entry <= 0`` is the
logarithm of their kernel entry kappa. The merged point is ``z = z_heavy + t (z_light - z_heavy)``;
``t``, which is BSCA18's h seen from the heavy point, is the light point's weight: 0 to 1/2 at the
optimum for equal signs, negative for opposite ones. Then

    k(z_heavy, z) = kappa^(t^2),    k(z_light, z) = kappa^((1 - t)^2),

the best coefficient (``_coefficient``; times the heavy one BSCA18's beta') is their sum weighted by
1 and r, and the weight degradation WD (``degradation``), the squared distance in feature space that
w moves, is ``1 + r^2 + 2 r kappa`` less the square of that sum. WCV12 takes i = argmin_j |beta_j|
(``maintain``), and the partner (``merge_lightest``)

    j = argmin_j min_t WD(t; beta_i, beta_j, kappa_ij);

BSCA18 section 2 leaves i and j open. t is found by golden section search, as in both papers
(``golden_weight``), or by Newton's method (``best_weight``) for a pair that is chosen with the
inner minimum from a table (GQ18; ``_cost``), of the partners that a bound by the distance leaves:
with all of them fits take 1.3 to 3.5 times as long (ijcnn1, adult).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .model import compiled, drop, smallest, squared_distances

GOLDEN, LOOKUP = range(2)
SAME_LABEL, ANY_TWO, SAME_SIGN = range(3)
_FARTHEST = np.finfo(np.float64).max
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Beyond this weight an opposite pair is not extrapolated.
_LOWEST_WEIGHT = -5.0
_NEWTON_STEPS = 60
_PRECISION = 1e-12
_TINY = 1e-300


@compiled(inline="always")
def merge_lightest(model, rule, light):
    """Merge ``light`` with the partner that loses least; the squared distance w moves.

    ``distances`` must hold those from the newest point; they are computed anew for another one.
    """
    coef, distances, near = model.coef, model.distances, model.near
    scratch, partners, counts = model.scratch, model.partners, model.counts
    size = counts.n_points
    # With a budget of 1 there is no choice.
    pairing = rule.pairing if size > 2 else ANY_TWO
    nearest = -1
    for attempt in range(2):
        if attempt == 0 and light == size - 1:
            counts.search_evals += size - 1
        else:
            _evaluate_from(model, light)
        nearest = _nearest(model, light, pairing)
        if attempt == 1 or near[nearest] < np.inf:
            break
        # The only one of its kind: the lightest of the others has partners.
        for j in range(size):
            scratch[j] = np.inf if j == light else abs(coef[j])
        light = smallest(model.scratch, size)
    # The loss grows with the distance: that with the nearest partner bounds that of the
    # best one.
    limit = _FARTHEST
    if rule.search == LOOKUP:
        cost = _cost(rule, coef[light] / coef[nearest], -np.float64(distances[nearest]))
        limit = max(_limit(rule.tables.least, cost), np.float64(near[nearest]))
    count = 0
    for j in range(size):
        # Without a branch, which could not be foreseen.
        partners[count] = j
        count += near[j] <= limit
    for k in range(count):
        j = partners[k]
        scratch[k] = _cost(rule, coef[light] / coef[j], -np.float64(distances[j]))
    # The smallest cost: argmin_j.
    return _merge(model, rule, light, partners[smallest(model.scratch, count)])


@compiled(inline="always")
def _merge(model, rule, light, partner):
    """Merge two points into one, in the place of the first; the squared distance w moves."""
    points, coef, merged = model.points, model.coef, model.buffer
    own, other = coef[light], coef[partner]
    distance = 0.0
    for f in range(len(points)):
        distance += (np.float64(points[f, light]) - np.float64(points[f, partner])) ** 2
    other_is_heavy = abs(other) >= abs(own)
    heavy = other if other_is_heavy else own
    ratio = (own if other_is_heavy else other) / heavy
    weight = _weight(rule, ratio, -distance)
    # BSCA18's h: the merged point is (1 - h) z_light + h z_partner.
    h = 1.0 - weight if other_is_heavy else weight
    for f in range(len(points)):
        start = points[f, light]
        merged[f] = start + h * (np.float64(points[f, partner]) - start)
    # Where parts have two labels, with a budget of 1, that of the partner, the heavier one.
    label = model.labels[partner] if len(model.labels) > 0 else 0.0
    # What moves into the gap is then not the other one.
    drop(model, max(light, partner))
    kept = min(light, partner)
    for f in range(len(points)):
        points[f, kept] = merged[f]
    coef[kept] = heavy * _coefficient(weight, ratio, -distance)  # BSCA18's beta'
    model.owner[kept] = -1
    if len(model.labels) > 0:
        model.labels[kept] = label
    return heavy * heavy * degradation(weight, ratio, -distance)


@compiled()
def _cost(rule, ratio, log_entry):
    """What the pair's merge loses, in units of the light coefficient's square."""
    if rule.search == LOOKUP and ratio >= rule.tables.lowest:
        # Bilinear interpolation; below 1 the loss falls with the square of 1 - kappa.
        table, steps = rule.tables.costs, rule.tables.costs.shape[1] - 1
        row, column = (ratio - rule.tables.lowest) * steps, math.exp(log_entry) * steps
        a, b = min(int(row), table.shape[0] - 2), min(int(column), table.shape[1] - 2)
        u, v = row - a, column - b
        low = np.float64(table[a, b]) * (1.0 - v) + np.float64(table[a, b + 1]) * v
        high = np.float64(table[a + 1, b]) * (1.0 - v) + np.float64(table[a + 1, b + 1]) * v
        return (low * (1.0 - u) + high * u) * math.expm1(log_entry) ** 2
    weight = _weight(rule, ratio, log_entry)
    return degradation(weight, ratio, log_entry) / (ratio * ratio)


@compiled()
def _weight(rule, ratio, log_entry):
    """Where the pair is merged: the light point's weight."""
    if rule.search == GOLDEN:
        return golden_weight(ratio, log_entry, rule.tolerance)
    return best_weight(ratio, log_entry)


@compiled()
def _coefficient(weight, ratio, log_entry):
    """The best coefficient of the merged point, the heavy one's being 1."""
    rest = 1.0 - weight
    return math.exp(weight * weight * log_entry) + ratio * math.exp(rest * rest * log_entry)


@compiled()
def degradation(weight, ratio, log_entry):
    """WD = ||phi(z_heavy) + r phi(z_light) - c phi(z)||^2 with the best c.

    Written in differences from 1, so that a light partner's small loss keeps its digits.
    """
    rest = 1.0 - weight
    # kappa^(1 - share) - kappa; as a product it keeps its digits, unless that overflows.
    share = 2.0 * weight * rest
    if share * log_entry < -600.0:
        rise = math.exp((1.0 - share) * log_entry) - math.exp(log_entry)
    else:
        rise = math.exp(log_entry) * math.expm1(-share * log_entry)
    lost = -math.expm1(2.0 * weight * weight * log_entry)
    lost -= 2.0 * ratio * rise
    lost -= ratio * ratio * math.expm1(2.0 * rest * rest * log_entry)
    return max(lost, 0.0)


@compiled()
def golden_weight(ratio, log_entry, tolerance):
    """The weight by golden section search, on [0, 1] for equal signs, else on [-5, 0].

    The middle of the last interval; or 0, where that is better: for points far apart the optimum
    is nearer to the heavy one than any tolerance.
    """
    low, high = (0.0, 1.0) if ratio >= 0.0 else (_LOWEST_WEIGHT, 0.0)
    p, q = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_p = _coefficient(p, ratio, log_entry)
    at_q = _coefficient(q, ratio, log_entry)
    while high - low >= tolerance:
        # Where both vanish, stay at the heavy point, which is at 0.
        if at_p > at_q or (at_p == at_q and ratio >= 0.0):
            high, q, at_q = q, p, at_p
            p = high - _GOLDEN * (high - low)
            at_p = _coefficient(p, ratio, log_entry)
        else:
            low, p, at_p = p, q, at_q
            q = low + _GOLDEN * (high - low)
            at_q = _coefficient(q, ratio, log_entry)
    weight = 0.5 * (low + high)
    better = _coefficient(weight, ratio, log_entry) > _coefficient(0.0, ratio, log_entry)
    return weight if better else 0.0


@compiled()
def best_weight(ratio, log_entry):
    """The optimal weight by Newton's method, to rounding.

    Stationary points obey ``log(|t| / (1 - t)) = log|r| + (1 - 2 t) log_entry``. The start lies
    between 0 and the smallest solution, which is the global optimum; from there the difference of
    the two sides is concave in |t|, and the steps approach monotonically.
    """
    entry = math.exp(log_entry)
    if abs(ratio) * entry < _TINY or (ratio < 0.0 and log_entry == 0.0):
        return 0.0
    if ratio > 0.0:
        weight = ratio * entry / (1.0 + ratio * entry)
    else:
        bound = _LOWEST_WEIGHT
        if 1.0 + ratio * entry > 0.0:
            bound = max(bound, ratio * entry / (1.0 + ratio * entry))
        near = ratio * math.exp((1.0 - 2.0 * bound) * log_entry)
        if -near < _TINY:
            return 0.0
        weight = near / (1.0 + near)
    offset = math.log(abs(ratio)) + log_entry
    for _ in range(_NEWTON_STEPS):
        miss = math.log(abs(weight) / (1.0 - weight)) - offset + 2.0 * weight * log_entry
        slope = 1.0 / (weight * (1.0 - weight)) + 2.0 * log_entry
        if slope * ratio <= 0.0:
            # Only at a fork of the optimum (r = 1, kappa = e^-2), which is reached.
            break
        step = miss / slope
        weight -= step
        if weight <= _LOWEST_WEIGHT:
            return _LOWEST_WEIGHT
        if abs(step) <= _PRECISION * abs(weight):
            break
    return min(weight, 0.5)


@compiled(inline="always")
def _evaluate_from(model, light):
    """Distances from a point of the model to all of them."""
    x, counts = model.buffer, model.counts
    for f in range(len(x)):
        x[f] = model.points[f, light]
    squared_distances(x, model.points, counts.n_points, model.distances)
    counts.search_evals += counts.n_points - 1
    counts.computed += counts.n_points - 1


@compiled(inline="always")
def _nearest(model, light, pairing):
    """The nearest possible partner; ``near`` become the distances, infinity to the others.

    Distances count by :func:`_share`: for small ones the loss is then at least twice their square.
    """
    coef, distances, near, size = model.coef, model.distances, model.near, model.counts.n_points
    if pairing == SAME_SIGN:
        positive = coef[light] > 0.0
        for j in range(size):
            # _share for equal signs; the others do not count.
            share = coef[j] / (coef[j] + coef[light])
            near[j] = distances[j] * share if (coef[j] > 0.0) == positive else np.inf
    elif pairing == SAME_LABEL:
        labels = model.labels
        label = labels[light]
        for j in range(size):
            own = labels[j] == label
            near[j] = distances[j] * _share(coef[j], coef[light]) if own else np.inf
    else:
        for j in range(size):
            near[j] = distances[j] * _share(coef[j], coef[light])
    near[light] = np.inf
    return smallest(model.near, size)


@compiled()
def _share(other, light):
    """The heavy coefficient's share of both, where they have the same sign; else 1."""
    added = abs(light) if (other > 0.0) == (light > 0.0) else 0.0
    return abs(other) / (abs(other) + added)


@compiled()
def _limit(least, cost):
    """A distance, as :func:`_nearest` counts it, beyond which every partner costs more than this.

    Beyond the exponent of some column every cost is larger; up to there costs rise at least
    with the square of the distance.
    """
    low, high = 0, least.shape[1] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if least[0, middle] > cost:
            low = middle
        else:
            high = middle
    if least[2, low] == 0.0:
        return _FARTHEST
    # A little more, for interpolation and rounding.
    return 1.02 * math.sqrt(cost / least[2, low])


class Tables(NamedTuple):
    """The loss of the optimal merge of two points on a grid of coefficient ratio and kernel entry.

    In units of the light coefficient's square; column b has kernel entry b / (grid - 1).
    """

    lowest: float  # The ratio of row 0: 0 if only equal signs are merged, else -1; the last has 1
    costs: np.ndarray  # float32, shape (n_ratios, grid): Over ``(1 - kernel entry)^2``
    # float64, shape (3, grid): The smallest cost in each column; the column's exponent, -log of its
    # kernel entry; the smallest ``cost / (exponent share)^2`` up to it, the share of `_nearest`
    least: np.ndarray


@lru_cache(maxsize=4)
def merge_tables(grid: int, same_sign: bool) -> Tables:
    """The tables for so many kernel entries, and ratios from 0 (or -1) to 1; read-only.

    The light coefficient over the heavy one is at most 1 in magnitude: the other half of the pairs,
    by symmetry, needs no entries.
    """
    ratios = np.linspace(0.0, 1.0, grid) if same_sign else np.linspace(-1.0, 1.0, 2 * grid - 1)
    entries = np.linspace(0.0, 1.0, grid)
    costs = np.zeros((len(ratios), grid), dtype=np.float32)
    _fill_costs(ratios, entries, costs)
    least = np.full((3, grid), np.inf)
    least[0] = (costs * np.square(1.0 - entries)).min(axis=0)
    least[1, 1:] = -np.log(entries[1:])
    shares = 1.0 / (1.0 + np.maximum(ratios, 0.0))
    # (1 - entry) / exponent goes from 0 to its limit 1.
    slopes = np.zeros(grid)
    slopes[1:-1], slopes[-1] = (1.0 - entries[1:-1]) / least[1, 1:-1], 1.0
    rises = (costs * np.square(slopes / shares[:, None])).min(axis=0)
    least[2] = np.minimum.accumulate(rises[::-1])[::-1]
    return _read_only(Tables(float(ratios[0]), costs, least))


def _read_only(tables: Tables) -> Tables:
    tables.costs.flags.writeable = tables.least.flags.writeable = False
    return tables


#: For what merges nothing, or by golden section; of the types of real ones.
NO_TABLES = _read_only(Tables(0.0, np.zeros((2, 2), dtype=np.float32), np.zeros((3, 2))))


@compiled()
def _fill_costs(ratios, entries, costs):
    """The least loss in units of the light coefficient's square, on a grid.

    The loss falls with the square of ``1 - kappa``; what is tabulated is its quotient by that,
    which keeps its digits between the nodes however close two points are.
    """
    for a in range(len(ratios)):
        r = ratios[a]
        for b in range(len(entries)):
            kappa = entries[b]
            if kappa == 0.0:
                costs[a, b] = 1.0
                continue
            log_entry = math.log(kappa)
            square = (1.0 - kappa) ** 2
            if kappa == 1.0:
                # The limit; where the extrapolation of opposite signs is cut off there is none.
                near = r / (1.0 + r) > _LOWEST_WEIGHT if r > -1.0 else False
                costs[a, b] = 2.0 / (1.0 + r) ** 2 if near else costs[a, b - 1]
            elif r == 0.0:
                # The limit: t = r kappa.
                costs[a, b] = (1.0 - kappa * kappa * (1.0 - 2.0 * log_entry)) / square
            else:
                costs[a, b] = degradation(best_weight(r, log_entry), r, log_entry) / (
                    r * r * square
                )
