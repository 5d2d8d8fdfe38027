"""CUTS08 Algorithms 1 to 3: cutting planes for 1/2 ||w||^2 + C1 L(w), exact and sampled.

With ``dPsi_i(y) = Psi(x_i, y_i) - Psi(x_i, y)``, L is the mean of the margin losses ``max_y
Delta(y_i, y) - <w, dPsi_i(y)>``. A cut ``c + <w, g>`` lies below L, or below a sample of it::

    repeat                                                           (:meth:`CutFinder.run`)
        find the outputs y_i' that violate the most at w             (lines 13, 14, 13 of 1, 2, 3)
        Algorithm 1: c = mean of Delta(y_i, y_i'), g = - mean of dPsi_i(y_i'), over all i (line 15)
        Algorithm 2: the same over r examples drawn from all                     (lines 12 and 16)
        Algorithm 3: c over all i; g of r examples drawn from the violating ones I, each with the
                     factor |I| / (n r), drawn anew until the cut lies above xi + epsilon
                     (lines 15 to 20)
        stop if c + <w, g> <= xi + epsilon, in Algorithm 3 with the exact cut             (line 4)
              (Algorithm 2, which stops at once as printed: for p samples in a row, section 6.1)
        add the cut                                                                       (line 5)
        w, xi = argmin 1/2 ||w||^2 + C1 xi,  xi >= c_k + <w, g_k> for all k, xi >= 0      (line 7)
        drop cuts that have not been active for max_idle rounds                    (section 6.1)

:class:`FullPassCuts` (1 and 3) and :class:`ConstantTimeCuts` (2) find the cut, the outputs that
violate the most by ``structure.py``; :class:`WorkingSet` is J and SOLVE_QP, in the dual
(Optimization Problem 2), ``w = - sum_k a_k g_k``, ``a >= 0``, ``sum a = C1`` with the cut 0. Its
``level`` is xi less the gap that its solution leaves. The subspace method of section 6.4 is
``Nystrom`` in ``approximate/low_rank.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..interface.monitor import Monitor
from ..interface.problem import SolveStatus
from ..kernels.oracle import KernelOracle
from ..kernels.scoring import add_rows, linear_scores
from ..numeric.matrices import matmul
from ..numeric.simplex_qp import SimplexQP
from .structure import Examples, StructuredProblem, Violations

# Blocks of entries are about this large: they stay in a cache of the processor between the steps
# of their computation.
_BLOCK_BYTES = 4 * 2**20
_FEWEST_ROWS = 64
# After so many samples that make no violated cut the exact one is taken.
_MAX_REDRAWS = 100
# Entries of a sample with the points of w are kept for the cut up to so many bytes.
_KEPT_BYTES = 256 * 2**20
# Rounding up to this part of the tolerance does not matter.
_NEGLIGIBLE = 0.1
# Multipliers up to this part of their sum count as zero.
_INACTIVE = 1e-12
# Scores of a cut take float64 up to this many numbers, and float32 beyond if the entries do.
_SMALL_SCORES = 2**17


@dataclass(frozen=True)
class Cut:
    """The lower bound ``offset + <w, g>`` of the risk at w."""

    offset: float
    points: np.ndarray  # int64, shape (m,): Distinct training points
    # float64, shape (m, n_channels): ``g = sum_p coef_p phi(x_p)`` in each channel
    coef: np.ndarray
    # float64, shape (n_explicit,): The part of g outside of the kernel's space
    explicit: np.ndarray
    # How many points were drawn for it, those drawn twice and those without effect included
    n_drawn: int
    # shape (n_points, n_channels): ``<g, phi(x_p)>`` in each channel for every training point,
    # if they are kept
    scores: np.ndarray | None = None


def cut_of(
    violations: Violations,
    factors: np.ndarray,
    points: np.ndarray | None,
    sizes: np.ndarray,
    n_drawn: int,
    offset: float | None = None,
) -> Cut:
    """The cut (c, g): the sum of some examples' bounds of their own losses, each times a factor."""
    by_row = np.repeat(factors, sizes)
    rows = np.flatnonzero(by_row)
    coef = -by_row[rows, None] * violations.coef[rows]
    some = coef.any(axis=1)
    rows = rows[some]
    if offset is None:
        offset = float((factors * violations.losses).sum())
    explicit = -(factors[:, None] * violations.explicit).sum(axis=0)
    return Cut(offset, rows if points is None else points[rows], coef[some], explicit, n_drawn)


def combined(cuts: Sequence[Cut], factors: np.ndarray, n_channels: int) -> Cut:
    """The sum of some cuts, each times its factor, over their distinct points in order."""
    some = [(f, cut) for f, cut in zip(factors, cuts, strict=True) if f != 0]
    points = np.concatenate([cut.points for _, cut in some] + [np.empty(0, dtype=np.int64)])
    distinct, positions = np.unique(points, return_inverse=True)
    coef = np.zeros((len(distinct), n_channels))
    if some:
        np.add.at(coef, positions, np.concatenate([f * cut.coef for f, cut in some]))
    return Cut(0.0, distinct, coef, np.empty(0), 0)


def cut_scores(oracle: KernelOracle, rows: np.ndarray | None, cut: Cut) -> np.ndarray:
    """``<g, phi(x_p)>`` in each channel for some points p.

    Terms are added in the order of the cut's points, whether their kernel rows are cached or not.
    """
    coef = np.ascontiguousarray(cut.coef.T)
    sums = np.zeros((len(coef), oracle.n if rows is None else len(rows)))
    # A larger cut would displace its own rows before the next one asks for them.
    if rows is None and len(cut.points) <= oracle.cached_rows:
        for start in range(0, len(cut.points), oracle.chunk):
            part = slice(start, start + oracle.chunk)
            storage, slots = oracle.stored_rows(cut.points[part])
            add_rows(storage, slots, coef[:, part], sums)
    elif len(cut.points):
        rows = np.arange(oracle.n) if rows is None else rows
        slots = np.arange(len(cut.points))
        step = max(_FEWEST_ROWS, _BLOCK_BYTES // (len(slots) * oracle.dtype.itemsize))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            add_rows(oracle.fresh_block(cut.points, rows[part]), slots, coef, sums[:, part])
    return np.ascontiguousarray(sums.T)


def weighted_sums(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """block @ coef with float64 sums, whatever the block's type."""
    return np.ascontiguousarray(linear_scores(block, coef.T))


def squared_norm(oracle: KernelOracle, cut: Cut, allowance: int) -> float:
    """``||g||^2``, without the explicit part, for at most ``allowance`` entries.

    Half of the entries would do, for they are symmetric; a block of all is faster. The allowance
    must be no less than ``m (m + 1) / 2`` for a cut of m points.
    """
    m, total = len(cut.points), 0.0
    # Strips of s rows, each from its diagonal on, have up to m (m + s) / 2 entries.
    step = max(1, 2 * allowance // max(1, m) - m)
    for start in range(0, m, step):
        strip, rest = slice(start, start + step), slice(start, None)
        factors = 2 * cut.coef[rest]
        factors[:step] = cut.coef[strip]
        block = oracle.fresh_block(cut.points[strip], cut.points[rest])
        total += float((cut.coef[strip] * weighted_sums(block, factors)).sum())
    return total


@dataclass
class CutFinder(ABC):
    """Finds a cut that lies above the working set's model by more than a tolerance.

    With exact cuts the optimum of the model is a lower bound, and C1 times the violation is the
    duality gap.
    """

    working: WorkingSet
    structure: StructuredProblem
    examples: Examples
    tol: float
    stopping: str
    rng: np.random.Generator
    n_samples: int
    patience: int
    # The mean margin loss at the last w, over the examples that were looked at
    risk: float = np.inf
    violation: float = np.inf  # The risk less the level of the model there
    allowed: float = 0.0  # The violation at which the run ends

    def run(
        self, max_cuts: int, monitor: Monitor, snapshot: Callable[[], Any]
    ) -> tuple[int, SolveStatus]:
        """Add violated cuts until none is found; how many were added."""
        for n_cuts in range(max_cuts):
            if not self.add():
                return n_cuts, "converged" if self.holds() else "budget"
            evals = self.oracle.counters.kernel_evals
            if monitor.due(evals) and monitor.record(n_cuts + 1, snapshot):
                return n_cuts + 1, "stopped"
        return max_cuts, "budget"

    def shortfall(self) -> str:
        """What a run achieved that ended at its limit; empty where ``tol=0`` asks for the limit."""
        if not self.tol:
            return ""
        return (
            f"the last cut lay {self.violation:.2g} above the model, {self.allowed:.2g} is allowed "
            f"by tol={self.tol!r}"
        )

    @property
    def oracle(self) -> KernelOracle:
        """Where kernel entries come from."""
        return self.working.oracle

    @abstractmethod
    def add(self) -> bool:
        """Add a violated cut to the working set; False if there is none, by this finder's rule."""

    def holds(self) -> bool:
        """Whether the end of a run, by this finder's rule, is one with exact entries as well."""
        return True

    def _violated(self, risk: float) -> bool:
        """Whether a cut of this height at w is above xi + epsilon (line 4); notes by how much."""
        working = self.working
        self.risk, self.violation = risk, risk - working.level
        self.allowed = self._allowed(risk, working.squared_norm(), working.total)
        return self.violation > self.allowed

    def _allowed(self, risk: float, squared_norm: float, total: float) -> float:
        if self.stopping == "relative":
            return self.tol * (risk + 0.5 * squared_norm / total)
        return self.tol

    @contextmanager
    def _textbook_asks(self, evals: int) -> Iterator[None]:
        """What runs inside asks for at least so many entries, as a run without tricks does."""
        counters = self.oracle.counters
        least = counters.kernel_evals + evals
        yield
        counters.kernel_evals = max(counters.kernel_evals, least)


class FullPassCuts(CutFinder):
    """Looks at all examples, whose scores are kept for each cut.

    Of them the violating ones make the cut (CUTS08 Algorithm 1), or, if they are more than r, r of
    them, with the exact offset and stopping rule (Algorithm 3).
    """

    def add(self) -> bool:
        working = self.working
        # Lines 12 to 16, with scores from the kept ones (eq. 4); the risk at w is c' + <w, g'>.
        violations, risk = self._at(working.scores(), working.explicit())
        if not self._violated(risk):
            return False
        cut = self._make(violations, working.level + self.allowed)
        # The paper's A_ti, and from it the new entries of the Gram matrix (section 4.2.1).
        with self._textbook_asks(self.oracle.n * cut.n_drawn):
            scores = cut_scores(self.oracle, None, cut)
        products = working.products(cut, scores)
        squared = float((scores[cut.points] * cut.coef).sum() + (cut.explicit**2).sum())
        cut = replace(cut, scores=scores.astype(working.score_type))
        working.add_and_solve(cut, products, squared, self.allowed)
        return True

    def _at(self, scores: np.ndarray, explicit: np.ndarray) -> tuple[Violations, float]:
        """What violates the most at w, which gives these scores, and the risk there."""
        examples = self.examples
        violations = self.structure.most_violating(
            scores, explicit, examples.targets, examples.starts
        )
        return violations, float((examples.shares * violations.values).sum())

    def holds(self) -> bool:
        """See :meth:`CutFinder.holds`; ``violation`` and ``allowed`` become exact.

        Costs float64 entries of all points with those of w, unless rounding cannot matter.
        """
        oracle, working = self.oracle, self.working
        w, explicit = working.weights(), working.explicit()
        masses = np.abs(w.coef).sum(axis=0)
        noise = oracle.kernel.entry_noise(oracle.points, oracle.dtype.name)
        error = noise * (2 * masses.max(initial=0.0) + (masses**2).sum() / working.total)
        if error <= _NEGLIGIBLE * self.allowed or (noise == np.inf and oracle.dtype == np.float64):
            return True
        coef = np.zeros((oracle.n, working.n_channels))
        coef[w.points] = w.coef
        columns = [oracle.exact_scores(column, charged=False) for column in coef.T.copy()]
        scores = np.stack(columns, axis=1)
        _, risk = self._at(scores, explicit)
        squared = float((coef * scores).sum() + (explicit**2).sum())
        self.violation += risk - self.risk + (squared - working.squared_norm()) / working.total
        self.risk, self.allowed = risk, self._allowed(risk, squared, working.total)
        slack = 1e-12 * (risk + squared / working.total)
        return self.violation <= 1.001 * self.allowed + slack

    def _make(self, violations: Violations, threshold: float) -> Cut:
        """A cut above the threshold xi + epsilon, which the exact one is above."""
        examples, sizes = self.examples, np.diff(self.examples.starts)
        violating = np.flatnonzero(violations.values > 0)  # I, Algorithm 3 line 15
        if len(violating) > self.n_samples:
            shares = examples.shares[violating]
            offset = float((shares * violations.losses[violating]).sum())
            # What a cut is at w, example by example: <w, dPsi_i> = loss_i - value_i.
            fits = violations.losses - violations.values
            part = shares.sum() / self.n_samples  # |I| / (n r)
            for _ in range(_MAX_REDRAWS):
                drawn = violating[examples.draw(self.rng, self.n_samples, violating)]  # line 18
                factors = np.bincount(drawn, minlength=len(examples)) * part
                # Lines 19 and 20.
                if offset - float((factors[violating] * fits[violating]).sum()) > threshold:
                    n_drawn = int(sizes[drawn].sum())
                    return cut_of(violations, factors, None, sizes, n_drawn, offset)
        # Algorithm 1 line 15.
        factors = np.where(violations.values > 0, examples.shares, 0.0)
        return cut_of(violations, factors, None, sizes, int(sizes[violating].sum()))


class ConstantTimeCuts(CutFinder):
    """A cut of r examples drawn from all, which alone are looked at (Algorithm 2)."""

    def add(self) -> bool:
        working = self.working
        w, explicit = working.weights(), working.explicit()
        for _ in range(self.patience):
            drawn = self.examples.draw(self.rng, self.n_samples)  # line 12
            index, counts = np.unique(drawn, return_counts=True)
            points, targets, starts = self.examples.take(index)
            sizes = np.diff(starts)
            n_drawn = int((counts * sizes).sum())
            with self._textbook_asks(n_drawn * sum(cut.n_drawn for cut in working.cuts)):
                block, scores = self._scores(points, w)  # eq. 2 and 3
                violations = self.structure.most_violating(scores, explicit, targets, starts)
                factors = counts / self.n_samples
                if not self._violated(float((factors * violations.values).sum())):
                    continue
                factors = np.where(violations.values > 0, factors, 0.0)
                cut = cut_of(violations, factors, points, sizes, n_drawn)  # line 16
                slots = np.searchsorted(points, cut.points)
                # The new entries of the Gram matrix (section 4.1.1).
                products = working.products(cut, self._at_cuts(cut, w, block, slots))
            allowance = n_drawn * (n_drawn + 1) // 2
            with self._textbook_asks(allowance):
                squared = squared_norm(self.oracle, cut, allowance)
            squared += float((cut.explicit**2).sum())
            working.add_and_solve(cut, products, squared, self.allowed)
            return True
        return False

    def _scores(self, points: np.ndarray, w: Cut) -> tuple[np.ndarray | None, np.ndarray]:
        """Scores at w of some points; and their entries with those of w, unless they are many."""
        if len(points) * len(w.points) * self.oracle.dtype.itemsize > _KEPT_BYTES:
            return None, cut_scores(self.oracle, points, w)
        block = self.oracle.fresh_block(points, w.points)
        return block, weighted_sums(block, w.coef)

    @cached_property
    def _room(self) -> np.ndarray:
        """A place for the scores of all points, of which a cut fills in few."""
        return np.empty((self.oracle.n, self.structure.n_channels))

    def _at_cuts(self, cut: Cut, w: Cut, block: np.ndarray | None, slots: np.ndarray) -> np.ndarray:
        """Scores of a new cut at the points of the others; elsewhere they mean nothing.

        ``block`` has the entries of the cut's points with those of w in the rows ``slots``.
        """
        scores, working = self._room, self.working
        if block is None:
            scores[w.points] = cut_scores(self.oracle, w.points, cut)
        else:
            sums = np.zeros((scores.shape[1], len(w.points)))
            add_rows(block, slots, np.ascontiguousarray(cut.coef.T), sums)
            scores[w.points] = sums.T
        # Cuts that are idle have no part in w.
        idle = working.multipliers == 0
        others = combined(working.cuts, idle.astype(float), self.structure.n_channels).points
        others = np.setdiff1d(others, w.points, assume_unique=True)
        scores[others] = cut_scores(self.oracle, others, cut)
        return scores


class WorkingSet:
    """Minimise ``1/2 ||w||^2 + C1 xi`` over ``xi >= offset_k + <w, g_k>`` for the cuts k, and 0.

    The dual is a quadratic program over the simplex: ``w = -sum_k a_k g_k`` with ``a >= 0`` and
    ``sum a = C1``, where the first a belongs to the cut "xi >= 0", which is never removed: without
    it the sum of the others is C1 or less (CUTS08 Optimization Problem 2).
    """

    def __init__(
        self,
        oracle: KernelOracle,
        n_channels: int,
        n_explicit: int,
        total: float,
        max_idle: int,
    ) -> None:
        self.oracle = oracle
        self.n_channels, self.n_explicit = n_channels, n_explicit
        self.total, self.max_idle = total, max_idle
        small = oracle.n * n_channels <= _SMALL_SCORES
        self.score_type = np.dtype(np.float64 if small else oracle.dtype)
        self.qp = SimplexQP(total)
        self.qp.add([], 0.0, 0.0)
        self.cuts: list[Cut] = []
        self._idle: list[int] = []
        # The highest of the cuts at w, the w that the multipliers give; and that less the gap of
        # the dual over C1: w is optimal for a risk that is no higher than this level.
        self.xi = self.level = 0.0

    @property
    def multipliers(self) -> np.ndarray:
        """One for each cut, float64, shape (len(cuts),)."""
        return self.qp.b[1:]

    def squared_norm(self) -> float:
        """||w||^2."""
        return float(matmul(self.qp.b, matmul(self.qp.Q, self.qp.b)))

    def explicit(self) -> np.ndarray:
        """The weights outside of the kernel's space, float64, shape (n_explicit,)."""
        weights = np.zeros(self.n_explicit)
        for a, cut in zip(self.multipliers, self.cuts, strict=True):
            weights -= a * cut.explicit
        return weights

    def weights(self) -> Cut:
        """The part of w under the kernel, as the points and coefficients of a cut."""
        return combined(self.cuts, -self.multipliers, self.n_channels)

    def scores(self) -> np.ndarray:
        """``<w, phi(x_p)>`` of all points, float64, shape (n_points, n_channels)."""
        scores = np.zeros((self.oracle.n, self.n_channels))
        product = np.empty_like(scores)
        for a, cut in zip(self.multipliers, self.cuts, strict=True):
            if a > 0 and cut.scores is not None:
                scores -= np.multiply(cut.scores, a, out=product, dtype=np.float64)
        return scores

    def products(self, cut: Cut, scores: np.ndarray) -> np.ndarray:
        """``<g_k, g>`` of every cut k with a new one, float64, shape (len(cuts),)."""
        return np.array(
            [
                (k.coef * scores[k.points]).sum() + (k.explicit * cut.explicit).sum()
                for k in self.cuts
            ],
            dtype=np.float64,
        )

    def add_and_solve(
        self, cut: Cut, products: np.ndarray, squared_norm: float, tol: float
    ) -> None:
        """Take a cut in (line 5), find the optimum (SOLVE_QP, line 7), drop cuts long idle."""
        self.qp.add(np.concatenate(([0.0], products)), max(squared_norm, 0.0), cut.offset)
        self.cuts.append(cut)
        self._idle.append(0)
        self.qp.solve(0.1 * self.total * tol)
        active = self.multipliers > _INACTIVE * self.total
        self._idle = [0 if a else idle + 1 for a, idle in zip(active, self._idle, strict=True)]
        gone = [k for k, idle in enumerate(self._idle) if idle >= self.max_idle]
        if gone:
            self.qp.remove([k + 1 for k in gone])
            for k in reversed(gone):
                del self.cuts[k], self._idle[k]
        self.xi = -float(self.qp.gradient.min())
        self.level = self.xi - self.qp.gap / self.total
