"""The stochastic batch perceptron."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from solvers.base import Solver
from solvers.kernels import Kernel
from solvers.matrices import matmul
from solvers.models import KernelExpansion
from solvers.monitor import Monitor
from solvers.problem import Problem, Solution, SolveStatus
from solvers.validation import check_iteration_limit, positive
from solvers.water_level import water_level


class SBP(Solver):
    """Kernel SVM without bias by the stochastic batch perceptron.

    Maximises the slack-constrained margin ``max_{||w|| <= 1} f(w)`` with
    ``f(w) = max min_i (y_i <w, Phi_i> + xi_i)`` over slacks ``xi >= 0`` of sum at most ``n nu``
    ([SBP12]_ eq. 2.3). f(w) is the level of water of volume ``n nu`` poured over the responses. A
    step draws one point uniformly among those under water and moves w towards it, with step
    ``1 / (max_i ||Phi_i|| sqrt(t))``, then back into the unit ball (Algorithm 1). With
    ``nu = mean hinge loss / ||w||`` of an SVM's optimum, both problems have the same direction.

    Deviations from the paper: points exactly at the level may be drawn (the printed strict
    inequality leaves no point at ``nu = 0``); ||w||^2 is ``sum_i alpha_i c_i`` (the square is
    missing in print); the level is found by Newton's method from the level before, with a
    selection in linear time as the fallback.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        A callable takes two matrices of points and returns their kernel block.
    gamma : float > 0, "scale" or "auto", default="scale"
        Width of "rbf" (``exp(-gamma ||x - z||^2)``) and scale of "poly".
    degree : int >= 1, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    nu : float >= 0, default=0.01
        Mean slack per point, in units of the margin of a unit vector w. The paper uses 6e-11 to
        1e-2, depending on the data.
    fit_intercept : bool, default=False
        Must be False.
    tol : float >= 0, default=0.0
        Stop at the end of an epoch when the certified gap of f is at most ``tol`` times its upper
        bound; 0 runs all epochs. The certificate is the minimax bound ``f <= sqrt(p' Q p) + n nu
        max p`` at the frequencies p of the draws, and needs no kernel evaluation.
    max_epochs : int >= 1, default=10
        Stop after this many epochs of n iterations.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64.
    cache_size : float >= 0, default=200.0
        Bound on the cached kernel rows, MB; 0 for no cache.
    random_state : int, Generator or None, default=None
        Seeds the draws.

    Attributes
    ----------
    margin_ : float
        f(w) at the average w, a lower bound of 1 / ||w*||.
    certificate_ : float or None
        Upper bound of f by the draws; None if ``tol`` is 0.

    Notes
    -----
    Kernel evaluations: n in each iteration. Time O(n) beside them. Memory: 4n numbers and the
    cache. Returns the average of all iterates, divided by its level so that the margin is 1 (left
    as it is if the level is not positive).

    References
    ----------
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
    """

    scalarization = "S"

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        nu: float = 0.01,
        fit_intercept: bool = False,
        tol: float = 0.0,
        max_epochs: int = 10,
        dtype: str = "float32",
        cache_size: float = 200.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        positive("nu", self.nu, zero=True)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y, oracle = problem.n, problem.y, problem.oracle
        diag = oracle.diag()
        if not diag.max() > 0:
            raise ValueError("every k(x, x) is 0: there is no direction to move in")
        step_scale = 1.0 / np.sqrt(diag.max())
        draws = _Draws(problem.rng, n)
        state = _State(n, volume=n * float(self.nu), certify=self.tol > 0)

        def snapshot() -> KernelExpansion:
            coef, _ = state.average()
            return problem.expansion(coef * y)

        status: SolveStatus = "budget"
        self.certificate_ = None
        level = 0.0
        for t in range(1, self.max_epochs * n + 1):
            level = water_level(state.responses, state.volume, level)
            i = draws.next_covered(state.responses, level)
            state.move(i, step_scale / np.sqrt(t), y, oracle.row(i), diag[i])
            if monitor.due(problem.kernel_evals) and monitor.record(t, snapshot):
                status = "stopped"
                break
            if self.tol > 0 and t % n == 0:
                self.certificate_ = state.upper_bound()
                if self.certificate_ - state.average()[1] <= self.tol * self.certificate_:
                    status = "converged"
                    break
        coef, self.margin_ = state.average()
        return Solution(problem.expansion(coef * y), t, status)


@dataclass
class _State:
    """The iterate w, its responses and the running sums, in the dual variables alpha >= 0."""

    n: int
    volume: float
    certify: bool
    n_iter: int = 0
    squared_norm: float = 0.0
    alpha: np.ndarray = field(init=False)
    alpha_sum: np.ndarray = field(init=False)
    responses: np.ndarray = field(init=False)  # c_j = y_j <w, Phi_j>
    response_sum: np.ndarray = field(init=False)
    counts: np.ndarray = field(init=False)
    count_responses: np.ndarray = field(init=False)  # Q counts, for the certificate

    def __post_init__(self) -> None:
        for name in ("alpha", "alpha_sum", "responses", "response_sum"):
            setattr(self, name, np.zeros(self.n))
        self.counts = np.zeros(self.n if self.certify else 0)
        self.count_responses = np.zeros(self.n if self.certify else 0)

    def move(self, i: int, step: float, y: np.ndarray, row: np.ndarray, diag_i: float) -> None:
        """w <- projection of w + step y_i Phi_i on the unit ball; add it to the sums."""
        self.n_iter += 1
        grown = self.squared_norm + 2 * step * self.responses[i] + step * step * diag_i
        scale = 1.0 / np.sqrt(grown) if grown > 1 else 1.0
        self.squared_norm = min(grown, 1.0)
        _move(self.responses, self.response_sum, y, row, step * y[i], scale)
        _move_alpha(self.alpha, self.alpha_sum, i, step, scale)
        if self.certify:
            self.counts[i] += 1
            _add_signed(self.count_responses, y, row, y[i])

    def average(self) -> tuple[np.ndarray, float]:
        """Coefficients of the average iterate, divided by its level, and that level."""
        level = water_level(self.response_sum / self.n_iter, self.volume, 0.0)
        mean = self.alpha_sum / self.n_iter
        return (mean / level if level > 0 else mean), float(level)

    def upper_bound(self) -> float:
        """U(p) = ||sum_i p_i y_i Phi_i|| + volume max p >= max f, at the frequencies p."""
        frequency = self.counts / self.n_iter
        squared = float(matmul(frequency, self.count_responses)) / self.n_iter
        return float(np.sqrt(max(squared, 0.0)) + self.volume * frequency.max())


class _Draws:
    """Uniform indices in blocks of n; those above the water are rejected."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self._rng, self._n = rng, n
        self._block = np.empty(0, dtype=np.int64)
        self._position = 0

    def next_covered(self, responses: np.ndarray, level: float) -> int:
        while True:
            at = _first_covered(responses, level, self._block, self._position)
            if at < len(self._block):
                self._position = at + 1
                return int(self._block[at])
            self._block = self._rng.integers(self._n, size=self._n)
            self._position = 0


@njit(cache=True, error_model="numpy")
def _first_covered(responses, level, block, position):
    for p in range(position, len(block)):
        if responses[block[p]] <= level:
            return p
    return len(block)


@njit(cache=True, error_model="numpy")
def _move(responses, response_sum, y, row, signed_step, scale):
    for j in range(len(responses)):
        responses[j] = scale * (responses[j] + signed_step * y[j] * row[j])
        response_sum[j] += responses[j]


@njit(cache=True, error_model="numpy")
def _move_alpha(alpha, alpha_sum, i, step, scale):
    alpha[i] += step
    for j in range(len(alpha)):
        alpha[j] *= scale
        alpha_sum[j] += alpha[j]


@njit(cache=True, error_model="numpy")
def _add_signed(total, y, row, sign):
    for j in range(len(total)):
        total[j] += sign * y[j] * row[j]
