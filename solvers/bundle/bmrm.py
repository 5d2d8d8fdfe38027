"""BMRM: a regularised risk J(w) = lambda Omega(w) + R(w) minimised by planes below R.

BMRM07 Algorithm 1, from w_0 = argmin Omega and the plane a_0 = 0, b_0 = 0 (the least risk)::

    for t = 0, 1, 2, ...
        a_{t+1} = a subgradient of R at w_t,  b_{t+1} = R(w_t) - <a_{t+1}, w_t>            (eq. 3)
        w_{t+1} = argmin J_{t+1},  J_t(w) = lambda Omega(w) + max_{i <= t} <a_i, w> + b_i  (eq. 4)
        until epsilon_t = min_{i <= t} J(w_i) - J_t(w_t) is small

The inner problem has the dual ``max -lambda Omega*(-A alpha / lambda) + b'alpha`` over the simplex
(eq. 6) with ``w = grad Omega*(-A alpha / lambda)``: a quadratic program for Omega = 1/2 ||w||^2
(:class:`PlanesByQP`, eq. 7). Algorithm 2 keeps one mixture of all planes (:class:`LineSearch`)::

    gamma_t = R(w_t) + lambda ||w_t||^2 - r_t
    eta = min(1, gamma_t / (lambda ||w_t + a_{t+1} / lambda||^2))                          (eq. 15)
    w_{t+1} = (1 - eta) w_t - eta / lambda a_{t+1},  r_{t+1} = (1 - eta) r_t + eta b_{t+1}

The paper prints the update of r with the other sign, with which the gap never closes. R and its
planes are those of ``risk.py``, with the subgradients of ``losses.py`` (its section 3.4, eq. 8 to
10) and the offset of ``offsets.py``. Here the best iterate is returned, and a search along the line
to each (``search.py``, not the paper's) may take its place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq, linprog

from ..interface.problem import SolveStatus
from ..numeric.counters import Counters
from ..numeric.matrices import matmul
from ..numeric.simplex_qp import SimplexQP
from ..numeric.validation import check_one_of
from .regularizers import L2, Regularizer
from .risk import Risk
from .search import PrimalSearch

#: Called after each iteration with its number and a function that gives the weights and the
#: intercept of the best iterate; returns whether to stop.
Pause = Callable[[int, Callable[[], tuple[np.ndarray, Any]]], bool]
# The inner problem is solved to this part of the gap that is asked for.
_INNER_SHARE = 0.1
# A plane that raises the lower bound by less than this part of the gap was taken at a bad place.
_STALLED = 1e-2
# Variables of the QP below this count as 0 when idle planes are looked for.
_INACTIVE = 1e-12
# About so many iterations, evenly spread on a logarithmic axis, stand for all of a long run.
_MOST_NOTED = 200


def minimize_bundle(
    risk: Risk,
    regularizer: Regularizer,
    lam: float,
    inner: Inner,
    *,
    tol: float,
    max_iter: int,
    counters: Counters,
    make_search: Callable[..., PrimalSearch] | None = None,
    pause: Pause | None = None,
) -> BundleResult:
    """The outer loop (BMRM07 Algorithm 1)."""
    w = best = inner.w
    objective = risk.evaluate(w) + lam * regularizer.value(w)
    lowest, lower, minimizer = objective, inner.lower_bound, risk.minimizer
    if not math.isfinite(objective):
        raise ValueError("the objective overflows float64: scale the targets or the weights")
    objectives, bounds = [objective], [lower]
    allowed = tol * (objective - lower)
    n_iter, status, stalled = 0, "budget", False
    search = make_search(risk, lam, w, objective) if make_search is not None else None

    def snapshot() -> tuple[np.ndarray, Any]:
        return risk.split(best, minimizer)

    # Until epsilon_t, the smallest J so far less J_t(w_t), is small.
    while n_iter < max_iter and lowest - lower > allowed:
        before = inner.inner_products
        # The plane that touches the risk (eq. 3), and the minimum of the bound with it (eq. 4).
        w = inner.add_and_solve(*risk.plane(w), _INNER_SHARE * allowed)
        counters.inner_products += inner.inner_products - before
        stalled = inner.lower_bound - lower <= _STALLED * (lowest - lower)
        lower = max(lower, inner.lower_bound)
        n_iter += 1
        if search is None:
            objective = risk.evaluate(w) + lam * regularizer.value(w)
            candidate, minimum = w, risk.minimizer
        else:
            w = search.step(w, stalled=stalled)
            candidate, objective, minimum = search.w, search.objective, search.minimizer
        if objective < lowest:
            best, lowest, minimizer = candidate, objective, minimum
        objectives.append(objective)
        bounds.append(lower)
        if pause is not None and pause(n_iter, snapshot):
            status = "stopped"
            break
    if status != "stopped" and lowest - lower <= allowed:
        status = "converged"
    weights, intercept = snapshot()
    trace = BundleTrace(np.array(objectives), np.array(bounds))
    return BundleResult(weights, intercept, lowest, lower, trace, n_iter, status)  # type: ignore[arg-type]


class Inner(ABC):
    """The state of the inner problem."""

    w: np.ndarray  # The first one, which minimises the regulariser
    lower_bound: float  # Of the regularised risk, by the planes so far
    inner_products: int = 0  # Products of vectors of the dimension of w with planes, so far

    def __init__(
        self, regularizer: Any, dimension: int, lam: float, floor: float, max_idle: int | None
    ) -> None:
        self._regularizer, self._lam, self._floor = regularizer, lam, floor
        self._max_idle = max_idle
        self.w, self.lower_bound = np.zeros(dimension), floor

    @abstractmethod
    def add_and_solve(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Take in the plane ``<a, w> + b`` below the risk and solve eq. 4: the next w."""


class PlanesByQP(Inner):
    """All planes, and the dual QP over the simplex: w = -sum_i alpha_i a_i / lam (BMRM07 eq. 7)."""

    def __init__(self, *problem: Any) -> None:
        super().__init__(*problem)
        self._qp = SimplexQP()
        self._qp.add([], 0.0, self._floor)
        # The plane of variable i > 0 is in row slots[i - 1]; rows of removed planes are used again.
        self._planes = np.zeros((16, len(self.w)))
        self._slots = np.zeros(0, dtype=np.int64)
        self._free: list[int] = []
        self._idle = np.zeros(0, dtype=np.int64)

    def add_and_solve(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Add the plane, solve the QP from where it stood, drop idle planes."""
        slot = self._free.pop() if self._free else len(self._slots)
        if slot == len(self._planes):
            self._planes = np.concatenate([self._planes, np.zeros_like(self._planes)])
        self._planes[slot] = a
        self._slots = np.append(self._slots, slot)
        count = len(self._slots)
        used = self._planes[: count + len(self._free)]
        # A'A / lambda of eq. 7; the first variable is the constant plane's.
        products = np.zeros(count + 1)
        products[1:] = matmul(used, a)[self._slots]
        products /= self._lam
        self.inner_products += count
        self._qp.add(products[:-1], products[-1], b)
        self._qp.solve(tol)
        # The dual connection (Theorem 2).
        alpha = np.zeros(len(used))
        alpha[self._slots] = self._qp.b[1:] / -self._lam
        w = matmul(alpha, used)
        # By w itself, not as the value of the QP, where long planes leave nothing but rounding.
        self.lower_bound = float(matmul(self._qp.h, self._qp.b) - self._lam / 2 * matmul(w, w))
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

    Keeps ``mu = -A alpha / lam`` and ``r = b'alpha``; the mixture maximises the dual
    ``-lam Omega*(mu) + b'alpha``, in closed form for the L2 regulariser.
    """

    def __init__(self, *problem: Any) -> None:
        super().__init__(*problem)
        self._mu, self._r = self.w, self._floor
        self.w = self._regularizer.primal(self._mu)

    def add_and_solve(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Mix the plane in."""
        lam, mu = self._lam, self._mu
        direction = a / -lam - mu
        rise = b - self._r

        def slope(eta: float) -> float:
            """Of the dual along the mixture; at 0 it is the gap."""
            w = self._regularizer.primal(mu + eta * direction)
            return rise - lam * float(matmul(w, direction))

        self.inner_products += 2
        gap = slope(0.0)  # gamma_t
        if gap <= 0:
            eta = 0.0
        elif isinstance(self._regularizer, L2):
            curvature = lam * float(matmul(direction, direction))
            eta = 1.0 if curvature <= gap else gap / curvature  # eq. 15
        else:
            precise = {"xtol": 1e-16, "rtol": 1e-14, "maxiter": 1000}
            eta = 1.0 if slope(1.0) >= 0 else brentq(slope, 0.0, 1.0, **precise)
        mu += eta * direction  # w_{t+1} = (1 - eta) w_t - eta / lambda a_{t+1} for L2
        # Plus, not minus: b'alpha is the same mixture as A alpha.
        self._r = (1.0 - eta) * self._r + eta * b
        self.lower_bound = self._r - lam * self._regularizer.conjugate(mu)
        return self._regularizer.primal(mu)


class PlanesByLP(Inner):
    """All planes, and a linear program for ``lam ||w||_1`` (HiGHS)."""

    def __init__(self, *problem: Any) -> None:
        super().__init__(*problem)
        self._planes, self._b = np.zeros((0, len(self.w))), np.zeros(0)

    def add_and_solve(self, a: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Add the plane and solve the program."""
        self._planes = np.vstack([self._planes, a])
        self._b = np.append(self._b, b)
        count, dimension = self._planes.shape
        # unit w = u - v with u, v >= 0, and xi above every plane. In units of 1 / lam the program
        # is the same whatever the units of the features; HiGHS takes entries from 1e-9 to 1e15.
        unit = max(self._lam, np.abs(self._planes).max() / 1e12)
        rows = sparse.csr_matrix(self._planes / unit)
        constraints = sparse.hstack([rows, -rows, -np.ones((count, 1))], format="csr")
        costs = np.append(np.full(2 * dimension, self._lam / unit), 1.0)
        bounds = [(0, None)] * (2 * dimension) + [(self._floor, None)]
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        optimum = linprog(costs, constraints, -self._b, bounds=bounds, options=options)
        if optimum.status != 0:
            raise RuntimeError(f"the inner linear program failed: {optimum.message}")
        self.lower_bound = self._certified(-optimum.ineqlin.marginals)
        return (optimum.x[:dimension] - optimum.x[dimension : 2 * dimension]) / unit

    def _certified(self, alpha: np.ndarray) -> float:
        """The dual value of these multipliers, made feasible: a bound free of tolerances."""
        alpha = np.maximum(alpha, 0.0)
        slope = np.abs(matmul(alpha, self._planes)).max()
        shrink = min(1.0, 1.0 / max(alpha.sum(), 1e-300), self._lam / max(slope, 1e-300))
        alpha = shrink * alpha
        return float(matmul(alpha, self._b)) + (1.0 - float(alpha.sum())) * self._floor


def make_inner(name: str, regularizer: Regularizer, *problem: Any) -> Inner:
    """The inner solver of this name, for a dimension, lambda, a least risk, and ``max_idle``."""
    inners: dict[str, type[Inner]]
    inners = {"qp": PlanesByQP, "line_search": LineSearch, "lp": PlanesByLP}
    check_one_of("inner", name, ("auto", *inners))
    name = regularizer.inner[0] if name == "auto" else name
    if name not in regularizer.inner:
        raise ValueError(
            f"inner={name!r} cannot take the {type(regularizer).__name__} regulariser: set "
            f"inner={' or '.join(map(repr, regularizer.inner))}"
        )
    return inners[name](regularizer, *problem)


@dataclass(frozen=True)
class BundleResult:
    """The best iterate of a bundle method.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_features,) or (n_features, n_outputs)
    intercept : float, or ndarray of float64, shape (n_outputs,)
        0 without an offset.
    objective : float
        Its regularised risk.
    lower_bound : float
        Of the optimum.
    trace : BundleTrace
    n_iter : int
        Iterations, each with one pass over the points for the plane and one for the scores.
    status : {"converged", "budget", "stopped"}
    """

    weights: np.ndarray
    intercept: Any
    objective: float
    lower_bound: float
    trace: BundleTrace
    n_iter: int
    status: SolveStatus

    def shortfall(self, tol: float) -> str:
        """What a run that ended at its limit achieved; empty where ``tol=0`` asks for the limit."""
        if self.status != "budget" or not tol:
            return ""
        part = (self.objective - self.lower_bound) / self.trace.gamma[0]
        return f"the gap is {part:.2g} of the objective at the start, tol={tol!r}"


@dataclass(frozen=True)
class BundleStep:
    """An iteration of a bundle method."""

    n_iter: int
    gamma: float  # J(w_t) less the lower bound of the optimum, in units of J
    epsilon: float  # The smallest J so far less the lower bound
    lower_bound: float


@dataclass(frozen=True)
class BundleTrace:
    """What each iterate was worth; entry t belongs to the iterate of iteration t, 0 to the start.

    Attributes
    ----------
    objective : ndarray of float64, shape (n_iter + 1,)
        J(w_t), the regularised risk.
    lower_bound : ndarray of float64, shape (n_iter + 1,)
        The minimum of the planes' bound, no larger than the optimum.
    """

    objective: np.ndarray
    lower_bound: np.ndarray

    @property
    def gamma(self) -> np.ndarray:
        """gamma_t = J(w_t) less the lower bound, shape (n_iter + 1,)."""
        return self.objective - self.lower_bound

    @property
    def epsilon(self) -> np.ndarray:
        """epsilon_t: the smallest objective so far less the lower bound, shape (n_iter + 1,)."""
        return np.minimum.accumulate(self.objective) - self.lower_bound

    def noted(self) -> list[BundleStep]:
        """The iterations that go into a run's record: the start, the last, and some 200 between."""
        last = len(self.objective) - 1
        spread = np.geomspace(1, max(last, 1), _MOST_NOTED).round().astype(int)
        gamma, epsilon = self.gamma, self.epsilon
        at = [int(t) for t in np.unique(np.append(0, spread)) if t <= last]
        values = (each[at].tolist() for each in (gamma, epsilon, self.lower_bound))
        return [BundleStep(*each) for each in zip(at, *values, strict=True)]
