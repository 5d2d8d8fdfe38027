"""The compiled iterations of BSCA and BSGD, many to a call."""

from __future__ import annotations

import math

from marginbench.solvers.budget.arithmetic import GAUSSIAN, kernel_row, weighted_sum, width_of
from marginbench.solvers.budget.clock import ticks
from marginbench.solvers.budget.compiling import compiled
from marginbench.solvers.budget.expansion import (
    CHANGES,
    COALESCED,
    COMPUTED,
    EVENTS,
    MAINTENANCE_TICKS,
    MARGIN_EVALS,
    SEARCH_EVALS,
    SIZE,
    TICKS,
    coincident,
    distance_left,
    drop,
    lightest,
)
from marginbench.solvers.budget.maintenance import MERGING, PROJECTION
from marginbench.solvers.budget.merging import find_partners, merge_chosen
from marginbench.solvers.budget.projection import extend_gram, project

ASCENT, DESCENT = range(2)


@compiled()
def iterate(
    model, kernel, rule, budget, rows, index, y, squares, method, duals, step, done, start, limit
):
    """Iterations on ``index[start:]``; returns the position where they ended.

    Parameters
    ----------
    model : Expansion
    kernel : KernelCode
    rule : Rule
    budget : int
    rows : ndarray, shape (len(index), n_features)
        The points of ``index``.
    index : ndarray of int64
        The draws of a block.
    y, squares : ndarray, shape (n,)
        Labels, and k(x_i, x_i); ``squares`` is not read for the Gaussian kernel.
    method : {ASCENT, DESCENT}
        What a drawn point adds: :func:`_ascent` or :func:`_descent`.
    duals : ndarray of float64, shape (n,)
        The method's dual variables, up to a factor.
    step : float
        C for ASCENT, n C for DESCENT.
    done : int
        Iterations before the block.
    start : int
        Where in the block to begin.
    limit : int
        End early when the kernel evaluations of this call reach it.
    """
    points, coef, roots, owner = model.points, model.coef, model.roots, model.owner
    distances, entries, counts = model.distances, model.entries, model.counts
    started, maintenance = ticks(), 0
    asked = counts[MARGIN_EVALS] + counts[SEARCH_EVALS]
    position = start
    while position < len(index):
        i, x, size = index[position], rows[position], counts[SIZE]
        square = 1.0 if kernel.kind == GAUSSIAN else squares[i]
        width = width_of(size)
        kernel_row(kernel, x, points, width, distances, entries)
        score = weighted_sum(coef, entries, width)
        counts[MARGIN_EVALS] += size
        counts[COMPUTED] += size

        scale = 1.0
        if method == ASCENT:
            coefficient = _ascent(duals, i, y[i], score, square, step)
        else:
            scale = 1.0 / (done + position + 1)
            coefficient = _descent(duals, i, y[i], score, step, done + position)
        if coefficient != 0.0:
            counts[CHANGES] += 1
            j = coincident(kernel.kind, distances, owner, size, i)
            if j >= 0:
                counts[COALESCED] += 1
                coef[j] += coefficient
                lost = distance_left(kernel.kind, distances[j], coefficient)
            else:
                for f in range(len(x)):
                    points[f, size] = x[f]
                coef[size], roots[size], owner[size] = coefficient, math.sqrt(square), i
                counts[SIZE] += 1
                lost = 0.0
                if size == budget or rule.kind == PROJECTION:
                    before = ticks()
                    lost = maintain(
                        kernel, rule, budget, points, coef, roots, owner, distances, entries,
                        model.entry_bits, model.scratch, model.scratch_bits, model.partners,
                        model.chosen, model.group, model.gram, model.factor, model.order,
                        model.carried, counts,
                    )  # fmt: skip
                    maintenance += ticks() - before
            model.degradation[0] += scale * scale * lost
        position += 1
        if counts[MARGIN_EVALS] + counts[SEARCH_EVALS] - asked >= limit:
            break
    counts[TICKS] += ticks() - started
    counts[MAINTENANCE_TICKS] += maintenance
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


@compiled()
def maintain(
    kernel, rule, budget, points, coef, roots, owner, distances, entries, entry_bits, scratch,
    scratch_bits, partners, chosen, group, gram, factor, order, carried, counts,
):  # fmt: skip
    """Take in the newest point and keep to the budget; the squared distance that w moves."""
    size = counts[SIZE]
    if rule.kind == PROJECTION:
        extend_gram(kernel, points, roots, gram, factor, order, scratch, size - 1)
        counts[COMPUTED] += size - 1
    if size <= budget:
        return 0.0
    light = lightest(coef, roots, scratch, scratch_bits, size)
    norm = scratch[light]
    if norm > 0.0:
        counts[EVENTS] += 1
        if rule.kind == MERGING:
            count = find_partners(
                points, coef, distances, entries, entry_bits, scratch, scratch_bits, partners,
                chosen, group, counts, rule.search, rule.table, rule.least, light,
            )  # fmt: skip
            return merge_chosen(
                points, coef, roots, owner, chosen, group, counts, rule.search, rule.table, count
            )
    # Of equally light ones (with BSGD most are) the newest serves for merging, which has its row
    # already. To lose it would be to learn nothing: here the first one goes.
    first = 0
    while scratch[first] != norm:
        first += 1
    light = first
    lost = norm * norm
    if rule.kind == PROJECTION:
        lost = project(coef, gram, factor, order, scratch, carried, size, light)
    counts[SIZE] = drop(points, coef, roots, owner, size, light)
    return lost
