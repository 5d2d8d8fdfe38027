"""The loop that all cutting-plane methods share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..interface.problem import SolveStatus
from ..kernels.oracle import KernelOracle
from .finders import FINDERS, CutFinder
from .structure import Examples, StructuredProblem
from .working_set import WorkingSet


def make_cuts(
    oracle: KernelOracle,
    structure: StructuredProblem,
    examples: Examples,
    rng: np.random.Generator,
    *,
    finder: str,
    total: float,
    tol: float,
    stopping: str,
    n_samples: int,
    patience: int,
    max_idle: int,
    score_bytes: int,
) -> tuple[CutFinder, WorkingSet]:
    """The finder and the working set of a run."""
    found = FINDERS[finder](oracle, structure, examples, tol, stopping, rng, n_samples, patience)
    working = WorkingSet(
        oracle, structure.n_channels, structure.n_explicit, total, max_idle, score_bytes
    )
    return found, working


def add_cuts(
    finder: CutFinder, working: WorkingSet, max_cuts: int, pause: Callable[[int], bool]
) -> tuple[int, SolveStatus]:
    """Add violated cuts until none is found."""
    for n_cuts in range(max_cuts):
        found = finder.find(working)
        if found is None:
            return n_cuts, "converged" if finder.holds(working) else "budget"
        working.add(*found)
        if pause(n_cuts + 1):
            return n_cuts + 1, "stopped"
    return max_cuts, "budget"


def shortfall(finder: CutFinder) -> str:
    """What a run that ended at its limit achieved; empty where ``tol=0`` asks for the limit."""
    if not finder.tol:
        return ""
    return (
        f"the last cut lay {finder.violation:.2g} above the model, {finder.allowed:.2g} is allowed "
        f"by tol={finder.tol!r}"
    )
