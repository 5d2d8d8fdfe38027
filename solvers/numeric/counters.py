"""Counters of solvers. Records, tables and figures pick up a new field automatically."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Self


def _counter(title: str, words: str, *, evaluation: bool = False, computed: bool = False) -> Any:
    """A counter that starts at zero."""
    described = {"title": title, "words": words, "evaluation": evaluation, "computed": computed}
    return field(default=0, metadata=described)


@dataclass
class Counters:
    """What a run has cost so far.

    Attributes
    ----------
    kernel_evals : int
        Kernel entries that a textbook run without any cache asks for. Constants that need no
        evaluation (the unit diagonal of a Gaussian kernel) are not entries.
    kernel_evals_computed : int
        Kernel entries really computed: what the cache held was free.
    matvec_entries : int
        Multiply-adds against a stored Gram matrix.
    inner_products : int
        Inner products of n_features numbers, for methods that work without a kernel.
    """

    kernel_evals: int = _counter("Kernel evals", "kernel evaluations", evaluation=True)
    kernel_evals_computed: int = _counter("Computed", "computed kernel entries", computed=True)
    matvec_entries: int = _counter(
        "Matrix entries", "entries of a stored kernel matrix used", evaluation=True, computed=True
    )
    inner_products: int = _counter(
        "Inner products", "inner products", evaluation=True, computed=True
    )

    def charge(self, kernel_evals: int, computed: int) -> None:
        """Count kernel entries here, and in what this process has served."""
        self.kernel_evals += kernel_evals
        self.kernel_evals_computed += computed
        SERVED.asked += kernel_evals
        SERVED.computed += computed

    @property
    def evaluations(self) -> int:
        """All that a textbook run asks for, one as one: kernel entries, inner products, ..."""
        kind: Any = type(self)
        return sum(getattr(self, name) for name in evaluation_counters(kind))

    def since(self, before: Counters) -> Self:
        """What has been added to an earlier state of these counters."""
        return type(self)(
            **{name: count - getattr(before, name) for name, count in self.as_dict().items()}
        )

    def as_dict(self) -> dict[str, Any]:
        """The counts by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass
class FeasibilityCounters(Counters):
    """What a run has cost, as a textbook run of the method counts it.

    Attributes
    ----------
    kernel_evals, kernel_evals_computed, matvec_entries, inner_products : int
        As in :class:`marginbench.Counters`. A product with A or A' is n inner products of m
        numbers.
    iterations : int
    matvecs : int
        Products of A or A' (or of a Gram matrix) with a vector, wherever they were made: a pass
        that yields four of them counts four. Those that check a certificate are not counted.
    """

    iterations: int = _counter("Iterations", "iterations")
    matvecs: int = _counter("Products", "matrix-vector products")


@dataclass
class Served:
    """Kernel entries that were asked for and computed in this process, all together.

    Nothing in a solver reads it; whoever watches a run compares its counters with it.
    """

    asked: int = 0
    computed: int = 0


SERVED = Served()


@cache
def evaluation_counters(counters: type[Any] = Counters) -> tuple[str, ...]:
    """Names of the counters that add up to the evaluations asked for."""
    return tuple(item.name for item in fields(counters) if item.metadata["evaluation"])


def computed_counters(counters: type[Counters] = Counters) -> tuple[str, ...]:
    """Names of the counters that add up to the evaluations really computed."""
    return tuple(item.name for item in fields(counters) if item.metadata["computed"])
