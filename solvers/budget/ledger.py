"""The running account of a budgeted run: time, kernel evaluations, the record of each epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..numeric.counters import Counters
from .clock import HAS_TICKS
from .epochs import BudgetObjectives, EpochRecord
from .state import COUNTS, ModelState


class Ledger:
    """Reads a model's own counts, charges them, and closes each epoch with a record.

    Attributes
    ----------
    n_iter : int
        Iterations since the start.
    """

    def __init__(self, model: ModelState, counters: Counters) -> None:
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
        spent = self._since(self._charged)
        self._counters.charge(spent["margin_evals"] + spent["search_evals"], spent["computed"])
        self._charged = self._model.counts.copy()

    def close_epoch(self, objectives: BudgetObjectives | None) -> EpochRecord:
        """The record of the epoch that has ended; another one begins."""
        spent = self._since(self._counts_before)
        self._epoch += 1
        record = EpochRecord(
            epoch=self._epoch,
            n_iter=self.n_iter,
            n_support=int(self._model.counts["n_points"]),
            iterations=self.n_iter - self._iterations_before,
            changes=spent["changes"],
            coalesced=spent["coalesced"],
            maintenance=spent["events"],
            weight_degradation=float(self._model.degradation[0] - self._degradation_before),
            margin_evals=spent["margin_evals"],
            search_evals=spent["search_evals"],
            seconds=self._seconds,
            maintenance_seconds=self._maintenance_seconds(spent),
            objectives=objectives,
        )
        self._open_epoch()
        return record

    def _open_epoch(self) -> None:
        self._counts_before = self._model.counts.copy()
        self._degradation_before = float(self._model.degradation[0])
        self._iterations_before = self.n_iter
        self._seconds = 0.0

    def _since(self, before: np.void) -> dict[str, int]:
        """What has been counted since then."""
        assert COUNTS.names is not None
        return {name: int(self._model.counts[name] - before[name]) for name in COUNTS.names}

    def _maintenance_seconds(self, spent: dict[str, int]) -> float:
        """The share of the processor's ticks that maintenance took, of the measured seconds."""
        if not HAS_TICKS or spent["ticks"] <= 0:
            return math.nan
        return self._seconds * spent["maintenance_ticks"] / spent["ticks"]
