"""SMO by large working sets: thousands of variables at a time, and few passes over the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..interface.monitor import Monitor
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels.oracle import KernelOracle
from ..models import KernelExpansion
from ..numeric.matrices import scratch, squared_norms
from .inner import solve

# A working set is as large as a third of the cache allows, within these bounds: where it cannot
# hold the free variables, rounds undo what others did.
_SMALLEST, _LARGEST = 256, 6144
_SHARE = 3
# No larger than this, or twice the number of free variables: more cost more than they bring.
_ENOUGH = 2048
# The sub-problem is solved to this fraction of the violation it starts from ...
_PROGRESS = 0.1
# ... in at most this many steps for each of its variables.
_STEPS_PER_VARIABLE = 100
# Entries up to two to this power, and what is divided by them, are far within float32's range.
_IN_RANGE = 64
# So many of the worst violators are always taken; the rest come in a scattered order.
_WORST = 64
# Rounds without a larger dual value after which rounding is what is left.
_PATIENCE = 20
# The same of the true dual value, at so many points in a row where the rounded gradient had ended.
_VAIN_ENDS = 3
# Sub-problems sum F in float32 if so many roundings are below their tolerance.
_NARROW = 128
# Rounding matters if it puts F off by more than this part of the tolerance at a point.
_NEGLIGIBLE = 0.125
# Points of each kind at which that is looked at.
_LOOKED_AT = 16


@dataclass
class Dual:
    """A dual point and what it implies."""

    alpha: np.ndarray  # float64, shape (n,)
    # float64, shape (n,): y_t - (score of x_t without bias): the bias at which x_t has margin 1,
    # -y_t times FCL05's gradient
    F: np.ndarray
    y: np.ndarray  # float64, shape (n,)
    C: np.ndarray
    with_bias: bool

    def movable(self, room: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Which variables may move along +y (up), and along -y (down), by more than ``room`` C."""
        below, above = self.alpha < self.C * (1 - room), self.alpha > self.C * room
        positive_class = self.y > 0
        return np.where(positive_class, below, above), np.where(positive_class, above, below)

    def violation(self) -> float:
        """Largest violation of the optimality conditions, FCL05's m(alpha) - M(alpha) with bias."""
        up, down = self.movable()
        highest = self.F[up].max(initial=-np.inf)
        lowest = self.F[down].min(initial=np.inf)
        if self.with_bias:
            return float(max(highest - lowest, 0.0))
        return float(max(highest, -lowest, 0.0))

    def value(self) -> float:
        """The dual objective, sum alpha - 1/2 ||w||^2, in C units."""
        return float(self.alpha.sum() - (self.alpha * (1 - self.y * self.F)).sum() / 2)

    def bias(self) -> float:
        """Mean of F over the free variables; with none, the middle of the feasible interval."""
        if not self.with_bias:
            return 0.0
        # Rounding keeps a variable from its bound, by some 1e-14 C, whose F is anywhere between.
        up, down = self.movable(room=1e-12)
        free = up & down
        if free.any():
            return float(self.F[free].mean())
        return float((self.F[up].max() + self.F[down].min()) / 2)


def solve_large(problem: Problem, monitor: Monitor, dual: Dual, tol: float, limit: int) -> Solution:
    """Optimise by large working sets until no condition is violated by more than tol.

    A round takes the free variables and violators, solves for them with the kernel entries among
    them, and then brings F up to date with the rows of those that changed.
    """
    oracle, n = problem.oracle, problem.n
    diag = oracle.diag()
    room = problem.once("working matrix", lambda: _working_matrix(oracle))
    # Gains are float32: entries beyond its range are solved for in another unit.
    unit = 2.0 ** -max(0, math.frexp(diag.max())[1] - _IN_RANGE)
    choose = _Choice(n, math.isqrt(len(room)))

    n_iter, best, stale = 0, -np.inf, 0
    gradient = Gradient(problem, dual, tol)
    status: SolveStatus = "converged"
    while True:
        violation = dual.violation()
        if violation <= tol:
            if gradient.is_accurate():
                break
            gradient.recompute()
            if gradient.is_lost():
                status = "budget"
                break
            best, stale = -np.inf, 0
            continue
        if n_iter >= limit:
            status = "budget"
            break
        value = dual.value()
        stale = 0 if value > best + 1e-14 * abs(best) else stale + 1
        best = max(best, value)
        if stale > _PATIENCE:
            # Rounding may have led F astray: only what it really is shows whether all is done.
            gradient.recompute()
            if gradient.in_vain:
                status = "budget"
                break
            best, stale = dual.value(), 0
            continue
        entries, members = oracle.among(choose(dual, tol), room)
        alpha, F, bias = dual.alpha[members] / unit, dual.F[members], dual.bias()
        if unit < 1.0:
            entries *= unit
        steps = min(limit - n_iter, _STEPS_PER_VARIABLE * len(members))
        inner_tol = max(tol / 2, _PROGRESS * min(violation, 1.0))
        # Whether the rounding of many steps in float32 stays far below the tolerance.
        size = max(float(np.abs(F - bias).max()), float(diag[members].max()))
        rounding = _NARROW * float(np.finfo(np.float32).eps) * size
        if entries.dtype == np.float32 and rounding <= inner_tol:
            F = (F - bias).astype(np.float32)
        n_iter += solve(
            entries, alpha, F, dual.y[members], dual.C[members] / unit, diag[members] * unit,
            dual.with_bias, inner_tol, steps,
        )  # fmt: skip
        alpha *= unit
        change = (alpha - dual.alpha[members]) * dual.y[members]
        dual.alpha[members] = alpha
        moved = np.flatnonzero(change)
        oracle.add_rows(members[moved], -change[moved], dual.F)
        if monitor.due(problem.kernel_evals) and monitor.record(n_iter, snapshot_of(problem, dual)):
            status = "stopped"
            break
    gradient.settle(status)
    return Solution(snapshot_of(problem, dual)(), n_iter, status)


class Gradient:
    """Knows how far rounded kernel entries have led F away from what alpha implies."""

    def __init__(self, problem: Problem, dual: Dual, tol: float) -> None:
        self._problem, self._dual, self._tol = problem, dual, tol
        # The alpha whose F is exact, but at the points that were passed over; there it is an older
        # one, of at most this sum.
        self._alpha, self._older = np.zeros_like(dual.alpha), 0.0
        self._passed_over = np.zeros(len(dual.alpha), dtype=bool)
        self._best = dual.value()
        # How often in a row F was recomputed without a larger dual value than ever before.
        self.in_vain = 0

    def is_accurate(self) -> bool:
        """Whether F is what alpha implies where it matters, up to a rounding that does not.

        What all errors together could be is looked at first; if that is too much, what they are, at
        some points.
        """
        oracle, dual, allowed = self._problem.oracle, self._dual, _NEGLIGIBLE * self._tol
        noise, deciding = self._noise(), self._deciding()
        bounded = noise * float(np.abs(dual.alpha - self._alpha).sum()) <= allowed
        if bounded and not (deciding & self._passed_over).any():
            return True
        if noise == np.inf and oracle.dtype == np.float64:
            # Nothing is more exact than the float64 entries of a kernel that knows no bound.
            return True
        index = self._telling_points()
        index = index[deciding[index]]
        exact = self._exact_scores(index, charged=False)
        return bool(np.abs(dual.F[index] - dual.y[index] + exact).max(initial=0.0) <= allowed)

    def _exact_scores(self, index: np.ndarray, *, charged: bool = True) -> np.ndarray:
        oracle, coef = self._problem.oracle, self._dual.alpha * self._dual.y
        parts = [index]
        if oracle.dtype == np.float64 and oracle.points.frame is not None:
            # A point alone is the centre of its frame: its distances are free of cancellation.
            parts = [index[at : at + 1] for at in range(len(index))]
        scores = [oracle.exact_scores(coef, part, charged=charged) for part in parts]
        return np.concatenate([np.empty(0), *scores])

    def _noise(self) -> float:
        oracle = self._problem.oracle
        return oracle.kernel.entry_noise(oracle.points, oracle.dtype.name)

    def _deciding(self, caution: float = 1.0) -> np.ndarray:
        """Points whose conditions rounding could hurt: of the others F is far on the right side."""
        dual = self._dual
        size = float(dual.alpha.sum()) + self._older
        margin = caution * (2 * self._noise() * size + self._tol) if size else 0.0
        up, down = dual.movable()
        excess = dual.F - dual.bias()
        return (up & (excess >= -margin)) | (down & (excess <= margin))

    def _telling_points(self) -> np.ndarray:
        """Points whose F decides, or that rounding puts off the most, and some others."""
        dual, n = self._dual, self._problem.n
        norms = np.sqrt(squared_norms(self._problem.oracle.points.values))
        up, down = dual.movable()
        support = np.flatnonzero(dual.alpha)
        weights = norms[support] * dual.alpha[support]
        return np.unique(
            np.concatenate(
                [
                    _first(np.flatnonzero(up), -dual.F, _LOOKED_AT),
                    _first(np.flatnonzero(down), dual.F, _LOOKED_AT),
                    _first(np.arange(n), -norms, 2 * _LOOKED_AT),
                    support[_first(np.arange(len(support)), -weights, _LOOKED_AT)],
                    np.linspace(0, n - 1, _LOOKED_AT).astype(np.int64),
                ]
            )
        )

    def settle(self, status: SolveStatus) -> None:
        """Make F what alpha implies at the end of a run that reached a limit."""
        if status == "budget" and not self.is_accurate():
            self.recompute()

    def recompute(self) -> None:
        """Compute F from scratch where it matters, from float64 entries."""
        # With caution, since the next look at these points comes from another bias.
        dual, deciding = self._dual, self._deciding(caution=1.5)
        index = np.flatnonzero(deciding)
        dual.F[index] = dual.y[index] - self._exact_scores(index)
        self._older = max(self._older, float(self._alpha.sum()))
        self._alpha, self._passed_over = dual.alpha.copy(), ~deciding
        value = dual.value()
        self.in_vain = 0 if value > self._best + 1e-6 * abs(self._best) else self.in_vain + 1
        self._best = max(self._best, value)

    def is_lost(self) -> bool:
        """Whether rounding again and again feigned an end, and nothing was gained in between."""
        return self.in_vain >= _VAIN_ENDS and self._dual.violation() > self._tol


def snapshot_of(problem: Problem, dual: Dual) -> Callable[[], KernelExpansion]:
    return lambda: problem.expansion(dual.alpha * dual.y, dual.bias())


def _working_matrix(oracle: KernelOracle) -> np.ndarray:
    """Room for a matrix as large as its share of the cache allows, which is set aside for it."""
    itemsize = oracle.dtype.itemsize
    affordable = int(np.sqrt(oracle.cache_bytes / _SHARE / itemsize))
    largest = min(oracle.n, max(_SMALLEST, min(affordable, _LARGEST)))
    oracle.set_aside(largest * largest * itemsize)
    return scratch((largest * largest,), oracle.dtype)


class _Choice:
    """Chooses working sets: free variables first, then violators."""

    def __init__(self, n: int, largest: int) -> None:
        self.largest = largest
        # A fixed scattered order: multiples of the golden ratio modulo 1. The worst violators
        # stand close together, and after a few of them the rest are no violators any more.
        self.order = np.argsort((np.arange(n) * 0.6180339887498949) % 1.0)
        self.rank = np.empty(n, dtype=np.int64)
        self.rank[self.order] = np.arange(n)

    def __call__(self, dual: Dual, tol: float) -> np.ndarray:
        """Positions of the next working set, in ascending order."""
        up, down = dual.movable()
        excess = dual.F - dual.bias()
        violation = np.maximum(np.where(up, excess, 0.0), np.where(down, -excess, 0.0))
        free = np.flatnonzero(up & down)
        size = min(self.largest, max(_ENOUGH, 2 * len(free)))
        violators = np.flatnonzero((up ^ down) & (violation > tol / 4))
        # More free variables than half the set leave room for the violators all the same.
        kept = max(size // 2, size - len(violators))
        chosen = _first(free, -violation, kept)
        room = size - len(chosen)
        worst = _first(violators, -violation, min(room, _WORST))
        if len(violators) > room:
            others = violators[~np.isin(violators, worst)]
            others = _first(others, self.rank, room - len(worst))
            violators = np.concatenate([worst, others])
        # The pair that violates most is always there, so that every round makes progress.
        extremes = [
            side[np.argmax(sign * dual.F[side])]
            for side, sign in ((np.flatnonzero(up), 1), (np.flatnonzero(down), -1))
            if len(side)
        ]
        return np.union1d(np.concatenate([chosen, violators])[: size - 2], extremes)


def _first(index: np.ndarray, key: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` positions of the index with the smallest key."""
    if len(index) <= count:
        return index
    if count <= 0:
        return index[:0]
    return index[np.argpartition(key[index], count - 1)[:count]]
