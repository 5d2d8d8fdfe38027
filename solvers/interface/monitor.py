"""How a run is watched: the protocol between a solver and whoever records its progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from ..models import Model
from ..numeric.counters import Counters


class Monitor:
    """Watches a fit; this base class does nothing and costs one comparison per question.

    A solver calls :meth:`due` with its count of kernel evaluations as often as it likes, and
    :meth:`record` when the answer is yes. What a monitor does there is not the solver's work: it
    stops the clocks first and must leave the solver's random stream alone.
    """

    #: The count of kernel evaluations at which the next checkpoint is due.
    next_checkpoint: float = math.inf

    def start(self, counters: Counters | None) -> None:
        """The solve begins now. ``counters`` stay live; None if the solver does not count."""

    def due(self, kernel_evals: int) -> bool:
        """Whether a checkpoint is due at this count of kernel evaluations."""
        return kernel_evals >= self.next_checkpoint

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint; ``snapshot`` builds the predictor as it stands.

        Returns
        -------
        bool
            True to ask the solver to stop.
        """
        return False

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """An epoch of n iterations has ended and others follow: :meth:`record`, if wanted."""
        return False

    def after_epoch(self, counters: Counters, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """An epoch has ended that charges few evaluations, or none: :meth:`record` or its like."""
        if self.due(counters.evaluations):
            return self.record(n_iter, snapshot)
        return self.epoch_ended(n_iter, snapshot)

    def paused(self) -> AbstractContextManager[None]:
        """What runs inside is not the solver's work (such as objectives for its own trace)."""
        return nullcontext()

    def finish(self, n_iter: int, model: Model) -> None:
        """The solve has ended with this model."""
