"""Projection: the lightest point is replaced by its best expression in the others (any kernel).

The matrix of kernel entries is kept, and with it a triangular factor that follows every change of
the points: a point comes or goes, and its share is solved for, in time quadratic in the budget.
"""

from __future__ import annotations

import math

import numpy as np

from .model import GAUSSIAN, compiled

# Added to the diagonal, as a fraction of it: points that depend on others are no obstacle.
_RIDGE = 1e-10
# Below every square that matters; keeps the pivot of a point with phi(z) = 0 from being 0.
_TINY = 1e-300


@compiled(inline="always")
def extend_gram(model, kernel, new):
    """Kernel entries of the newest point with all others, in float64, and the grown factor."""
    gram, factor, order, column = model.gram, model.factor, model.order, model.scratch
    points = model.points
    for j in range(new):
        total = 0.0
        if kernel.kind == GAUSSIAN:
            for f in range(len(points)):
                total += (np.float64(points[f, j]) - np.float64(points[f, new])) ** 2
            entry = math.exp(-total)
        else:
            for f in range(len(points)):
                total += np.float64(points[f, j]) * np.float64(points[f, new])
            entry = (kernel.gamma * total + kernel.coef0) ** kernel.degree
        gram[j, new] = gram[new, j] = entry
    gram[new, new] = model.roots[new] ** 2
    for k in range(new):
        column[k] = gram[order[k], new]
    _solve_lower(factor, column, new)
    pivot = gram[new, new] * (1.0 + _RIDGE)
    for k in range(new):
        factor[k, new] = column[k]
        pivot -= column[k] ** 2
    factor[new, new] = math.sqrt(max(pivot, _RIDGE * gram[new, new] + _TINY))
    order[new] = new


@compiled(inline="always")
def project(model, p):
    """Give point p's part to the others, beta_R += beta_p K_RR^-1 k_Rp; what is lost.

    Gram matrix and factor let go of the point; the model has still to drop it.
    """
    coef, gram, factor, order = model.coef, model.gram, model.factor, model.order
    share, carried, size = model.scratch, model.carried, model.counts.n_points
    rest = size - 1
    _take_from_factor(factor, order, carried, size, p)
    # share = K_RR^-1 k_Rp beta_p, in the order of the factor.
    for k in range(rest):
        share[k] = coef[p] * gram[order[k], p]
    _solve_lower(factor, share, rest)
    _solve_upper(factor, share, rest)
    # In the order of the points; what is lost is beta_p phi_p - sum_j delta_j phi_j.
    delta = carried
    for k in range(rest):
        delta[order[k]] = share[k]
    delta[p] = -coef[p]
    # As it is, ridge and rounding included.
    lost = max(_quadratic_form(gram, delta, size), 0.0)
    for j in range(size):
        coef[j] += delta[j]
    if p != rest:
        for j in range(rest):
            gram[p, j] = gram[j, p] = gram[rest, j]
        gram[p, p] = gram[rest, rest]
        for k in range(rest):
            if order[k] == rest:
                order[k] = p
    return lost


@compiled()
def _solve_lower(factor, b, size):
    """b <- factor'^-1 b; the rows of the factor are read one after the other."""
    for k in range(size):
        b[k] /= factor[k, k]
        value = b[k]
        for j in range(k + 1, size):
            b[j] -= value * factor[k, j]


@compiled(fastmath={"reassoc", "contract"})
def _solve_upper(factor, b, size):
    """b <- factor^-1 b."""
    for k in range(size - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, size):
            total -= factor[k, j] * b[j]
        b[k] = total / factor[k, k]


@compiled(fastmath={"reassoc", "contract"})
def _quadratic_form(matrix, v, size):
    total = 0.0
    for i in range(size):
        inner = 0.0
        for j in range(size):
            inner += matrix[i, j] * v[j]
        total += v[i] * inner
    return total


@compiled()
def _take_from_factor(factor, order, carried, size, p):
    """Delete point p from the factor: its row is worked into those behind it."""
    at = 0
    while order[at] != p:
        at += 1
    for j in range(at, size - 1):
        carried[j] = factor[at, j + 1]
    for k in range(at):
        for j in range(at, size - 1):
            factor[k, j] = factor[k, j + 1]
    for k in range(at, size - 1):
        order[k] = order[k + 1]
        # A rotation takes entry k of the carried row to zero.
        pivot = math.hypot(factor[k + 1, k + 1], carried[k])
        cosine, sine = factor[k + 1, k + 1] / pivot, carried[k] / pivot
        factor[k, k] = pivot
        for j in range(k + 1, size - 1):
            kept = factor[k + 1, j + 1]
            factor[k, j] = cosine * kept + sine * carried[j]
            carried[j] = cosine * carried[j] - sine * kept
