"""Several classes: each against the rest, one problem after the other, with one kernel oracle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from ..models import Model, OneVsRestModel
from .monitor import Monitor
from .problem import Solution, SolveStatus


def together(solutions: list[Solution], n_classes: int) -> Solution:
    """The solutions of the classes as one; "converged" if every class did."""
    ends = [solution.status for solution in solutions]
    precedence: tuple[SolveStatus, ...] = ("stopped", "budget", "no_separator", "converged")
    short = [solution for solution in solutions if solution.shortfall]
    words = f"{len(short)} of {n_classes} classes, in the first of them "
    return Solution(
        of_classes([solution.model for solution in solutions], n_classes),
        sum(solution.n_iter for solution in solutions),
        next(status for status in precedence if status in ends),
        words + short[0].shortfall if short else "",
        short[0].ended_at if short else "",
    )


def of_classes(models: list[Model], n_classes: int) -> OneVsRestModel:
    """The predictors of the classes as one, of those that were trained so far."""
    return OneVsRestModel((*models, *[None] * (n_classes - len(models))))


class ClassMonitor(Monitor):
    """Shows the run of one class as a part of that of all: iterations are added up."""

    def __init__(self, outer: Monitor, before: list[Solution], n_classes: int) -> None:
        self._outer = outer
        self._n_iter = sum(solution.n_iter for solution in before)
        self._models = [solution.model for solution in before]
        self._n_classes = n_classes

    @property
    def next_checkpoint(self) -> float:  # type: ignore[override]
        return self._outer.next_checkpoint

    def due(self, kernel_evals: int) -> bool:
        return self._outer.due(kernel_evals)

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        return self._outer.record(self._n_iter + n_iter, self._whole(snapshot))

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        return self._outer.epoch_ended(self._n_iter + n_iter, self._whole(snapshot))

    def paused(self) -> AbstractContextManager[None]:
        return self._outer.paused()

    def _whole(self, snapshot: Callable[[], Model]) -> Callable[[], Model]:
        return lambda: of_classes([*self._models, snapshot()], self._n_classes)
