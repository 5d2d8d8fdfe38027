"""Merging: the lightest point and its best partners become one point (Gaussian kernel)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .arithmetic import smallest, squared_distances, width_of
from .compiling import compiled
from .pairs import (
    best_weight,
    degradation,
    fill_tables,
    fixed_point_weight,
    golden_weight,
    interpolated,
    merged_coefficient,
)
from .state import drop

GOLDEN, FIXED_POINT, LOOKUP_WEIGHT, LOOKUP_COST = range(4)
SAME_LABEL, ANY_TWO, SAME_SIGN = range(3)
_FARTHEST = np.finfo(np.float64).max


class Tables(NamedTuple):
    """The optimal merge of two points on a grid of coefficient ratio and kernel entry.

    Attributes
    ----------
    lowest : float
        The ratio of row 0: 0 if only equal signs are merged, else -1; the last row has ratio 1.
    weights : ndarray of float32, shape (n_ratios, grid)
        The light point's weight; column b has kernel entry b / (grid - 1).
    costs : ndarray of float32, shape (n_ratios, grid)
        What the merge loses, in units of the light coefficient's square times
        ``(1 - kernel entry)^2``.
    least : ndarray of float64, shape (3, grid)
        The smallest cost in each column; the column's exponent, -log of its kernel entry; and the
        smallest ``cost / (exponent share)^2`` up to this exponent, with the share of
        :func:`_mask`.
    """

    lowest: float
    weights: np.ndarray
    costs: np.ndarray
    least: np.ndarray


class Search(NamedTuple):
    """Which points are merged and how; see :class:`marginbench.solvers.budget.Merging`.

    Attributes
    ----------
    kind : {GOLDEN, FIXED_POINT, LOOKUP_WEIGHT, LOOKUP_COST}
    pairing : {SAME_LABEL, ANY_TWO, SAME_SIGN}
    tolerance : float
    lowest : float
        That of :class:`Tables`.
    """

    kind: int
    pairing: int
    tolerance: float
    lowest: float


@lru_cache(maxsize=4)
def merge_tables(grid: int, same_sign: bool) -> Tables:
    """The tables for this grid, read-only.

    The light coefficient over the heavy one is at most 1 in magnitude, so that the other half of
    the pairs, by symmetry, needs no entries.

    Parameters
    ----------
    grid : int >= 2
        Kernel entries, and ratios between 0 and 1, at which the optimum is computed.
    same_sign : bool
        Whether negative ratios are left out.
    """
    ratios = np.linspace(0.0, 1.0, grid) if same_sign else np.linspace(-1.0, 1.0, 2 * grid - 1)
    entries = np.linspace(0.0, 1.0, grid)
    weights = np.zeros((len(ratios), grid), dtype=np.float32)
    costs = np.zeros((len(ratios), grid), dtype=np.float32)
    fill_tables(ratios, entries, weights, costs)
    least = np.full((3, grid), np.inf)
    least[0] = (costs * np.square(1.0 - entries)).min(axis=0)
    least[1, 1:] = -np.log(entries[1:])
    shares = 1.0 / (1.0 + np.maximum(ratios, 0.0))
    # (1 - entry) / exponent goes from 0 to its limit 1.
    slopes = np.zeros(grid)
    slopes[1:-1], slopes[-1] = (1.0 - entries[1:-1]) / least[1, 1:-1], 1.0
    rises = (costs * np.square(slopes / shares[:, None])).min(axis=0)
    least[2] = np.minimum.accumulate(rises[::-1])[::-1]
    for array in (weights, costs, least):
        array.flags.writeable = False
    return Tables(float(ratios[0]), weights, costs, least)


@compiled(forceinline=True)
def find_partners(model, rule, light):
    """Choose the points to merge with ``light``: positions into ``chosen``; how many they are.

    ``distances`` must hold those from the newest point; they are computed anew for another one.
    """
    coef, distances, entries = model.coef, model.distances, model.entries
    scratch, partners, chosen = model.scratch, model.partners, model.chosen
    search, size = rule.search, model.counts.n_points
    if light != size - 1:
        _evaluate_from(model, light)
    else:
        model.counts.search_evals += size - 1
    nearest = _mask(model, light, search.pairing)
    if entries[nearest] == np.inf and size > 2:
        # The only one of its kind: the lightest of the others has partners.
        for j in range(size):
            scratch[j] = np.inf if j == light else abs(coef[j])
        light = smallest(model.scratch_bits, size)
        _evaluate_from(model, light)
        nearest = _mask(model, light, search.pairing)
    elif entries[nearest] == np.inf:
        nearest = _mask(model, light, ANY_TWO)

    limit = _FARTHEST
    if search.kind == LOOKUP_COST and len(chosen) == 2:
        ratio = coef[light] / coef[nearest]
        cost = _cost(search, rule.table, ratio, -np.float64(distances[nearest]))
        limit = max(_limit(rule.least, cost), np.float64(entries[nearest]))
    found = 0
    for j in range(size):
        # Without a branch, which could not be foreseen.
        partners[found] = j
        found += entries[j] <= limit
    for k in range(found):
        j = partners[k]
        scratch[k] = _cost(search, rule.table, coef[light] / coef[j], -np.float64(distances[j]))
    chosen[0] = light
    count = 1
    while count < min(len(chosen), found + 1):
        best = smallest(model.scratch_bits, found)
        scratch[best] = np.inf
        chosen[count] = partners[best]
        count += 1
    return count


@compiled(forceinline=True)
def _evaluate_from(model, light):
    """Distances from a point of the model to all of them."""
    x, counts = model.group[0], model.counts
    for f in range(len(x)):
        x[f] = model.points[f, light]
    squared_distances(x, model.points, width_of(counts.n_points), model.distances)
    counts.search_evals += counts.n_points - 1
    counts.computed += counts.n_points - 1


@compiled(forceinline=True)
def _mask(model, light, pairing):
    """``entries`` become the distances to possible partners, else infinity; the nearest one.

    Distances count by :func:`_share`: for small ones the loss is then at least twice their square.
    """
    coef, distances, entries, size = (
        model.coef,
        model.distances,
        model.entries,
        model.counts.n_points,
    )
    if pairing == SAME_SIGN:
        positive = coef[light] > 0.0
        for j in range(size):
            # _share for equal signs; the others do not count.
            share = coef[j] / (coef[j] + coef[light])
            entries[j] = distances[j] * share if (coef[j] > 0.0) == positive else np.inf
    elif pairing == SAME_LABEL:
        labels = model.labels
        label = labels[light]
        for j in range(size):
            near = distances[j] * _share(coef[j], coef[light])
            entries[j] = near if labels[j] == label else np.inf
    else:
        for j in range(size):
            entries[j] = distances[j] * _share(coef[j], coef[light])
    entries[light] = np.inf
    return smallest(model.entry_bits, size)


@compiled()
def _share(other, light):
    """The heavy coefficient's share of both, where they have the same sign; else 1."""
    added = abs(light) if (other > 0.0) == (light > 0.0) else 0.0
    return abs(other) / (abs(other) + added)


@compiled()
def _limit(least, cost):
    """A distance, as :func:`_mask` counts it, beyond which every partner costs more than this.

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


@compiled()
def _cost(search, table, ratio, log_entry):
    """What the pair's merge loses, in units of the light coefficient's square."""
    if search.kind == LOOKUP_COST and ratio >= search.lowest:
        return _look_up(search, table, ratio, log_entry) * math.expm1(log_entry) ** 2
    weight = _weight(search, table, ratio, log_entry)
    return degradation(weight, ratio, log_entry) / (ratio * ratio)


@compiled()
def _weight(search, table, ratio, log_entry):
    """Where the pair is merged: the light point's weight."""
    if search.kind == GOLDEN:
        return golden_weight(ratio, log_entry, search.tolerance)
    if search.kind == FIXED_POINT and ratio >= 0.0:
        return fixed_point_weight(ratio, log_entry, search.tolerance)
    if search.kind == LOOKUP_WEIGHT and ratio >= search.lowest:
        return _look_up(search, table, ratio, log_entry)
    return best_weight(ratio, log_entry)


@compiled()
def _look_up(search, table, ratio, log_entry):
    steps = table.shape[1] - 1
    return interpolated(table, (ratio - search.lowest) * steps, math.exp(log_entry) * steps)


@compiled(forceinline=True)
def merge_chosen(model, rule, count):
    """Merge ``chosen[:count]`` pair after pair into one point; the squared distance w moves."""
    points, coef, chosen, group = model.points, model.coef, model.chosen, model.group
    merged = len(group) - 1
    for k in range(count):
        for f in range(len(points)):
            group[k, f] = points[f, chosen[k]]
    for f in range(len(points)):
        group[merged, f] = group[0, f]
    coefficient = coef[chosen[0]]
    lost = 0.0
    for k in range(1, count):
        other = coef[chosen[k]]
        log_entry = -_squared_distance(group, merged, k)
        other_is_heavy = abs(other) >= abs(coefficient)
        heavy = other if other_is_heavy else coefficient
        ratio = (coefficient if other_is_heavy else other) / heavy
        weight = _weight(rule.search, rule.table, ratio, log_entry)
        lost = heavy * heavy * degradation(weight, ratio, log_entry)
        coefficient = heavy * merged_coefficient(weight, ratio, log_entry)
        share = 1.0 - weight if other_is_heavy else weight
        for f in range(len(points)):
            group[merged, f] += share * (np.float64(group[k, f]) - group[merged, f])
    if count > 2:
        model.counts.search_evals += count - 2
        model.counts.computed += count - 2
        coefficient, lost = _projected(coef, chosen, group, count)
    # Where parts have two labels, with a budget of 1, that of the partner, the heavier one.
    label = model.labels[chosen[1]] if len(model.labels) > 0 else 0.0
    _store(model, count, coefficient, label)
    return lost


@compiled()
def _projected(coef, chosen, group, count):
    """The best coefficient of the merged point for the whole group, and what is lost."""
    merged = len(group) - 1
    coefficient, squared_norm = 0.0, 0.0
    for a in range(count):
        beta = coef[chosen[a]]
        coefficient += beta * math.exp(-_squared_distance(group, a, merged))
        for b in range(count):
            entry = math.exp(-_squared_distance(group, a, b))
            squared_norm += beta * coef[chosen[b]] * entry
    return coefficient, max(squared_norm - coefficient * coefficient, 0.0)


@compiled()
def _squared_distance(group, a, b):
    total = 0.0
    for f in range(group.shape[1]):
        total += (np.float64(group[a, f]) - np.float64(group[b, f])) ** 2
    return total


@compiled(forceinline=True)
def _store(model, count, coefficient, label):
    """Put the merged point in the place of one of the chosen, and drop the others."""
    points, chosen, group = model.points, model.chosen, model.group
    for k in range(count):
        for later in range(k + 1, count):
            if chosen[later] > chosen[k]:
                chosen[k], chosen[later] = chosen[later], chosen[k]
    # From the back: what moves into a gap is then never one of the chosen.
    for k in range(count - 1):
        drop(model, chosen[k])
    place = chosen[count - 1]
    for f in range(len(points)):
        points[f, place] = group[len(group) - 1, f]
    model.coef[place] = coefficient
    model.owner[place] = -1
    if len(model.labels) > 0:
        model.labels[place] = label
