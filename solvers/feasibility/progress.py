"""Stopping rules, and the history of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..interface.monitor import Monitor
from ..numeric.counters import Counters, FeasibilityCounters
from .result import FeasibilityResult, FeasibilityStatus, HistoryPoint
from .spaces import Space


class Progress:
    """Asked after every iteration: records bounds, and says when to stop."""

    def __init__(
        self,
        method: Any,
        space: Space,
        *,
        max_seconds: float = math.inf,
        monitor: Monitor | None = None,
        model_of: Callable[[np.ndarray], Any] | None = None,
    ) -> None:
        self.space = space
        self.max_iter, self.tol, self.ratio = method.max_iter, method.tol, method.history
        self.to_gap = method.stop == "gap"
        self.gap_certifies = method.gap_certifies or self.to_gap
        self.max_seconds = max_seconds
        self.monitor, self.model_of = monitor, model_of
        self.points: list[HistoryPoint] = []
        self._next_point = 1 if self.ratio is not None else math.inf
        self.n_iter, self.phi_lo, self.phi_up = 0, -math.inf, math.inf
        self.converged = self.stopped = False
        self._watched = 0
        self.message = self.limit = ""
        self.started, self.cpu_started = time.perf_counter(), time.process_time()

    def ends(
        self, n_iter: int, phi_lo: float, phi_up: float, separator: Callable[[], np.ndarray]
    ) -> bool:
        """Take note of an iteration; whether the run ends with it (MPFP14 Algorithm 1 line 4)."""
        self.n_iter, self.phi_lo, self.phi_up = n_iter, phi_lo, phi_up
        if n_iter >= self._next_point:
            self._record()
        if phi_lo > 0 and not self.to_gap and self.space.separates(separator(), phi_lo):
            return self._converged("a separating y was found")
        up = self.space.rounded_up(phi_up)
        residual = up - phi_lo if self.gap_certifies else up
        if residual <= self.tol - self.space.noise:
            what = "the saddle point residual" if self.gap_certifies else "||A x||"
            return self._converged(f"{what} is at most tol={self.tol!r}")
        if n_iter >= self.max_iter:
            self.give_up(f"max_iter={self.max_iter}", "iterations are done")
            return True
        if time.perf_counter() - self.started > self.max_seconds:
            self.give_up(f"max_seconds={self.max_seconds!r}", "are over")
            return True
        return self._monitor_ends(separator)

    def give_up(self, limit: str, rest: str, *, before: str = "") -> None:
        """End the run at a limit."""
        self.limit, self.message = limit, " ".join(filter(None, (before, limit, rest)))

    def of_zero_column(self, y: np.ndarray, j: int) -> FeasibilityResult:
        """The outcome without an iteration, for a problem with a column of zeros."""
        self.phi_lo = self.phi_up = 0.0
        self._converged(f"column {j} is zero, which no y separates")
        x = np.zeros(self.space.n)
        x[j] = 1.0
        return self.result(y, x)

    def result(self, y: np.ndarray, x: np.ndarray) -> FeasibilityResult:
        """The outcome; bounds are recomputed, the status is what they prove."""
        seconds = time.perf_counter() - self.started
        cpu_seconds = time.process_time() - self.cpu_started
        if self.points and self.points[-1].iteration < self.n_iter:
            self._record()
        low, up = self.space.bounds(y, x, self.phi_lo, self.phi_up)
        status: FeasibilityStatus
        if low > 0 and self.space.separates(y, low):
            status = "separable"
        elif (proof := self.space.inseparability_proof(x)) is not None:
            status = "inseparable"
            if proof is not x:
                x, (low, up) = proof, self.space.bounds(y, proof, low, 0.0)
        else:
            status = "margin_at_most_tol" if self.space.rounded_up(up) <= self.tol else "budget"
        spent = {name: getattr(self.space.counters, name) for name in Counters().as_dict()}
        spent |= {"iterations": self.n_iter, "matvecs": self.space.matvecs}
        counters = FeasibilityCounters(**spent)
        return FeasibilityResult(
            status=status, y=y, x=x, phi_lo=low, phi_up=up, n_iter=self.n_iter,
            converged=self.converged, tol=self.tol, message=self.message, counters=counters,
            seconds=seconds, history=tuple(self.points), limit=self.limit,
            cpu_seconds=cpu_seconds,
        )  # fmt: skip

    def _record(self) -> None:
        assert self.ratio is not None
        self._next_point = max(self.n_iter + 1, math.ceil(self.n_iter * self.ratio))
        seconds, evals = time.perf_counter() - self.started, self.space.counters.kernel_evals
        low, up = self.phi_lo, self.phi_up
        point = HistoryPoint(self.n_iter, low, up, up - low, seconds, self.space.matvecs, evals)
        self.points.append(point)

    def _monitor_ends(self, separator: Callable[[], np.ndarray]) -> bool:
        # The start of a run, or of a round, is no iteration of its own.
        if self.monitor is None or self.model_of is None or self.n_iter <= self._watched:
            return False
        counters, model_of = self.space.counters, self.model_of
        if self.monitor.due(counters.kernel_evals + counters.matvec_entries):
            self._watched = self.n_iter
            self.stopped = self.monitor.record(self.n_iter, lambda: model_of(separator()))
        if self.stopped:
            self.message = "stopped by the monitor"
        return self.stopped

    def _converged(self, message: str) -> bool:
        self.converged, self.message = True, message
        return True
