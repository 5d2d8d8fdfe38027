"""Budget maintenance: how a model with one point too many returns to its budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..numeric.validation import check_one_of, check_positive, check_whole
from .merging import ANY_TWO, GOLDEN, LOOKUP, SAME_LABEL, SAME_SIGN, merge_tables

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
    lowest: float
    costs: np.ndarray  # float32, shape (n_ratios, grid)
    least: np.ndarray  # float64, shape (3, grid); as in :class:`Tables`


class Maintenance(ABC):
    """How a model goes back to its budget: one of :class:`Removal`, :class:`Projection`,
    :class:`Merging`, all of them compiled."""

    #: Only for kernels exp(-gamma ||x - z||^2).
    gaussian_only = False
    #: Whether the model's matrix of kernel entries is kept.
    keeps_gram = False

    def check(self) -> None:  # noqa: B027 (a strategy without parameters has nothing to check)
        """Raise ValueError for a parameter out of range."""

    @abstractmethod
    def rule(self, pairing: str) -> Rule:
        """The strategy's compiled form, for one of :data:`PAIRINGS`, which only merging reads."""


@dataclass(frozen=True)
class Removal(Maintenance):
    """Drop the point with the least ``||beta phi(z)||``. Costs no kernel evaluation."""

    def rule(self, pairing: str) -> Rule:
        """The strategy's compiled form."""
        return _rule(REMOVAL)


@dataclass(frozen=True)
class Projection(Maintenance):
    """Drop that point, and let the others take over what they can of it.

    The others' coefficients change by ``beta K_RR^-1 k_R``, the projection onto their span
    (with a ridge of 1e-10 of the diagonal). Matrix and triangular factor are kept: a
    point that comes or goes costs time quadratic in the budget, and memory for two matrices.
    """

    keeps_gram = True

    def rule(self, pairing: str) -> Rule:
        """The strategy's compiled form."""
        return _rule(PROJECTION)


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
        """Raise ValueError for a parameter out of range."""
        check_one_of("search", self.search, tuple(_SEARCHES))
        check_positive("tolerance", self.tolerance)
        check_whole("grid", self.grid, at_least=2)

    def rule(self, pairing: str) -> Rule:
        """The strategy's compiled form."""
        rule = _rule(MERGING)._replace(
            search=_SEARCHES[self.search],
            pairing=PAIRINGS[pairing],
            tolerance=float(self.tolerance),
        )
        if self.search == "golden":
            return rule
        return rule._replace(**merge_tables(int(self.grid), pairing == "sign")._asdict())


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


def _rule(kind: int) -> Rule:
    """The rule of a strategy that merges nothing; its tables have the same types as real ones."""
    costs, least = np.zeros((2, 2), dtype=np.float32), np.zeros((3, 2))
    for array in (costs, least):
        array.flags.writeable = False
    return Rule(kind, GOLDEN, SAME_SIGN, 0.0, 0.0, costs, least)
