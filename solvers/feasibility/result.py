"""The result of a feasibility method: bounds, certificate, counters, history."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ..numeric.counters import FeasibilityCounters

FeasibilityStatus = Literal["separable", "inseparable", "margin_at_most_tol", "budget"]


class HistoryPoint(NamedTuple):
    """Bounds and costs after an iteration."""

    iteration: int
    # As in :class:`FeasibilityResult`, from running sums.
    phi_lo: float
    phi_up: float
    residual: float
    seconds: float  # Wall-clock time since the start
    matvecs: int  # Counted so far, like the next
    kernel_evals: int


@dataclass(frozen=True)
class FeasibilityResult:
    """The outcome of a feasibility method.

    The bounds hold for the value of the saddle point problem, ``max(rho, 0)``:
    ``phi_lo <= max(rho, 0) <= phi_up``.

    Attributes
    ----------
    status : {"separable", "inseparable", "margin_at_most_tol", "budget"}
        "separable": y separates, ``A'y > 0``. "inseparable": it is proven that nothing separates;
        the proof follows from x, also where ``||A x||`` is not 0. "margin_at_most_tol": x is an
        epsilon-solution of the alternative, ``||A x|| <= tol``, so that the margin is at most
        ``tol``; whether there is a separator is not known. "budget": a limit was met before any of
        these.
    y : ndarray of float64, shape (m,), or (n,) for a Gram matrix
        The last point of the unit ball; for a Gram matrix, its coefficients on the unit columns.
    x : ndarray of float64, shape (n,)
        The last point of the simplex (of the cone's base).
    phi_lo : float
        ``min_j A_j'y``, for a cone the least value over its base.
    phi_up : float
        ``||A x||``.
    n_iter : int
    converged : bool
        Whether the method's own stopping rule ended it.
    tol : float
        The epsilon of the run.
    message : str
        Why it ended.
    counters : FeasibilityCounters
    seconds : float
        Wall-clock time of the iterations.
    history : tuple of HistoryPoint
        Empty unless it was asked for.
    limit : str
        The limit that ended it, such as "max_iter=1000"; empty if none did.
    cpu_seconds : float
        CPU time of the iterations; NaN if it was not measured.
    """

    status: FeasibilityStatus
    y: np.ndarray
    x: np.ndarray
    phi_lo: float
    phi_up: float
    n_iter: int
    converged: bool
    tol: float
    message: str
    counters: FeasibilityCounters
    seconds: float
    history: tuple[HistoryPoint, ...] = field(default=(), repr=False)
    limit: str = ""
    cpu_seconds: float = math.nan

    @property
    def certificate(self) -> np.ndarray | None:
        """y if separable; x if inseparable, or if the margin is at most tol; None for "budget"."""
        if self.status == "budget":
            return None
        return self.y if self.status == "separable" else self.x

    @property
    def margin_bounds(self) -> tuple[float, float]:
        """The interval in which ``max(rho, 0)`` is proven to be: 0 only if nothing separates.

        Up to the rounding of its ends: squares of lengths from a Gram matrix are known to
        some 1e-16 n, so that margins of 1e-8 and less have few digits.
        """
        if self.status == "inseparable":
            return 0.0, 0.0
        return max(self.phi_lo, 0.0), self.phi_up

    def __str__(self) -> str:
        low, up = (f"{value:.3g}" for value in self.margin_bounds)
        verdict = {
            "separable": f"separable: the margin is between {low} and {up}",
            "inseparable": "inseparable: a convex combination of the columns is 0",
            "margin_at_most_tol": f"the margin is at most {up} (tol={self.tol!r})",
            "budget": f"no verdict: the margin is between {low} and {up}",
        }[self.status]
        return f"{verdict}; {self.n_iter} iterations, {self.message}"

    @property
    def residual(self) -> float:
        """The saddle point residual ``phi_up - phi_lo``."""
        return self.phi_up - self.phi_lo
