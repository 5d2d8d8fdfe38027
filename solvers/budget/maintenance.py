"""Budget maintenance: how a model with one point too many returns to its budget."""

from __future__ import annotations

from typing import NamedTuple

from .merging import (
    ANY_TWO,
    GOLDEN,
    LOOKUP,
    NO_TABLES,
    SAME_LABEL,
    SAME_SIGN,
    Tables,
    merge_lightest,
    merge_tables,
)
from .model import compiled, drop, smallest
from .projection import extend_gram, project

REMOVAL, PROJECTION, MERGING = range(3)

#: By the names that ``maintenance`` takes: what becomes of the point with the least ||beta phi(z)||
#: (dropped; expressed by the others; merged with the best partner), how a pair's best merge is
#: found, and the width at which golden section search ends.
STRATEGIES = {
    "merge": (MERGING, LOOKUP, 0.0),
    "merge-golden": (MERGING, GOLDEN, 0.01),
    "merge-golden-precise": (MERGING, GOLDEN, 1e-10),
    "project": (PROJECTION, GOLDEN, 0.0),
    "remove": (REMOVAL, GOLDEN, 0.0),
}
#: Which points may be merged.
PAIRINGS = {"label": SAME_LABEL, "any": ANY_TWO, "sign": SAME_SIGN}
# Kernel entries, and coefficient ratios, at which the tables of merging hold the optimum.
_GRID = 400


class Rule(NamedTuple):
    """A strategy as compiled code sees it."""

    kind: int  # {REMOVAL, PROJECTION, MERGING}
    search: int  # {GOLDEN, LOOKUP}
    pairing: int  # {SAME_LABEL, ANY_TWO, SAME_SIGN}
    tolerance: float
    tables: Tables


def rule_of(maintenance: str, pairing: str) -> Rule:
    """The compiled form of a strategy, for a pairing that only merging reads."""
    kind, search, tolerance = STRATEGIES[maintenance]
    allowed = PAIRINGS[pairing] if kind == MERGING else SAME_SIGN
    tables = merge_tables(_GRID, pairing == "sign") if search == LOOKUP else NO_TABLES
    return Rule(kind, search, allowed, tolerance, tables)


@compiled(inline="always")
def maintain(model, kernel, rule):
    """Take in the newest point and keep to the budget; the squared distance that w moves."""
    counts, scratch, size = model.counts, model.scratch, model.counts.n_points
    if rule.kind == PROJECTION:
        extend_gram(model, kernel, size - 1)
        counts.computed += size - 1
    if size <= model.budget:
        return 0.0
    # WCV12's p, and i of merging: the last of those with the least ||beta_j phi(z_j)||.
    for j in range(size):
        scratch[j] = abs(model.coef[j]) * model.roots[j]
    light = smallest(model.scratch, size)
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
    lost = norm * norm  # of removal
    if rule.kind == PROJECTION:
        lost = project(model, light)
    drop(model, light)
    return lost
