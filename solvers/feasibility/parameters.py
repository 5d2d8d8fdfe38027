"""Hyper-parameters that the feasibility methods on columns and with kernels have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..interface.convergence import warn_unconverged
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from .progress import Progress
from .result import FeasibilityResult
from .spaces import Space


@hyperparameters
class FeasibilityParameters:
    """When a method ends, and what it records until then.

    Parameters
    ----------
    max_iter : int >= 1
        Stop after this many iterations.
    tol : float >= 0
        Stop when ``||A x||`` is at most this.
    stop : {"certificate", "gap"}
        "certificate" stops at the first certificate of either kind; "gap" continues until
        ``phi_up - phi_lo`` is at most ``tol``, so that the margin is known to ``tol``.
    history : float >= 1 or None
        Record bounds at iterations that grow by this ratio (1: all of them); None for no history.
    """

    #: Whether a run ends by the saddle point residual; else by ||A x||.
    gap_certifies: ClassVar[bool] = False

    max_iter: int = 1_000_000
    tol: float = 1e-4
    stop: str = "certificate"
    history: float | None = None

    def _progress(
        self,
        space: Space,
        monitor: Monitor | None = None,
        model_of: Callable[[np.ndarray], Any] | None = None,
        max_seconds: float = math.inf,
    ) -> Progress:
        return Progress(
            space,
            max_iter=self.max_iter,
            tol=self.tol,
            stop=self.stop,
            history=self.history,
            max_seconds=max_seconds,
            gap_certifies=self.gap_certifies,
            monitor=monitor,
            model_of=model_of,
        )

    def _shortfall(self, result: FeasibilityResult) -> str:
        """What a run fell short of that a limit ended; empty if it has an answer.

        With ``stop="gap"`` and ``tol=0`` a run has no stopping rule but its limits.
        """
        if not result.limit or (self.stop == "gap" and self.tol == 0):
            return ""
        if self.stop == "certificate" and result.status != "budget":
            return ""
        low, up = result.margin_bounds
        return f"the margin is between {low:.3g} and {up:.3g}, tol={self.tol!r}"

    def _warn(self, result: FeasibilityResult) -> None:
        """Warn of a run that a limit ended; for :meth:`solve`, whose caller the warning names."""
        shortfall = self._shortfall(result)
        if shortfall:
            warn_unconverged(type(self).__name__, result.limit, shortfall)


@hyperparameters
class RoundParameters:
    """The rounds of the iterated smooth methods.

    Parameters
    ----------
    factor : float > 1
        What a round divides ``||A x||`` by; called gamma in the papers.
    mu0 : float > 0, "norm" or "n"
        The first smoothing parameter of each round. "norm" is twice a bound on ``||A||_2^2``, the
        least that the invariant is proven for; "n" is 2 n, as in the paper, which always suffices.
    max_rounds : int >= 1
        Stop after this many rounds.
    max_inner : int >= 1 or None
        Stop if a round takes more iterations; None for no limit but ``max_iter``.
    """

    factor: float = 2.0
    mu0: float | str = "norm"
    max_rounds: int = 1000
    max_inner: int | None = None
