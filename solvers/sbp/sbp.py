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
from ..numeric.validation import check_iteration_limit, check_one_of, check_positive, check_whole
from ..registration import register
from .draws import Draws, draw
from .state import Iterates, move
from .two_basins import basin_state

# A check of the responses looks at this many points.
_CHECKED_POINTS = 32
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

    If several b are optimal it is the middle one (``two_basins.stand``), and it is that of the
    average w: the b of the iterations are not averaged.

    Deviations from the paper: points exactly at the level may be drawn (the printed strict
    inequality leaves no point at ``nu = 0``; see ``ties``); with bias a step draws a pair, 2n
    evaluations, where the paper draws one point (``sampling="single"``); ||w||^2 is
    ``sum_i alpha_i c_i`` (the square is missing in print); the level is found by Newton's method
    from the level before, with selection as the fallback; the two basins are reduced to one of
    rank-wise sums, instead of Algorithm 3 (whose directions are printed with two signs).

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
        The first iterations, which the average leaves out. The paper averages all; perhaps it is
        the T_0 that Algorithm 1 declares and does not use.
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
    them. Memory: 7n numbers, 12n with bias, 4n more with the fast schedule, and the cache.
    Returns the average of the iterates, divided by its level so that the margin is 1; if
    ``margin_`` is not positive it is left as it is.
    """

    supports_bias = True
    scalarization = "S"

    nu: float = 0.01
    ties: str = "le"
    sampling: str = "pair"
    burn_in: int = 0
    schedule: str = "fast"
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
        check_one_of("schedule", self.schedule, ("paper", "fast"))
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
        n_train, limit = len(run.train), self.max_epochs * len(run.train)
        if self.burn_in >= limit:
            raise ValueError(
                f"burn_in={self.burn_in} leaves none of the {limit} iterations to average: make "
                "it smaller"
            )
        check_every = max(1, round(self.check_every * n_train))
        status: SolveStatus = "budget"
        t = 0
        while t < limit:
            ahead = min(limit - t, check_every - t % check_every, run.iterates.until_keeping())
            if self.drift_check is not None:
                ahead = min(ahead, self.drift_check - t % self.drift_check)
            evals = min(_MOST_ENTRIES, max(1.0, monitor.next_checkpoint - problem.kernel_evals))
            ahead = int(min(ahead, math.ceil(evals / run.evals)))
            run.advance(ahead, limit - t)
            t += ahead
            if monitor.due(problem.kernel_evals) and monitor.record(t, run.model):
                status = "stopped"
                break
            if self.drift_check is not None and t % self.drift_check == 0:
                run.check_drift()
            if t % check_every == 0 and run.is_done():
                status = "converged"
                break
        self.margin_ = run.margin()
        self.certificate_ = run.bound()
        self.validation_errors_ = np.array(run.errors) if self.validation_fraction > 0 else None
        self.drift_, self.drift_evals_ = run.drift, run.drift_evals
        return Solution(run.model(), t, status, run.shortfall())


class _Run:
    """One run on one problem: the iterates, the draws, and the rules that end it."""

    def __init__(self, problem: Problem, solver: SBP) -> None:
        self.problem, self.solver = problem, solver
        y = problem.y
        self.train = hold_out(y, solver.validation_fraction, problem.rng)
        self.held_out = np.setdiff1d(np.arange(problem.n), self.train, assume_unique=True)
        diag = problem.oracle.diag()
        if not diag.max() > 0:
            raise ValueError("every k(x, x) is 0: there is no direction to move in")
        self.radius = float(np.sqrt(diag.max()))  # SBP12 Algorithm 1 line 1: eta_0 is 1 / radius
        self.volume = len(self.train) * float(solver.nu)
        self.fast = solver.schedule == "fast"
        pairs = solver.fit_intercept and solver.sampling == "pair"
        # With single draws for two classes their frequencies are looked at class by class.
        groups = (y > 0) & bool(solver.fit_intercept and not pairs)
        self.iterates = Iterates(
            y, diag, self.train, groups.astype(np.int64), solver.burn_in,
            suffix=self.fast,
        )  # fmt: skip
        basins = basin_state(y[self.train] > 0, self.volume, strict=solver.ties == "lt")
        with_bias = bool(solver.fit_intercept)
        self.draws = Draws(
            problem.rng,
            basins,
            with_bias=with_bias,
            pairs=pairs,
            passes=_PASSES if self.fast else 0,
        )
        # Kernel evaluations of an iteration.
        self.evals = len(self.draws.streams) * problem.n
        self.errors: list[float] = []
        self.drift, self.drift_evals = 0.0, 0

    def advance(self, n_iterations: int, left: int) -> None:
        """So many iterations; rows that are not stored are fetched for one iteration at a time."""
        oracle, streams = self.problem.oracle, self.draws.streams
        drawn = np.empty((n_iterations, len(streams)), dtype=np.int64)
        done = 0
        while done < n_iterations:
            more, short = self._run_compiled(drawn[done:], *oracle.stored, is_drawn=False)
            oracle.note_read(drawn[done : done + more].ravel())
            done += more
            if short >= 0:
                streams[short].extend()
            elif done < n_iterations:
                fetched = self._fetched(drawn[done], left - done - 1)
                self._run_compiled(drawn[done : done + 1], *fetched, is_drawn=True)
                done += 1
        if self.iterates.keep_sums():
            mean = self.draws.mean_covered(self.iterates.average()[1][self.train])
            self.iterates.state.progress["concavity"] = max(mean, 0.0)

    def _run_compiled(
        self, drawn: np.ndarray, rows: np.ndarray, slots: np.ndarray, *, is_drawn: bool
    ) -> tuple[int, int]:
        streams = self.draws.streams
        taken = np.array([stream.n_taken for stream in streams])
        candidates = tuple(stream.candidates for stream in streams)
        outcome: tuple[int, int] = _iterate(
            self.iterates.state, self.draws.basins, self.draws.two_basins, candidates, taken, rows,
            slots, self.radius, self.fast, drawn, is_drawn,
        )  # fmt: skip
        for stream, n_taken in zip(streams, taken, strict=True):
            stream.n_taken = int(n_taken)
        return outcome

    def _fetched(self, drawn: np.ndarray, left: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of these points, and where each stands among them."""

        def upcoming(count: int) -> np.ndarray:
            heights = self.iterates.responses[self.train]
            return np.append(drawn, self.train[self.draws.probable(heights, count, left)])

        rows = np.stack([self.problem.oracle.row_ahead(int(i), upcoming) for i in drawn])
        rows.flags.writeable = False
        slots = np.full(self.problem.n, -1)
        slots[drawn] = np.arange(len(drawn))
        return rows, slots

    def bound(self) -> float:
        """An upper bound of f, also if kernel entries are rounded."""
        oracle = self.problem.oracle
        noise = oracle.kernel.entry_noise(oracle.points, oracle.dtype.name)
        return self.iterates.bound(self.volume, noise if math.isfinite(noise) else 0.0)

    def margin(self) -> float:
        """f(w) at the average w."""
        return self._average()[2]

    def model(self) -> KernelExpansion:
        """The average w and its bias, divided by the level (SBP12 Algorithm 1 line 14)."""
        alpha, _, level, bias = self._average()
        scale = 1.0 / level if level > 0 else 1.0
        return self.problem.expansion(alpha * scale * self.problem.y, bias * scale)

    def is_done(self) -> bool:
        """Whether a rule ends the run; notes the error on the held-out points."""
        tol = float(self.solver.tol)
        stable = False
        if self.solver.validation_fraction > 0:
            self.errors.append(self._validation_error())
            stable = self._since_lowest() >= self.solver.patience
        if tol == 0:
            return stable
        upper = self.bound()
        return stable or upper - self.margin() <= tol * upper

    def shortfall(self) -> str:
        """What the rules have not found yet; empty without a rule."""
        missing = []
        if self.solver.tol > 0:
            upper = self.bound()
            gap = (upper - self.margin()) / upper if 0 < upper < math.inf else math.inf
            missing.append(
                short_of(f"the certified gap is {gap:.3g} of its upper bound", self.solver.tol)
            )
        if self.solver.validation_fraction > 0:
            checks = f"{self._since_lowest()} of {len(self.errors)}" if self.errors else "0"
            missing.append(
                f"{checks} checks found no lower held-out error, patience={self.solver.patience}"
            )
        return "; ".join(missing)

    def _since_lowest(self) -> int:
        """Checks since the first one with the lowest error."""
        return len(self.errors) - 1 - int(np.argmin(self.errors))

    def check_drift(self) -> None:
        """Compare responses with those of the current w; replace all if they have drifted."""
        # Points of a generator of its own: the draws are the same whether or not one checks.
        chosen = np.random.default_rng(self.iterates.n_iter).permutation(self.problem.n)
        chosen = np.sort(chosen[:_CHECKED_POINTS])
        fresh = self._fresh_responses(chosen)
        drift = float(np.abs(fresh - self.iterates.responses[chosen]).max()) / self.radius
        self.drift = max(self.drift, drift)
        if drift > np.sqrt(np.finfo(self.problem.oracle.dtype).eps):
            self.iterates.replace_responses(self._fresh_responses(np.arange(self.problem.n)))

    def _fresh_responses(self, index: np.ndarray) -> np.ndarray:
        """Responses of these points from alpha alone, counted in ``drift_evals``."""
        coef = self.iterates.state.alpha * self.problem.y
        self.drift_evals += len(index) * int(np.count_nonzero(coef))
        scores = self.problem.oracle.exact_scores(coef, index, charged=False)
        return self.problem.y[index] * scores

    def _average(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """alpha and the responses of the average w, its level and its bias (line 13)."""
        alpha, responses = self.iterates.average()
        return alpha, responses, *self.draws.level(responses[self.train])

    def _validation_error(self) -> float:
        _, responses, _, bias = self._average()
        y = self.problem.y[self.held_out]
        predicted_positive = y * responses[self.held_out] + bias > 0
        return float(np.mean(predicted_positive != (y > 0)))


@njit(error_model="numpy")
def _iterate(
    state, basins, two_basins, candidates, taken, rows, slots, radius, fast, drawn, is_drawn
):  # fmt: skip
    """SBP12 Algorithm 1, one iteration for each row of ``drawn``, where it puts its points.

    It ends early where a kernel row is not among ``rows`` (``slots[i]`` is -1): then the points of
    that iteration stand in ``drawn``, and the next call may begin with them (``is_drawn``). Returns
    how many were done, and the stream that has run out of candidates, or -1.
    """
    heights = state.responses
    for t in range(len(drawn)):
        if not (is_drawn and t == 0):
            if len(state.train) < len(state.responses):
                heights = state.heights
                for p in range(len(heights)):
                    heights[p] = state.responses[state.train[p]]
            # Lines 5 and 6: the water level, and a point under water, or one of each class.
            short = draw(basins, two_basins, heights, candidates, taken, drawn[t])
            if short >= 0:
                return t, short
            for s in range(len(candidates)):
                drawn[t, s] = state.train[drawn[t, s]]
        for i in drawn[t]:
            if slots[i] < 0:
                return t, -1
        step = 1.0 / (radius * np.sqrt(state.progress.n_iter + 1))  # line 4
        if fast:
            # With w of length 1 a step shrinks it by the step times its response: as an SVM's step
            # does, regularised by the mean response.
            slope = state.progress.concavity * (state.progress.n_iter + 1)
            step = min(2 * step, 1.0 / slope) if slope > 0.0 else 2 * step
        move(state, drawn[t], rows, slots, step)  # lines 7 to 13
    return len(drawn), -1


def hold_out(y: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """The points to train on, ascending: all but this part of each class.

    ValueError if that would be all points of a class, or none of a fraction that is not 0.
    """
    train = np.ones(len(y), dtype=bool)
    for label in (-1.0, 1.0) if fraction > 0 else ():
        members = np.flatnonzero(y == label)
        size = round(fraction * len(members))
        if size == len(members):
            raise ValueError(
                f"validation_fraction={fraction} holds out all {size} points of a class: "
                "make it smaller"
            )
        train[rng.permutation(members)[:size]] = False
    if fraction > 0 and train.all():
        raise ValueError(
            f"validation_fraction={fraction} holds out none of {len(y)} points: make it larger"
        )
    return np.flatnonzero(train)
