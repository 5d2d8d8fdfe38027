"""The stochastic batch perceptron."""

from __future__ import annotations

import math

import numpy as np

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.compiling import njit
from ..numeric.validation import (
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)
from ..registration import register
from .draws import Draws, OneBasinDraws, TwoBasinDraws, cover, first_covered
from .holdout import Split, Stabilisation
from .state import DrawBound, Path, add_draw, move_one, move_two

# A check of the responses looks at this many points.
_CHECKED_POINTS = 32
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
    with step ``1 / (max_i ||Phi_i|| sqrt(t))``, then back into the unit ball (Algorithm 1). With
    bias the classes are two basins that share the water, and b moves the levels against each other;
    k points of each class are covered. A step draws one of each, and goes half as far towards each.

    Deviations from the paper: points exactly at the level may be drawn (the printed strict
    inequality leaves no point at ``nu = 0``; see ``ties``); ||w||^2 is ``sum_i alpha_i c_i`` (the
    square is missing in print); the level is found by Newton's method from the level before, with
    a sort as the fallback; the two basins are reduced to one of rank-wise sums,
    instead of Algorithm 3 (whose directions are printed with two signs). If several b are optimal
    it is the middle one. b is that of the average w: the b of the iterations are not averaged.

    Parameters
    ----------
    nu : float >= 0
        Mean slack per point, in units of the margin of a unit vector w. The paper uses 6e-11 to
        1e-2, depending on the data.
    fit_intercept
        Fit an unregularised bias.
    ties : {"le", "lt"}
        Without bias: draw among the points at or under the level (the paper's text), or strictly
        under it (its Algorithm 1) unless there are none. With bias k is a number of points, and
        the first in the order of the data are taken at a tie.
    sampling : {"pair", "single"}
        With bias: draw one covered point of each class in an iteration, or one in all. One costs
        half as much and has twice the variance.
    burn_in : int >= 0
        The first iterations, which the average leaves out. The paper averages all.
    averaging : {"all", "suffix"}
        Average all iterates after the burn-in, as the paper does, or the last half to three
        quarters of them (suffix averaging, [RSS12]_): those after the first 2^(k-1), if they are at
        least 2^k and fewer than 2^(k+1).
    tol : float >= 0
        Stop at a check when the certified gap of f is at most ``tol`` times its upper bound; 0
        runs all epochs.
    validation_fraction : float in [0, 1)
        Hold out this part of each class, and stop when the error on it stabilises (as the paper
        advises): when ``patience`` checks in a row have found no error below all before. The
        problem is that of the other points; n, nu and the epochs are theirs.
    patience : int >= 1
        Checks of the held-out error without a new lowest one.
    check_every : float > 0
        Epochs between two checks of ``tol`` and of the held-out error.
    drift_check : int >= 1 or None
        After so many iterations each time, compute the responses of some points afresh, and all
        if one is off by more than half the digits of ``dtype``. None: never.
    max_epochs : int >= 1
        Stop after this many epochs of n iterations.
    random_state
        Seeds the held-out part and the draws.

    Attributes
    ----------
    margin_ : float
        f(w) at the average w, a lower bound of 1 / ||w*||.
    certificate_ : float
        Upper bound of f, hence of 1 / ||w*||: the minimax bound ``sqrt(p' Q p) + n nu max p`` at
        the frequencies p of the draws. Infinite if a class that needs draws has none.
    validation_errors_ : ndarray of float64, shape (n_checks,), or None
        The error on the held-out points at each check; None if none are held out.
    drift_ : float
        The largest deviation of a response from its value computed afresh, as a fraction of
        ``max_i ||Phi_i||``, the largest response there can be; 0 if none was checked.
    drift_evals_ : int
        Kernel evaluations of these checks, which ``counters_`` leaves out.

    Notes
    -----
    Kernel evaluations: n in each iteration, with bias 2n (n with ``sampling="single"``); n is the
    number of all points, since the responses of the held-out ones are kept as well. n more, once,
    for the diagonal that the step sizes need, unless all k(x, x) are 1 for sure. Time O(n) beside
    them. Memory: 8n numbers, 13n with bias, 4n more with suffix averaging, and the cache.
    Returns the average of the iterates, divided by its level so that the margin is 1; if
    ``margin_`` is not positive it is left as it is.

    References
    ----------
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
    .. [RSS12] Rakhlin, Shamir, Sridharan: Making gradient descent optimal for strongly convex
       stochastic optimization. ICML 2012. BibTeX key ``rakhlin2012making``.
    """

    supports_bias = True
    scalarization = "S"

    nu: float = 0.01
    ties: str = "le"
    sampling: str = "pair"
    burn_in: int = 0
    averaging: str = "all"
    tol: float = 0.0
    validation_fraction: float = 0.0
    patience: int = 5
    check_every: float = 1.0
    drift_check: int | None = 10_000
    max_epochs: int = 10

    def _check_parameters(self) -> None:
        check_positive("nu", self.nu, zero=True)
        check_one_of("ties", self.ties, ("le", "lt"))
        check_one_of("sampling", self.sampling, ("pair", "single"))
        check_whole("burn_in", self.burn_in, at_least=0)
        check_one_of("averaging", self.averaging, ("all", "suffix"))
        check_positive("validation_fraction", self.validation_fraction, zero=True)
        if self.validation_fraction >= 1:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction!r}"
            )
        check_whole("patience", self.patience, at_least=1)
        check_positive("check_every", self.check_every)
        if self.drift_check is not None:
            check_whole("drift_check", self.drift_check, at_least=1)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        run = _Run(problem, self)
        limit = run.n_steps
        if self.burn_in >= limit:
            raise ValueError(
                f"burn_in={self.burn_in} leaves none of the {limit} iterations to average: make "
                "it smaller"
            )
        check_every = max(1, round(self.check_every * run.split.n_train))
        status: SolveStatus = "budget"
        t = 0
        while t < limit:
            ahead = min(limit - t, check_every - t % check_every)
            if self.drift_check is not None:
                ahead = min(ahead, self.drift_check - t % self.drift_check)
            t += run.advance(t, ahead, monitor.next_checkpoint - problem.kernel_evals)
            if monitor.due(problem.kernel_evals) and monitor.record(t, run.model):
                status = "stopped"
                break
            if self.drift_check is not None and t % self.drift_check == 0:
                run.check_drift()
            if t % check_every == 0 and run.is_done():
                status = "converged"
                break
        self.margin_ = run.margin()
        self.certificate_ = run.bound.value()
        self.validation_errors_ = run.validation_errors()
        self.drift_, self.drift_evals_ = run.drift, run.drift_evals
        return Solution(run.model(), t, status, run.shortfall())


class _Run:
    """One run on one problem: the iterates, the draws, and the rules that end it."""

    def __init__(self, problem: Problem, solver: SBP) -> None:
        self.problem = problem
        self.split = Split(problem.y, solver.validation_fraction, problem.rng)
        n_train = self.split.n_train
        diag = problem.oracle.diag()
        if not diag.max() > 0:
            raise ValueError("every k(x, x) is 0: there is no direction to move in")
        self.radius = float(np.sqrt(diag.max()))
        suffix = solver.averaging == "suffix"
        diag = self.split.reorder(diag)
        self.path = Path(self.split.y, diag, solver.burn_in, suffix=suffix)
        self._train_responses = self.path.responses[:n_train]
        positive_class = self.split.y[:n_train] > 0
        volume = n_train * float(solver.nu)
        groups = np.zeros(problem.n, dtype=np.int64)
        self.draws: Draws
        if solver.fit_intercept:
            pairs = solver.sampling == "pair"
            self.draws = TwoBasinDraws(problem.rng, positive_class, volume, pairs=pairs)
            if not pairs:
                groups = (self.split.y > 0).astype(np.int64)
        else:
            strict = solver.ties == "lt"
            self.draws = OneBasinDraws(problem.rng, positive_class, volume, strict=strict)
        self.bound = DrawBound(self.path.y, self.path.diag, groups, volume)
        self.drift, self.drift_evals = 0.0, 0
        self.n_steps = solver.max_epochs * n_train
        self._tol = float(solver.tol)
        self._stabilisation = (
            Stabilisation(solver.patience) if solver.validation_fraction > 0 else None
        )

    def advance(self, t: int, n_iterations: int, n_evals: float) -> int:
        """Go on from iteration t, at most so far; how many iterations were done, at least one."""
        done = 0
        stored = self.problem.oracle.stored
        if isinstance(self.draws, TwoBasinDraws) and self.split.order is None and stored:
            streams = self.draws.streams
            most = min(_MOST_ENTRIES, max(1.0, n_evals)) / (len(streams) * self.problem.n)
            most = min(n_iterations, math.ceil(most), self.path.until_mark())
            drawn = np.empty((int(most), len(streams)), dtype=np.int64)
            taken = np.array([stream.n_taken for stream in streams])
            done = _iterate(
                self.path.state,
                self.bound.state,
                self.draws.basins.state,
                tuple(stream.known for stream in streams),
                taken,
                *stored,
                self.radius,
                drawn,
            )
            for stream, n_taken in zip(streams, taken, strict=True):
                stream.n_taken = int(n_taken)
            self.problem.oracle.note_read(drawn[:done].ravel())
        if done > 0:
            self.path.mark()
            return done
        self.iterate(t + 1)
        return 1

    def iterate(self, t: int) -> None:
        """Iteration t of SBP12 Algorithm 1, with rows that may have to be computed."""
        eta = 1.0 / (self.radius * np.sqrt(t))  # line 4
        drawn = self.draws.draw(self._train_responses)  # lines 5 and 6: gamma, i under water

        def upcoming(count: int) -> np.ndarray:
            later = self.draws.probable(self._train_responses, count, self.n_steps - t)
            return np.append(drawn, later)

        rows = [self.split.row(self.problem.oracle, i, upcoming) for i in drawn]
        # Lines 7 to 13: alpha_i += eta, c_j += eta y_i y_j K_ij, back into the ball, the sums.
        self.path.move(drawn, rows, eta)
        for i, row in zip(drawn, rows, strict=True):
            add_draw(self.bound.state, i, row)

    def margin(self) -> float:
        """f(w) at the average w."""
        return self._average()[2]

    def model(self) -> KernelExpansion:
        """The average w and its bias, divided by the level."""
        alpha, _, level, bias = self._average()
        scale = 1.0 / level if level > 0 else 1.0
        coef = self.split.restore(alpha * scale * self.split.y)
        return self.problem.expansion(coef, bias * scale)

    def is_done(self) -> bool:
        """Whether a rule ends the run; notes the error on the held-out points."""
        stable = False
        if self._stabilisation is not None:
            stable = self._stabilisation.add(self._validation_error())
        if self._tol == 0:
            return stable
        upper = self.bound.value()
        return stable or upper - self.margin() <= self._tol * upper

    def shortfall(self) -> str:
        """What the rules have not found yet; empty without a rule."""
        found = []
        if self._tol > 0:
            upper = self.bound.value()
            gap = (upper - self.margin()) / upper if 0 < upper < math.inf else math.inf
            found.append(short_of(f"the certified gap is {gap:.3g} of its upper bound", self._tol))
        if self._stabilisation is not None:
            found.append(self._stabilisation.shortfall())
        return "; ".join(found)

    def validation_errors(self) -> np.ndarray | None:
        """The errors at the checks so far; None if no points are held out."""
        return None if self._stabilisation is None else np.array(self._stabilisation.errors)

    def check_drift(self) -> None:
        """Compare responses with those of the current w; replace all if they have drifted."""
        # Points of a generator of its own: the draws are the same whether or not one checks.
        chosen = np.random.default_rng(self.path.n_iter).permutation(self.problem.n)
        chosen = np.sort(chosen[:_CHECKED_POINTS])
        fresh = self._fresh_responses(chosen)
        drift = float(np.abs(fresh - self.path.responses[chosen]).max()) / self.radius
        self.drift = max(self.drift, drift)
        if drift > np.sqrt(np.finfo(self.problem.oracle.dtype).eps):
            self.path.replace_responses(self._fresh_responses(np.arange(self.problem.n)))

    def _fresh_responses(self, index: np.ndarray) -> np.ndarray:
        """Responses of these points from alpha alone, counted in ``drift_evals``."""
        coef = self.path.alpha() * self.split.y
        self.drift_evals += len(index) * int(np.count_nonzero(coef))
        scores = self.problem.oracle.exact_scores(
            self.split.restore(coef), self.split.positions(index), charged=False
        )
        return self.split.y[index] * scores

    def _average(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """alpha and the responses of the average w, its level and its bias."""
        alpha, responses = self.path.average()
        return alpha, responses, *self.draws.level(responses[: self.split.n_train])

    def _validation_error(self) -> float:
        _, responses, _, bias = self._average()
        held_out = slice(self.split.n_train, None)
        y = self.split.y[held_out]
        predicted_positive = y * responses[held_out] + bias > 0
        return float(np.mean(predicted_positive != (y > 0)))


@njit(error_model="numpy")
def _iterate(path, bound, basins, candidates, taken, rows, slots, radius, drawn):
    """Iterations with bias whose rows are stored, as :meth:`_Run.iterate` does them one by one.

    Until a row is missing, or candidates run out, or ``drawn`` is full; returns how many were done.
    """
    heights, positive = path.responses, basins.positive
    after = np.empty_like(taken)
    for done in range(len(drawn)):
        covered = cover(basins, heights)
        for s in range(len(candidates)):
            at = first_covered(candidates[s], taken[s], heights, positive, *covered)
            if at == len(candidates[s]) or slots[candidates[s][at]] < 0:
                return done
            drawn[done, s] = candidates[s][at]
            after[s] = at + 1
        taken[:] = after
        step = 1.0 / (radius * np.sqrt(path.progress.n_iter + 1))
        i = drawn[done, 0]
        row = rows[slots[i]]
        if len(candidates) == 1:
            move_one(path, i, row, step)
            add_draw(bound, i, row)
        else:
            j = drawn[done, 1]
            other = rows[slots[j]]
            move_two(path, i, j, row, other, step)
            add_draw(bound, i, row)
            add_draw(bound, j, other)
    return len(drawn)
