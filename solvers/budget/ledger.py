"""The running account of a budgeted run: time, kernel evaluations, the record of each epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from marginbench.solvers.budget.clock import HAS_TICKS
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
    Expansion,
)
from marginbench.solvers.budget.trace import BudgetObjectives, EpochRecord
from marginbench.solvers.numeric.counters import Counters


class Ledger:
    """Reads a model's own counts, charges them, and closes each epoch with a record.

    Parameters
    ----------
    model : Expansion
    counters : Counters
        Where kernel evaluations are charged.

    Attributes
    ----------
    n_iter : int
        Iterations since the start.
    """

    def __init__(self, model: Expansion, counters: Counters) -> None:
        self.n_iter = 0
        self._model = model
        self._counters = counters
        self._charged = model.counts.copy()
        self._epoch = 0
        self._open_epoch()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Adds what runs inside to the epoch's time."""
        started = time.perf_counter()
        yield
        self._seconds += time.perf_counter() - started

    def charge(self) -> None:
        """Charge what the compiled code evaluated since the last call."""
        spent = self._model.counts - self._charged
        self._counters.kernel_evals += int(spent[MARGIN_EVALS] + spent[SEARCH_EVALS])
        self._counters.kernel_evals_computed += int(spent[COMPUTED])
        self._charged = self._model.counts.copy()

    def close_epoch(self, objectives: BudgetObjectives | None) -> EpochRecord:
        """The record of the epoch that has ended; another one begins."""
        counts = [int(count) for count in self._model.counts - self._counts_before]
        self._epoch += 1
        record = EpochRecord(
            epoch=self._epoch,
            n_iter=self.n_iter,
            n_support=int(self._model.counts[SIZE]),
            iterations=self.n_iter - self._iterations_before,
            changes=counts[CHANGES],
            coalesced=counts[COALESCED],
            maintenance=counts[EVENTS],
            weight_degradation=float(self._model.degradation[0] - self._degradation_before),
            margin_evals=counts[MARGIN_EVALS],
            search_evals=counts[SEARCH_EVALS],
            seconds=self._seconds,
            maintenance_seconds=self._maintenance_seconds(counts),
            objectives=objectives,
        )
        self._open_epoch()
        return record

    def _open_epoch(self) -> None:
        self._counts_before = self._model.counts.copy()
        self._degradation_before = float(self._model.degradation[0])
        self._iterations_before = self.n_iter
        self._seconds = 0.0

    def _maintenance_seconds(self, counts: list[int]) -> float:
        """The share of the processor's ticks that maintenance took, of the measured seconds."""
        if not HAS_TICKS or counts[TICKS] <= 0:
            return math.nan
        return self._seconds * counts[MAINTENANCE_TICKS] / counts[TICKS]
