"""Merging: the lightest point and its best partner become one point (Gaussian kernel)."""

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
    fill_costs,
    golden_weight,
    interpolated,
    merged_coefficient,
)
from .state import drop

GOLDEN, LOOKUP = range(2)
SAME_LABEL, ANY_TWO, SAME_SIGN = range(3)
_FARTHEST = np.finfo(np.float64).max


class Tables(NamedTuple):
    """The loss of the optimal merge of two points on a grid of coefficient ratio and kernel entry.

    Attributes
    ----------
    lowest : float
        The ratio of row 0: 0 if only equal signs are merged, else -1; the last row has ratio 1.
    costs : ndarray of float32, shape (n_ratios, grid)
        What the merge loses, in units of the light coefficient's square times
        ``(1 - kernel entry)^2``; column b has kernel entry b / (grid - 1).
    least : ndarray of float64, shape (3, grid)
        The smallest cost in each column; the column's exponent, -log of its kernel entry; and the
        smallest ``cost / (exponent share)^2`` up to this exponent, with the share of
        :func:`_mask`.
    """

    lowest: float
    costs: np.ndarray
    least: np.ndarray


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
    costs = np.zeros((len(ratios), grid), dtype=np.float32)
    fill_costs(ratios, entries, costs)
    least = np.full((3, grid), np.inf)
    least[0] = (costs * np.square(1.0 - entries)).min(axis=0)
    least[1, 1:] = -np.log(entries[1:])
    shares = 1.0 / (1.0 + np.maximum(ratios, 0.0))
    # (1 - entry) / exponent goes from 0 to its limit 1.
    slopes = np.zeros(grid)
    slopes[1:-1], slopes[-1] = (1.0 - entries[1:-1]) / least[1, 1:-1], 1.0
    rises = (costs * np.square(slopes / shares[:, None])).min(axis=0)
    least[2] = np.minimum.accumulate(rises[::-1])[::-1]
    for array in (costs, least):
        array.flags.writeable = False
    return Tables(float(ratios[0]), costs, least)


@compiled(forceinline=True)
def merge_lightest(model, rule, light):
    """Merge ``light`` with the partner that loses least; the squared distance w moves.

    ``distances`` must hold those from the newest point; they are computed anew for another one.
    """
    coef, scratch, partners = model.coef, model.scratch, model.partners
    light, found = _candidates(model, rule, light)
    for k in range(found):
        j = partners[k]
        scratch[k] = _cost(rule, coef[light] / coef[j], -np.float64(model.distances[j]))
    return _merge(model, rule, light, partners[smallest(model.scratch_bits, found)])


@compiled(forceinline=True)
def _candidates(model, rule, light):
    """Put all partners that could be the best into ``partners``; the point to merge, how many.

    The loss grows with the distance: with a table of losses, that with the nearest partner bounds
    the distance of the best.
    """
    coef, distances, entries = model.coef, model.distances, model.entries
    scratch, partners, size = model.scratch, model.partners, model.counts.n_points
    if light != size - 1:
        _evaluate_from(model, light)
    else:
        model.counts.search_evals += size - 1
    nearest = _mask(model, light, rule.pairing)
    if entries[nearest] == np.inf and size > 2:
        # The only one of its kind: the lightest of the others has partners.
        for j in range(size):
            scratch[j] = np.inf if j == light else abs(coef[j])
        light = smallest(model.scratch_bits, size)
        _evaluate_from(model, light)
        nearest = _mask(model, light, rule.pairing)
    elif entries[nearest] == np.inf:
        nearest = _mask(model, light, ANY_TWO)

    limit = _FARTHEST
    if rule.search == LOOKUP:
        cost = _cost(rule, coef[light] / coef[nearest], -np.float64(distances[nearest]))
        limit = max(_limit(rule.least, cost), np.float64(entries[nearest]))
    found = 0
    for j in range(size):
        # Without a branch, which could not be foreseen.
        partners[found] = j
        found += entries[j] <= limit
    return light, found


@compiled(forceinline=True)
def _evaluate_from(model, light):
    """Distances from a point of the model to all of them."""
    x, counts = model.buffer, model.counts
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
def _cost(rule, ratio, log_entry):
    """What the pair's merge loses, in units of the light coefficient's square."""
    if rule.search == LOOKUP and ratio >= rule.lowest:
        steps = rule.costs.shape[1] - 1
        row, column = (ratio - rule.lowest) * steps, math.exp(log_entry) * steps
        return interpolated(rule.costs, row, column) * math.expm1(log_entry) ** 2
    weight = _weight(rule, ratio, log_entry)
    return degradation(weight, ratio, log_entry) / (ratio * ratio)


@compiled()
def _weight(rule, ratio, log_entry):
    """Where the pair is merged: the light point's weight."""
    if rule.search == GOLDEN:
        return golden_weight(ratio, log_entry, rule.tolerance)
    return best_weight(ratio, log_entry)


@compiled(forceinline=True)
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
    share = 1.0 - weight if other_is_heavy else weight
    for f in range(len(points)):
        start = points[f, light]
        merged[f] = start + share * (np.float64(points[f, partner]) - start)
    # Where parts have two labels, with a budget of 1, that of the partner, the heavier one.
    label = model.labels[partner] if len(model.labels) > 0 else 0.0
    # What moves into the gap is then not the other one.
    drop(model, max(light, partner))
    place = min(light, partner)
    for f in range(len(points)):
        points[f, place] = merged[f]
    coef[place] = heavy * merged_coefficient(weight, ratio, -distance)
    model.owner[place] = -1
    if len(model.labels) > 0:
        model.labels[place] = label
    return heavy * heavy * degradation(weight, ratio, -distance)
