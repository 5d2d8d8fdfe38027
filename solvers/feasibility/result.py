"""What a feasibility method hands back: bounds, certificate, counters, history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from marginbench.solvers.kernels.oracle import Counters

FeasibilityStatus = Literal["separable", "inseparable", "budget"]


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

    iterations: int = 0
    matvecs: int = 0


class HistoryPoint(NamedTuple):
    """Bounds and costs after an iteration.

    Attributes
    ----------
    iteration : int
    phi_lo, phi_up, residual : float
        As in :class:`FeasibilityResult`, from running sums.
    seconds : float
        Wall-clock time since the start.
    matvecs, kernel_evals : int
        Counted so far.
    """

    iteration: int
    phi_lo: float
    phi_up: float
    residual: float
    seconds: float
    matvecs: int
    kernel_evals: int


@dataclass(frozen=True)
class FeasibilityResult:
    """The outcome of a feasibility method.

    The bounds hold for the value of the saddle point problem, ``max(rho, 0)``:
    ``phi_lo <= max(rho, 0) <= phi_up``.

    Attributes
    ----------
    status : {"separable", "inseparable", "budget"}
        "separable": y separates, ``A'y > 0``; "inseparable": x is an epsilon-solution of the
        alternative, ``||A x|| <= tol``; "budget": a limit was met before either.
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

    @property
    def certificate(self) -> np.ndarray | None:
        """y if separable, x if inseparable, None if neither is known."""
        return {"separable": self.y, "inseparable": self.x, "budget": None}[self.status]

    @property
    def residual(self) -> float:
        """The saddle point residual ``phi_up - phi_lo``."""
        return self.phi_up - self.phi_lo
