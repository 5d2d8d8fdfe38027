"""Checks of the counters: against a kernel that counts its own entries, and the oracles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...solvers.interface.base import Solver
from ...solvers.models import LinearModel
from ..evaluation.tracing import Served
from .findings import MendError, NotApplicableError
from .subject import GAMMA, Subject, Watch, overlapping


class _CountingKernel:
    """A Gaussian kernel, as a function, that counts the entries it computes."""

    def __init__(self) -> None:
        self.entries = 0

    def __call__(self, A: Any, B: Any) -> Any:
        self.entries += len(A) * len(B)
        return np.exp(-GAMMA * np.square(A[:, None] - B).sum(axis=2))


def counters(subject: Subject) -> None:
    """What the solver counts is what was asked for and what was computed."""
    cls = subject.cls
    if not cls.instrumented:
        raise NotApplicableError("the class says that it counts nothing (instrumented = False)")
    seen = "kernel" in subject.defaults and cls.supports_callable_kernel
    if seen:
        for given in ({"cache_size": 0.0}, {"cache_size": 1.0}):
            _compare_with_kernel(subject, given)
    # A method that needs no entries counts none; but only a kernel that counts can tell.
    _compare_with_oracles(subject, may_be_zero=seen)


def _compare_with_kernel(subject: Subject, given: dict[str, float]) -> None:
    kernel = _CountingKernel()
    solver = subject.make(kernel=kernel, dtype="float64", **given)
    _, counts = _fitted(solver)
    if counts["kernel_evals_computed"] != kernel.entries:
        raise MendError(
            f"{kernel.entries} kernel entries were computed, but kernel_evals_computed is "
            f"{counts['kernel_evals_computed']}; take every entry from problem.oracle, and leave "
            "counting to it"
        )


def _compare_with_oracles(subject: Subject, *, may_be_zero: bool) -> None:
    served, solver = Served(), subject.make()
    _, counts = _fitted(solver)
    for name, least in served.since().items():
        if counts[name] < least:
            raise MendError(
                f"{name} is {counts[name]}, but the oracle has handed out {least}; never change "
                "the counters of the oracle"
            )
    if not may_be_zero and not sum(counts.values()):
        what = "inner_products" if isinstance(solver.model_, LinearModel) else "kernel_evals"
        raise MendError(
            f"it counts nothing; take kernel entries from problem.oracle, count other work in "
            f"problem.counters.{what}, or set instrumented = False"
        )


def _fitted(solver: Solver) -> tuple[Solver, dict[str, int]]:
    """The fitted solver and its counts, none of which may have fallen on the way."""
    watch = Watch()
    solver.fit(*overlapping(), monitor=watch)
    counts = [seen.counts for seen in watch.seen]
    if solver.counters_ is None:
        raise MendError("counters_ is None although instrumented is True; do not replace it")
    counts.append(solver.counters_.as_dict())
    for before, after in pairwise(counts):
        fallen = [name for name, count in after.items() if count < before[name]]
        if fallen:
            raise MendError(f"{fallen[0]} falls during the run; counts may only rise")
    return solver, counts[-1]
