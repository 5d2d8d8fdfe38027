"""Merging two points of a Gaussian expansion into one, in closed form.

Of the two, call the one with the larger coefficient magnitude the heavy one. With its coefficient
taken as 1, the light one has the ratio ``r`` in [-1, 1], and ``log_entry <= 0`` is the logarithm of
their kernel entry kappa. The merged point is ``z = z_heavy + t (z_light - z_heavy)``; ``t`` is the
light point's weight: 0 to 1/2 at the optimum for equal signs, negative for opposite ones. Then

    k(z_heavy, z) = kappa^(t^2),    k(z_light, z) = kappa^((1 - t)^2),

the best coefficient is their sum weighted by 1 and r, and what is lost, the squared distance in
feature space, is ``1 + r^2 + 2 r kappa`` less the square of that sum.
"""

from __future__ import annotations

import math

import numpy as np

from .compiling import compiled

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Beyond this weight an opposite pair is not extrapolated.
LOWEST_WEIGHT = -5.0
_NEWTON_STEPS = 60
_PRECISION = 1e-12
_TINY = 1e-300


@compiled()
def merged_coefficient(weight, ratio, log_entry):
    """The best coefficient of the merged point, the heavy one's being 1."""
    rest = 1.0 - weight
    return math.exp(weight * weight * log_entry) + ratio * math.exp(rest * rest * log_entry)


@compiled()
def degradation(weight, ratio, log_entry):
    """||phi(z_heavy) + r phi(z_light) - c phi(z)||^2 with the best c.

    Written in differences from 1, so that a light partner's small loss keeps its digits.
    """
    rest = 1.0 - weight
    lost = -math.expm1(2.0 * weight * weight * log_entry)
    lost -= 2.0 * ratio * _rise(log_entry, 2.0 * weight * rest)
    lost -= ratio * ratio * math.expm1(2.0 * rest * rest * log_entry)
    return max(lost, 0.0)


@compiled()
def _rise(log_entry, share):
    """kappa^(1 - share) - kappa; as a product it keeps its digits, unless that overflows."""
    if share * log_entry < -600.0:
        return math.exp((1.0 - share) * log_entry) - math.exp(log_entry)
    return math.exp(log_entry) * math.expm1(-share * log_entry)


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
        bound = LOWEST_WEIGHT
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
        if weight <= LOWEST_WEIGHT:
            return LOWEST_WEIGHT
        if abs(step) <= _PRECISION * abs(weight):
            break
    return min(weight, 0.5)


@compiled()
def golden_weight(ratio, log_entry, tolerance):
    """The weight by golden section search, on [0, 1] for equal signs, else on [-5, 0].

    The middle of the last interval; or 0, where that is better: for points far apart the optimum
    is nearer to the heavy one than any tolerance.
    """
    low, high = (0.0, 1.0) if ratio >= 0.0 else (LOWEST_WEIGHT, 0.0)
    p, q = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_p = merged_coefficient(p, ratio, log_entry)
    at_q = merged_coefficient(q, ratio, log_entry)
    while high - low >= tolerance:
        # Where both vanish, stay at the heavy point, which is at 0.
        if at_p > at_q or (at_p == at_q and ratio >= 0.0):
            high, q, at_q = q, p, at_p
            p = high - _GOLDEN * (high - low)
            at_p = merged_coefficient(p, ratio, log_entry)
        else:
            low, p, at_p = p, q, at_q
            q = low + _GOLDEN * (high - low)
            at_q = merged_coefficient(q, ratio, log_entry)
    weight = 0.5 * (low + high)
    better = merged_coefficient(weight, ratio, log_entry) > merged_coefficient(
        0.0, ratio, log_entry
    )
    return weight if better else 0.0


@compiled()
def fill_costs(ratios, entries, costs):
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
                near = r / (1.0 + r) > LOWEST_WEIGHT if r > -1.0 else False
                costs[a, b] = 2.0 / (1.0 + r) ** 2 if near else costs[a, b - 1]
            elif r == 0.0:
                # The limit: t = r kappa.
                costs[a, b] = (1.0 - kappa * kappa * (1.0 - 2.0 * log_entry)) / square
            else:
                costs[a, b] = degradation(best_weight(r, log_entry), r, log_entry) / (
                    r * r * square
                )


@compiled()
def interpolated(table, row, column):
    """Bilinear interpolation at fractional indices within the table."""
    a = min(int(row), table.shape[0] - 2)
    b = min(int(column), table.shape[1] - 2)
    u, v = row - a, column - b
    low = np.float64(table[a, b]) * (1.0 - v) + np.float64(table[a, b + 1]) * v
    high = np.float64(table[a + 1, b]) * (1.0 - v) + np.float64(table[a + 1, b + 1]) * v
    return low * (1.0 - u) + high * u
