"""The stochastic batch perceptron, SBP12 Algorithm 1.

Its lines 1 and 2 stand in ``_Run.__init__``; lines 3 to 12 and the sums of line 13 in
``iterations.py``, compiled; the average and its level (line 13) in ``_Run.average``, and line 14 in
``_Run.model``. Algorithm 2 is ``numeric/water_level.py``, Algorithm 3 ``two_basins.py``. The
certificate, which the paper does not have, is ``_Run.bound``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.validation import check_iteration_limit, check_one_of, check_positive
from ..numeric.water_level import water_level
from ..registration import register
from .iterations import PROGRESS, State, iterate
from .two_basins import basin_state, two_basin_level

# The fast schedule draws without replacement in so many passes over a class.
_PASSES = 100
# Compiled loops read at most so many entries at a time: some milliseconds.
_MOST_ENTRIES = 2**23


@register("svm")
@hyperparameters
class SBP(Solver, SolverParameters, CachedKernelParameters):
    """Kernel SVM by the stochastic batch perceptron, without or with bias.

    Maximises the slack-constrained margin ``max_{||w|| <= 1} f(w)`` with
    ``f(w) = max min_i (y_i <w, Phi_i> + y_i b + xi_i)`` over slacks ``xi >= 0`` of sum at most
    ``n nu`` and, with ``fit_intercept=True``, over b ([SBP12]_ eqs. 2.3 and 3.9). f(w) is the level
    of water of volume ``n nu`` poured over the responses ``y_i <w, Phi_i>``. With
    ``nu = mean hinge loss / ||w||`` of an SVM's optimum, both problems have the same direction.

    Without bias, a step draws one point uniformly among those under water and moves w towards it,
    then back into the unit ball (Algorithm 1; see ``schedule`` for the draws and the steps, which
    are the paper's only on demand). With bias the classes are two basins that share the water, and
    b moves the levels against each other; k points of each class are covered. A step draws one of
    each, and goes half as far towards each.

    If several b are optimal it is the middle one (``two_basin_level``), and it is that of the
    average w: the b of the iterations are not averaged.

    Deviations from the paper: points exactly at the level may be drawn, as its text says (the
    strict inequality of its Algorithm 1 leaves no point at ``nu = 0``); with bias a step draws a
    pair, 2n evaluations, where the paper draws one point (``sampling="single"``); the level is
    found by Newton's method from the level before, with selection, in the way of Algorithm 2, as
    the fallback; the two basins are reduced to one of rank-wise sums, instead of Algorithm 3 (whose
    directions are printed with two signs). ||w||^2 is kept by line 8 of Algorithm 1; section 3.3
    prints its other form, ``sum_i alpha_i c_i``, without the square.

    Parameters
    ----------
    nu : float >= 0
        Mean slack per point, in units of the margin of a unit vector w. The paper uses 6e-11 to
        1e-2, depending on the data.
    fit_intercept
        Fit an unregularised bias.
    sampling : {"pair", "single"}
        With bias: draw one covered point of each class in an iteration, or one in all. One costs
        half as much and has twice the variance.
    schedule : {"fast", "paper"}
        "paper": independent draws, steps of ``1 / (r sqrt(t))`` with ``r = max_i ||Phi_i||``, the
        average of all iterates. "fast", which no theorem of the paper covers: draws without
        replacement in the first 100 passes over a class, in each of which every point is looked at
        once, then independent ones; steps of
        ``min(2 / (r sqrt(t)), 1 / (lambda t))``, where lambda is the mean response under water at
        the average w, taken anew whenever t has doubled; the average of the last half to three
        quarters of the iterates (suffix averaging, [RSS12]_). After ten epochs it is 1.2 to fifty
        times nearer to the optimum than the paper's.
    tol : float >= 0
        Stop after an epoch when the certified gap of f is at most ``tol`` times its upper bound; 0
        runs all epochs.
    max_epochs : int >= 1
        Stop after this many epochs of n iterations.
    random_state
        Seeds the draws.

    Attributes
    ----------
    margin_ : float
        f(w) at the average w, a lower bound of 1 / ||w*||.
    certificate_ : float
        Upper bound of f, hence of 1 / ||w*||: the minimax bound ``sqrt(p' Q p) + n nu max p`` at
        the frequencies p of the draws. Infinite if a class that needs draws has none.

    Notes
    -----
    Kernel evaluations: n in each iteration, with bias 2n (n with ``sampling="single"``); n more,
    once, for the diagonal that the step sizes need, unless all k(x, x) are 1 for sure. Time O(n)
    beside them. Memory: 7n numbers, 12n with bias, 4n more with the fast schedule, and the cache.
    Returns the average of the iterates, divided by its level so that the margin is 1; if
    ``margin_`` is not positive it is left as it is.
    """

    supports_bias = True
    scalarization = "S"

    nu: float = 0.01
    sampling: str = "pair"
    schedule: str = "fast"
    tol: float = 0.0
    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_positive("nu", self.nu, zero=True)
        check_one_of("sampling", self.sampling, ("pair", "single"))
        check_one_of("schedule", self.schedule, ("paper", "fast"))
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        run = _Run(problem, self)
        n, limit = problem.n, self.max_epochs * problem.n
        status: SolveStatus = "budget"
        t = 0
        while t < limit:
            ahead = min(n - t % n, run.until_keeping())
            evals = min(_MOST_ENTRIES, max(1.0, monitor.next_checkpoint - problem.kernel_evals))
            ahead = int(min(ahead, math.ceil(evals / run.evals)))
            run.advance(ahead, limit - t)
            t += ahead
            if monitor.due(problem.kernel_evals) and monitor.record(t, run.model):
                status = "stopped"
                break
            if t % n == 0 and self.tol > 0 and run.gap() <= self.tol:
                status = "converged"
                break
        self.margin_ = run.average().level
        self.certificate_ = run.bound()
        achieved = f"the certified gap is {run.gap():.3g} of its upper bound"
        return Solution(run.model(), t, status, short_of(achieved, self.tol))


class _Stream:
    """Uniform draws from some points, one after the other, known before they are taken.

    Draws from the covered points alone are made of them by rejection. In its first ``passes`` over
    the points each comes once. Later ones are independent: without replacement the covered points
    are not drawn equally often, and a run does not converge.
    """

    def __init__(self, rng: np.random.Generator, points: np.ndarray, passes: int) -> None:
        self._rng, self.points, self._passes = rng, points, passes
        # Candidates, soonest first, and how many of them have been taken or rejected.
        self.candidates = np.empty(0, dtype=np.int64)
        self.n_taken = 0

    def upcoming(self, k: int) -> np.ndarray:
        """The next k candidates, int64, shape (k,); they are still to be taken."""
        while len(self.candidates) - self.n_taken < k:
            self.extend()
        return self.candidates[self.n_taken : self.n_taken + k]

    def extend(self) -> None:
        """Draw more candidates; the sequence does not depend on when."""
        n = len(self.points)
        if self._passes > 0:
            self._passes -= 1
            block = self._rng.permutation(n)
        else:
            block = self._rng.integers(n, size=max(1024, n))
        self.candidates = np.concatenate([self.candidates[self.n_taken :], self.points[block]])
        self.n_taken = 0


class _Average(NamedTuple):
    """alpha of the average w, f(w), the bias there, and a draw's mean response."""

    alpha: np.ndarray
    level: float
    bias: float
    under_water: float


class _Run:
    """One run on one problem: the iterates, the draws, and the rules that end it."""

    def __init__(self, problem: Problem, solver: SBP) -> None:
        self.problem = problem
        y, n = problem.y, problem.n
        diag = problem.oracle.diag()
        if not diag.max() > 0:
            raise ValueError("every k(x, x) is 0: there is no direction to move in")
        self.radius = float(np.sqrt(diag.max()))  # SBP12 Algorithm 1 line 1: eta_0 is 1 / radius
        self.volume = n * float(solver.nu)
        self.fast = solver.schedule == "fast"
        with_bias = bool(solver.fit_intercept)
        pairs = with_bias and solver.sampling == "pair"
        positive = y > 0
        # With single draws for two classes their frequencies are looked at class by class.
        groups = (positive & (with_bias and not pairs)).astype(np.int64)
        n_groups = int(groups.max()) + 1
        self.state = State(  # SBP12 Algorithm 1 line 2: w = 0
            signs=y.astype(np.float32),
            diag=diag,
            positive=positive,
            volume=self.volume,
            responses=np.zeros(n),
            response_sum=np.zeros(n),
            alpha=np.zeros(n),
            alpha_sum=np.zeros(n),
            progress=np.zeros(1, dtype=PROGRESS)[0],
            groups=groups,
            signed_counts=np.zeros((n_groups, n), dtype=np.float32),
            products=np.zeros((n_groups, n_groups)),
            n_draws=np.zeros(n_groups),
        )
        # None if both classes are one basin.
        self.basins = basin_state(positive, self.volume) if with_bias else None
        # With bias one covered point of each class is drawn, or one of either, uniform among the k
        # of each: p* of SBP12 eq. 3.9 has the same mass on both (Appendix B).
        members, rngs = [np.arange(n)], [problem.rng]
        if pairs:
            members = [np.flatnonzero(positive), np.flatnonzero(~positive)]
            # Each has its own generator: looking ahead in one changes nothing in the other.
            rngs = [np.random.default_rng(problem.rng.integers(2**63)) for _ in members]
        passes = _PASSES if self.fast else 0
        self.streams = [_Stream(*one, passes) for one in zip(rngs, members, strict=True)]
        self.evals = len(self.streams) * n  # Of an iteration
        # How many iterates the sums of the last two powers of 2 hold, and these sums.
        self._left_out = self._next_left_out = (0, np.zeros(n), np.zeros(n))

    @property
    def _n_iter(self) -> int:
        return int(self.state.progress["n_iter"])

    def until_keeping(self) -> float:
        """Iterations to the next one after which the sums are to be kept."""
        return 2 ** self._n_iter.bit_length() - self._n_iter if self.fast else np.inf

    def advance(self, n_iterations: int, left: int) -> None:
        """So many iterations; rows that are not stored are fetched for one iteration at a time."""
        oracle = self.problem.oracle
        drawn = np.empty((n_iterations, len(self.streams)), dtype=np.int64)
        done = 0
        while done < n_iterations:
            more, short = self._run_compiled(drawn[done:], *oracle.stored, is_drawn=False)
            oracle.note_read(drawn[done : done + more].ravel())
            done += more
            if short >= 0:
                self.streams[short].extend()
            elif done < n_iterations:
                fetched = self._fetched(drawn[done], left - done - 1)
                self._run_compiled(drawn[done : done + 1], *fetched, is_drawn=True)
                done += 1
        if self.fast and self._n_iter.bit_count() == 1:
            sums = self.state.alpha_sum.copy(), self.state.response_sum.copy()
            self._left_out, self._next_left_out = self._next_left_out, (self._n_iter, *sums)
            self.state.progress["concavity"] = max(self.average().under_water, 0.0)

    def _run_compiled(
        self, drawn: np.ndarray, rows: np.ndarray, slots: np.ndarray, *, is_drawn: bool
    ) -> tuple[int, int]:
        taken = np.array([stream.n_taken for stream in self.streams])
        candidates = tuple(stream.candidates for stream in self.streams)
        outcome: tuple[int, int] = iterate(
            self.state, self.basins, candidates, taken, rows, slots, self.radius, self.fast, drawn,
            is_drawn,
        )  # fmt: skip
        for stream, n_taken in zip(self.streams, taken, strict=True):
            stream.n_taken = int(n_taken)
        return outcome

    def _fetched(self, drawn: np.ndarray, left: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of these points, and where each stands among them."""

        def upcoming(count: int) -> np.ndarray:
            """The points that the next draws would take if the water did not move."""
            top = self.state.progress["level"]
            if self.basins is not None:
                standing = self.basins.standing
                top = np.where(
                    self.state.positive, standing["last_positive"], standing["last_negative"]
                )
            covered, kept = self.state.responses <= top, []
            for stream in self.streams:
                candidates = stream.upcoming(count // len(self.streams))
                kept.append(candidates[covered[candidates]][:left])
            turns = np.concatenate([np.arange(len(points)) for points in kept])
            ordered = np.concatenate(kept)[np.argsort(turns, kind="stable")]
            return np.append(drawn, ordered)

        rows = np.stack([self.problem.oracle.row_ahead(int(i), upcoming) for i in drawn])
        rows.flags.writeable = False
        slots = np.full(self.problem.n, -1)
        slots[drawn] = np.arange(len(drawn))
        return rows, slots

    def average(self) -> _Average:
        """The average w and its level (SBP12 Algorithm 1 line 13).

        With the fast schedule the first 2^(k-1) of at least 2^k and fewer than 2^(k+1) iterates are
        left out: a quarter to a half.
        """
        n_averaged, alpha, responses = self._n_iter, self.state.alpha_sum, self.state.response_sum
        if self.fast:
            n_left_out, alpha_before, responses_before = self._left_out
            n_averaged -= n_left_out
            # A point drawn no more has no part in the difference of its sums but rounding.
            alpha, responses = np.maximum(alpha - alpha_before, 0.0), responses - responses_before
        alpha, heights = alpha / n_averaged, responses / n_averaged
        if self.basins is None:
            level = float(water_level(heights, self.volume, 0.0))
            return _Average(alpha, level, 0.0, float(heights[heights <= level].mean()))
        positive = self.state.positive
        levels = two_basin_level(heights[positive], heights[~positive], self.volume)
        under_water = levels.level - self.volume / (2 * levels.rank)
        return _Average(alpha, levels.level, levels.bias, under_water)

    def model(self) -> KernelExpansion:
        """The average w and its bias, divided by the level (SBP12 Algorithm 1 line 14)."""
        average = self.average()
        scale = 1.0 / average.level if average.level > 0 else 1.0
        return self.problem.expansion(average.alpha * scale * self.problem.y, average.bias * scale)

    def bound(self) -> float:
        """U(p) = ||sum_i p_i y_i Phi_i|| + volume max_i p_i >= max f, at the draws' frequencies p.

        For each p it is the most that w and xi reach in SBP12 eq. 3.1, if p is not minimised over.
        Within a group p is proportional to the counts of the draws. The groups' masses are fixed:
        with an unregularised bias the bound holds only if both classes have the same mass.
        Infinite as long as a group has no draws. It holds also if kernel entries are rounded.
        """
        oracle, n_draws = self.problem.oracle, self.state.n_draws
        if not n_draws.all():
            return math.inf
        noise = oracle.kernel.entry_noise(oracle.points, oracle.dtype.name)
        masses = 1.0 / (len(n_draws) * n_draws)
        squared_norm = float(np.einsum("g,gh,h", masses, self.state.products, masses))
        largest = float((np.abs(self.state.signed_counts).max(axis=1) * masses).max())
        rounding = noise if math.isfinite(noise) else 0.0
        return float(np.sqrt(max(squared_norm, 0.0) + rounding)) + self.volume * largest

    def gap(self) -> float:
        """What the bound leaves above f, as a part of the bound; infinite without one."""
        upper = self.bound()
        return (upper - self.average().level) / upper if 0 < upper < math.inf else math.inf
