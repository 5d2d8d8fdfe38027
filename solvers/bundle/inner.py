"""Inner solvers of bundle methods: from the planes so far to the next w and a lower bound.

Each minimises ``lam Omega(w) + max_i (<a_i, w> + b_i)`` over the planes, or a bound of it, and
owns what it must keep of them. The first plane is the constant lower bound of the loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import sparse
from scipy.optimize import brentq, linprog

from ..numeric.matrices import matmul
from ..numeric.simplex_qp import SimplexQP
from .regularizers import L2, Legendre

# Variables of the QP below this count as 0 when idle planes are looked for.
_INACTIVE = 1e-12


class Inner(ABC):
    """The state of the inner problem."""

    lower_bound: float  # Of the regularised risk, by the planes so far
    inner_products: int = 0  # Products of vectors of the dimension of w with planes, so far

    @abstractmethod
    def start(self) -> np.ndarray:
        """The first w, which minimises the regulariser."""

    @abstractmethod
    def add(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Take the plane ``<a, w> + b`` below the risk and return the next w."""


class PlanesByQP(Inner):
    """All planes, and the dual QP over the simplex: w = -sum_i alpha_i a_i / lam (BMRM07 eq. 6)."""

    def __init__(self, dimension: int, lam: float, floor: float, max_idle: int | None) -> None:
        self._lam = lam
        self._max_idle = max_idle
        self._qp = SimplexQP()
        self._qp.add([], 0.0, floor)
        # The plane of variable i > 0 is in row slots[i - 1]; rows of removed planes are used again.
        self._planes = np.zeros((16, dimension))
        self._slots = np.zeros(0, dtype=np.int64)
        self._free: list[int] = []
        self._idle = np.zeros(0, dtype=np.int64)
        self.lower_bound = floor

    def start(self) -> np.ndarray:
        """w = 0."""
        return np.zeros(self._planes.shape[1])

    @property
    def n_planes(self) -> int:
        """Planes kept, without the constant one."""
        return len(self._slots)

    def add(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Add the plane, solve the QP from where it stood, drop idle planes."""
        slot = self._free.pop() if self._free else len(self._slots)
        if slot == len(self._planes):
            self._planes = np.concatenate([self._planes, np.zeros_like(self._planes)])
        self._planes[slot] = a
        self._slots = np.append(self._slots, slot)
        count = len(self._slots)
        used = self._planes[: count + len(self._free)]
        # The first variable is the constant plane's.
        products = np.zeros(count + 1)
        products[1:] = matmul(used, a)[self._slots]
        products /= self._lam
        self.inner_products += count
        self._qp.add(products[:-1], products[-1], b)
        self._qp.solve(tol)
        self.lower_bound = -self._qp.value
        alpha = np.zeros(len(used))
        alpha[self._slots] = self._qp.b[1:] / -self._lam
        w = matmul(alpha, used)
        self._drop_idle()
        return w

    def _drop_idle(self) -> None:
        self._idle = np.append(self._idle, 0) + 1
        self._idle[self._qp.b[1:] > _INACTIVE] = 0
        if self._max_idle is None:
            return
        needed = self._idle <= self._max_idle
        if not needed.all():
            self._qp.remove(np.flatnonzero(~needed) + 1)
            self._free += self._slots[~needed].tolist()
            self._idle, self._slots = self._idle[needed], self._slots[needed]


class LineSearch(Inner):
    """One plane that stands for all: the best mixture with each new one (BMRM07 Algorithm 2).

    Keeps ``mu = -A alpha / lam`` and ``b'alpha``; the mixture maximises the dual
    ``-lam Omega*(mu) + b'alpha``, in closed form for the L2 regulariser.
    """

    def __init__(self, regularizer: Legendre, dimension: int, lam: float, floor: float) -> None:
        self._regularizer = regularizer
        self._lam = lam
        self._mu = np.zeros(dimension)
        self._b = floor
        self.lower_bound = floor

    def start(self) -> np.ndarray:
        """The minimiser of the regulariser."""
        return self._regularizer.primal(self._mu)

    def add(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Mix the plane in."""
        lam, mu = self._lam, self._mu
        direction = a / -lam - mu
        rise = b - self._b

        def slope(eta: float) -> float:
            """Of the dual along the mixture; at 0 it is the gap."""
            w = self._regularizer.primal(mu + eta * direction)
            return rise - lam * float(matmul(w, direction))

        self.inner_products += 2
        gap = slope(0.0)
        if gap <= 0:
            eta = 0.0
        elif isinstance(self._regularizer, L2):
            curvature = lam * float(matmul(direction, direction))
            eta = 1.0 if curvature <= gap else gap / curvature
        else:
            eta = (
                1.0
                if slope(1.0) >= 0
                else brentq(slope, 0.0, 1.0, xtol=1e-16, rtol=1e-14, maxiter=1000)
            )
        mu += eta * direction
        # Plus, not minus: b'alpha is the same mixture as A alpha.
        self._b = (1.0 - eta) * self._b + eta * b
        self.lower_bound = self._b - lam * self._regularizer.conjugate(mu)
        return self._regularizer.primal(mu)


class PlanesByLP(Inner):
    """All planes, and a linear program for ``lam ||w||_1`` (HiGHS)."""

    def __init__(self, dimension: int, lam: float, floor: float) -> None:
        self._lam = lam
        self._floor = floor
        self._planes = np.zeros((0, dimension))
        self._b = np.zeros(0)
        self.lower_bound = floor

    def start(self) -> np.ndarray:
        """w = 0."""
        return np.zeros(self._planes.shape[1])

    def add(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Add the plane and solve the program."""
        self._planes = np.vstack([self._planes, a])
        self._b = np.append(self._b, b)
        count, dimension = self._planes.shape
        # w = u - v with u, v >= 0, and xi above every plane.
        rows = sparse.csr_matrix(self._planes)
        constraints = sparse.hstack([rows, -rows, -np.ones((count, 1))], format="csr")
        costs = np.append(np.full(2 * dimension, self._lam), 1.0)
        bounds = [(0, None)] * (2 * dimension) + [(self._floor, None)]
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        found = linprog(costs, constraints, -self._b, bounds=bounds, options=options)
        if found.status != 0:
            raise RuntimeError(f"the inner linear program failed: {found.message}")
        self.lower_bound = self._certified(-found.ineqlin.marginals)
        return found.x[:dimension] - found.x[dimension : 2 * dimension]

    def _certified(self, alpha: np.ndarray) -> float:
        """The dual value of these multipliers, made feasible: a bound free of tolerances."""
        alpha = np.maximum(alpha, 0.0)
        slope = np.abs(matmul(alpha, self._planes)).max()
        shrink = min(1.0, 1.0 / max(alpha.sum(), 1e-300), self._lam / max(slope, 1e-300))
        alpha = shrink * alpha
        return float(matmul(alpha, self._b)) + (1.0 - float(alpha.sum())) * self._floor
