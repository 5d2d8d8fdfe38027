"""The compiled iterations of BSCA and BSGD, many to a call."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arithmetic import GAUSSIAN, kernel_row, weighted_sum, width_of
from .clock import ticks
from .compiling import compiled
from .maintenance import MERGING, PROJECTION
from .merging import merge_lightest
from .projection import extend_gram, project
from .state import coincident, distance_left, drop, lightest

ASCENT, DESCENT = range(2)


class Method(NamedTuple):
    """What a drawn point adds to a model."""

    kind: int  # {ASCENT, DESCENT}: :func:`_ascent` or :func:`_descent`
    y: np.ndarray  # float64, shape (n,): Labels, -1 or +1
    squares: np.ndarray  # float64, shape (n,): k(x_i, x_i); not read for the Gaussian kernel
    # float64, shape (n,): The method's dual variables, up to a factor; changed in place
    duals: np.ndarray
    step: float  # C for ASCENT, n C for DESCENT


@compiled()
def iterate(model, kernel, rule, method, drawn, index, done, start, limit):
    """Iterations on ``index[start:]``; returns the position where they ended."""
    points, coef, counts = model.points, model.coef, model.counts
    distances, entries = model.distances, model.entries
    y, duals, step = method.y, method.duals, method.step
    started, maintenance = ticks(), 0
    asked = counts.margin_evals + counts.search_evals
    position = start
    while position < len(index):
        i, x, size = index[position], drawn[position], counts.n_points
        square = 1.0 if kernel.kind == GAUSSIAN else method.squares[i]
        width = width_of(size)
        kernel_row(kernel, x, points, width, distances, entries)
        score = weighted_sum(coef, entries, width)
        counts.margin_evals += size
        counts.computed += size

        scale = 1.0
        if method.kind == ASCENT:
            coefficient = _ascent(duals, i, y[i], score, square, step)
        else:
            scale = 1.0 / (done + position + 1)
            coefficient = _descent(duals, i, y[i], score, step, done + position)
        if coefficient != 0.0:
            counts.changes += 1
            j = coincident(kernel.kind, distances, model.owner, size, i)
            if j >= 0:
                counts.coalesced += 1
                coef[j] += coefficient
                lost = distance_left(kernel.kind, distances[j], coefficient)
            else:
                _append(model, x, coefficient, math.sqrt(square), i, y[i])
                lost = 0.0
                if size == model.budget or rule.kind == PROJECTION:
                    before = ticks()
                    lost = maintain(model, kernel, rule)
                    maintenance += ticks() - before
            model.degradation[0] += scale * scale * lost
        position += 1
        if counts.margin_evals + counts.search_evals - asked >= limit:
            break
    counts.ticks += ticks() - started
    counts.maintenance_ticks += maintenance
    return position


@compiled()
def _ascent(alpha, i, label, score, square, C):
    """The exact step on alpha_i, kept within [0, C], as a change of w (BSCA18 eq. 3)."""
    slope = 1.0 - label * score
    if square > 0.0:
        target = min(max(alpha[i] + slope / square, 0.0), C)
    else:
        target = C if slope > 0.0 else 0.0
    step = target - alpha[i]
    alpha[i] = target
    return label * step


@compiled()
def _descent(violations, i, label, score, step, before):
    """The change of t w in iteration t = before + 1 (BSCA18 eq. 4).

    The iteration multiplies w by 1 - 1/t and adds ``y_i n C / t phi(x_i)`` if the margin was below
    1. The model holds ``t w``, which no decay touches, so ``score`` is ``before`` times that of w.
    """
    if before > 0 and label * score >= before:
        return 0.0
    violations[i] += 1.0
    return label * step


@compiled(forceinline=True)
def _append(model, x, coefficient, root, owner, label):
    """Make x the last point of the model."""
    points, size = model.points, model.counts.n_points
    for f in range(len(x)):
        points[f, size] = x[f]
    model.coef[size], model.roots[size], model.owner[size] = coefficient, root, owner
    if len(model.labels) > 0:
        model.labels[size] = label
    model.counts.n_points += 1


@compiled(forceinline=True)
def maintain(model, kernel, rule):
    """Take in the newest point and keep to the budget; the squared distance that w moves."""
    counts, scratch = model.counts, model.scratch
    size = counts.n_points
    if rule.kind == PROJECTION:
        extend_gram(model, kernel, size - 1)
        counts.computed += size - 1
    if size <= model.budget:
        return 0.0
    light = lightest(model)
    norm = scratch[light]
    if norm > 0.0:
        counts.events += 1
        if rule.kind == MERGING:
            return merge_lightest(model, rule, light)
    # Of equally light ones (with BSGD most are) the newest serves for merging, which has its row
    # already. To lose it would be to learn nothing: here the first one goes.
    first = 0
    while scratch[first] != norm:
        first += 1
    light = first
    lost = norm * norm
    if rule.kind == PROJECTION:
        lost = project(model, light)
    drop(model, light)
    return lost
