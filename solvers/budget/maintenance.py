"""Budget maintenance: how a model with one point too many returns to its budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ..numeric.validation import check_one_of, check_positive, check_whole
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

_SEARCHES = {"golden": GOLDEN, "lookup-wd": LOOKUP}
#: Which points may be merged.
PAIRINGS = {"label": SAME_LABEL, "any": ANY_TWO, "sign": SAME_SIGN}


class Rule(NamedTuple):
    """A strategy as compiled code sees it."""

    kind: int  # {REMOVAL, PROJECTION, MERGING}
    search: int  # {GOLDEN, LOOKUP}
    pairing: int  # {SAME_LABEL, ANY_TWO, SAME_SIGN}
    tolerance: float
    tables: Tables


@compiled(inline="always")
def maintain(model, kernel, rule):
    """Take in the newest point and keep to the budget; the squared distance that w moves."""
    counts, scratch, size = model.counts, model.scratch, model.counts.n_points
    if rule.kind == PROJECTION:
        extend_gram(model, kernel, size - 1)
        counts.computed += size - 1
    if size <= model.budget:
        return 0.0
    # The last of those with the least ||beta_j phi(z_j)||.
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
    lost = norm * norm
    if rule.kind == PROJECTION:
        lost = project(model, light)
    drop(model, light)
    return lost


class Maintenance:
    """How a model goes back to its budget: one of :class:`Removal`, :class:`Projection`,
    :class:`Merging`, all of them compiled."""

    #: Only for kernels exp(-gamma ||x - z||^2).
    gaussian_only = False
    #: Whether the model's matrix of kernel entries is kept.
    keeps_gram = False
    _kind: ClassVar[int]

    def check(self) -> None:
        """Raise ValueError for a parameter out of range."""

    def rule(self, pairing: str) -> Rule:
        """The strategy's compiled form, for one of :data:`PAIRINGS`, which only merging reads."""
        return Rule(self._kind, GOLDEN, SAME_SIGN, 0.0, NO_TABLES)


@dataclass(frozen=True)
class Removal(Maintenance):
    """Drop the point with the least ``||beta phi(z)||``. Costs no kernel evaluation."""

    _kind = REMOVAL


@dataclass(frozen=True)
class Projection(Maintenance):
    """Drop that point, and let the others take over what they can of it.

    The others' coefficients change by ``beta K_RR^-1 k_R``, the projection onto their span
    (with a ridge of 1e-10 of the diagonal). Matrix and triangular factor are kept: a
    point that comes or goes costs time quadratic in the budget, and memory for two matrices.
    """

    keeps_gram = True
    _kind = PROJECTION


@dataclass(frozen=True)
class Merging(Maintenance):
    """Replace the point with the least |beta| and its best partner by one new point.

    The new point lies on the line through both, where the squared distance in feature space that w
    moves (the weight degradation) is least; its coefficient is the best for it. All points that
    the solver's ``pairing`` allows are tried as partners. Only for the Gaussian kernel.

    Parameters
    ----------
    search : {"lookup-wd", "golden"}, default="lookup-wd"
        How a pair's best merge is found. "golden": golden section search to ``tolerance``.
        "lookup-wd": the degradation from a table to choose the partner, then the place of this
        one merge by Newton's method.
    tolerance : float > 0, default=0.01
        Width at which golden section search ends.
    grid : int >= 2, default=400
        Kernel entries, and coefficient ratios, at which the tables hold the optimum.
    """

    search: str = "lookup-wd"
    tolerance: float = 0.01
    grid: int = 400
    gaussian_only = True

    def check(self) -> None:
        check_one_of("search", self.search, tuple(_SEARCHES))
        check_positive("tolerance", self.tolerance)
        check_whole("grid", self.grid, at_least=2)

    def rule(self, pairing: str) -> Rule:
        tables = NO_TABLES
        if self.search != "golden":
            tables = merge_tables(int(self.grid), pairing == "sign")
        search, allowed = _SEARCHES[self.search], PAIRINGS[pairing]
        return Rule(MERGING, search, allowed, float(self.tolerance), tables)


#: The strategies by the names that ``maintenance`` takes.
STRATEGIES: dict[str, Maintenance] = {
    "merge": Merging(),
    "merge-golden": Merging("golden"),
    "merge-golden-precise": Merging("golden", tolerance=1e-10),
    "project": Projection(),
    "remove": Removal(),
}


def strategy_of(maintenance: Any) -> Maintenance:
    """The strategy that a name or an object stands for."""
    if isinstance(maintenance, Maintenance):
        maintenance.check()
        return maintenance
    check_one_of("maintenance", maintenance, tuple(STRATEGIES))
    return STRATEGIES[maintenance]
