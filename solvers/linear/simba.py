"""SIMBA: a linear SVM in sublinear time per step."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels.scoring import linear_scores
from ..models import LinearModel
from ..numeric.compiling import ZERO, njit
from ..numeric.matrices import matmul
from ..numeric.rows import add, finite_squared_norms, row_arrays
from ..numeric.validation import check_iteration_limit, check_positive
from ..numeric.water_level import select, water_level
from ..registration import register

# Probabilities do not sink to where they lose digits; no sum notices.
_LEAST_PROBABILITY = 1e-290


@register("svm")
@hyperparameters
class SIMBA(Solver, SolverParameters):
    """Linear SVM without bias by a primal-dual method that reads a row and a column in a step.

    Maximises the slack-constrained margin ``max_{||w|| <= 1} f(w)`` of :class:`SBP`, with a linear
    kernel ([HKS11]_ Algorithm 1; [SBP12]_ section 4.1). A step draws a point from a distribution p
    and moves w towards it; then one coordinate, drawn with probability ``w_j^2 / ||w||^2``,
    estimates all responses at once, and p takes a step of multiplicative weights towards the points
    whose response and slack are small. The slacks go to the most probable points.

    Deviations from the paper: points are divided by the largest norm, which the paper takes to be
    at most 1; the number of steps is given instead of derived from an accuracy; a probability does
    not sink below 1e-290.

    Parameters
    ----------
    nu : float >= 0
        Mean slack per point, in units of the margin of a unit vector w.
    rate : float > 0 or None
        Rate of the multiplicative weights; None takes ``sqrt(log n / T)`` for T steps.
    tol : float >= 0
        Stop at the end of an epoch when the certified gap of f is at most ``tol`` times its upper
        bound ``||sum_i p_i y_i x_i|| + n nu max p`` at the average p; 0 runs all epochs. Each look
        costs 2n inner products.
    max_epochs : int >= 1
        Stop after T = ``max_epochs`` n steps.

    Attributes
    ----------
    margin_ : float
        f(w) at the average w, a lower bound of 1 / ||w*||.
    certificate_ : float or None
        Upper bound of f; None if ``tol`` is 0.

    Notes
    -----
    Kernel evaluations: none. A step takes time O(n + d), counted as (n + d) / d inner products; two
    passes over the data, for the largest norm and for the final rescaling, add 2n. Memory: the data
    twice, by rows and by columns, and 3n + 2d numbers. Returns the average of all w, divided by
    its level so that the margin is 1 (left as it is if the level is not positive).
    """

    scalarization = "S"
    kernel = "linear"

    nu: float = 0.01
    rate: float | None = None
    tol: float = 0.0
    max_epochs: int = 50

    def _check_parameters(self) -> None:
        check_positive("nu", self.nu, zero=True)
        if self.rate is not None:
            check_positive("rate", self.rate)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, n_features = problem.X.shape
        n_steps, volume = self.max_epochs * n, n * float(self.nu)
        rate = math.sqrt(math.log(n) / n_steps) if self.rate is None else float(self.rate)
        radius = math.sqrt(finite_squared_norms(problem.X).max())
        if not radius > 0:
            raise ValueError(
                "every point is 0, or too small for squared norms: there is no direction to move in"
            )
        if sparse.issparse(problem.X):
            signed = sparse.csr_matrix(sparse.diags(problem.y / radius) @ problem.X)
            transposed = sparse.csr_matrix(signed.T)
        else:
            signed = problem.X * (problem.y / radius)[:, None]
            transposed = np.ascontiguousarray(signed.T)
        rows, columns = row_arrays(signed), row_arrays(transposed)
        u, w_sum = np.zeros(n_features), np.zeros(n_features)
        p, p_sum = np.full(n, 1.0 / n), np.zeros(n)
        counters = problem.counters
        counters.inner_products += 2 * n
        before = counters.inner_products
        t = 0

        def average() -> tuple[np.ndarray, float]:
            """The average w, divided by its level, and that level."""
            margins = radius * linear_scores(signed, w_sum) / t
            level = water_level(margins, volume, 0.0)
            return (w_sum / t / level if level > 0 else w_sum / t), float(level)

        def snapshot() -> LinearModel:
            return LinearModel(average()[0])

        status: SolveStatus = "budget"
        self.certificate_ = None
        shortfall = ""
        while t < n_steps:
            allowed = (monitor.next_checkpoint - counters.inner_products) * n_features
            wanted = max(1.0, allowed / (n + n_features))
            done = math.ceil(min(wanted, n - t % n))
            primal_dual_steps(
                rows, columns, volume / radius, rate, 1.0 / math.sqrt(2 * n_steps),
                problem.rng.random((done, 2)), u, p, w_sum, p_sum,
            )  # fmt: skip
            t += done
            counters.inner_products = before + t * (n + n_features) // n_features
            if monitor.due(counters.inner_products) and monitor.record(t, snapshot):
                status = "stopped"
                break
            if self.tol > 0 and t % n == 0:
                before += 2 * n
                counters.inner_products += 2 * n
                combined = radius * linear_scores(transposed, p_sum / t)
                bound = math.sqrt(matmul(combined, combined)) + volume * p_sum.max() / t
                self.certificate_ = float(bound)
                gap = bound - average()[1]
                shortfall = short_of(
                    f"the certified gap is {gap / bound:.3g} of its upper bound", self.tol
                )
                if gap <= self.tol * bound:
                    status = "converged"
                    break
        weights, self.margin_ = average()
        return Solution(LinearModel(weights), t, status, shortfall)


@njit(error_model="numpy")
def primal_dual_steps(rows, columns, capacity, rate, step, draws, u, p, w_sum, p_sum):
    """SIMBA's steps on signed points ``z_i = y_i x_i`` with ``||z_i|| <= 1``, in place."""
    gains, near = np.empty(len(p)), np.empty(len(p))
    threshold, width = 0.0, 4.0 * rate
    for t in range(len(draws)):
        add(rows, _draw(p, draws[t, 0], False), step, u)
        squared_norm = 0.0
        for j in range(len(u)):
            squared_norm += u[j] * u[j]
        length = max(1.0, np.sqrt(squared_norm))
        for j in range(len(u)):
            w_sum[j] += u[j] / length
        # The threshold moves little from step to step: it is looked for near the last one first.
        before = threshold
        threshold = _fill_slacks(p, capacity, before, width, near, gains)
        if before > 0.0:
            width = max(0.9 * width, 4.0 * abs(threshold / before - 1.0))
        if squared_norm > 0.0:
            # One coordinate, drawn with probability w_j^2 / ||w||^2, estimates every <w, z_i>.
            j = _draw(u, draws[t, 1] * squared_norm, True)
            add(columns, j, squared_norm / (length * u[j]), gains)
        total = 0.0
        for i in range(len(p)):
            p_sum[i] += p[i]
            gain = rate * min(max(gains[i], -1.0 / rate), 1.0 / rate)
            p[i] = max(p[i] * (1.0 - gain + gain * gain), _LEAST_PROBABILITY)
            total += p[i]
        for i in range(len(p)):
            p[i] /= total


@njit(error_model="numpy")
def _draw(masses, level, squared):
    """The first index at which the running sum of the masses (or their squares) passes a level."""
    reached, drawn = 0.0, 0
    for j in range(len(masses)):
        mass = masses[j] * masses[j] if squared else masses[j]
        if mass > 0.0:
            drawn = j
            reached += mass
            if reached > level:
                break
    return drawn


@njit(error_model="numpy")
def _fill_slacks(p, capacity, guess, width, near, slacks):
    """The slacks in [0, 2] of sum at most ``capacity`` that maximise p'slacks.

    Returns the probability from which points have slack; ``guess`` is that of similar p, without
    which fits take 1.2 to 1.5 times as long, and ``near`` a buffer of the length of p.
    """
    n_full = int(min(capacity / 2.0, len(p)))
    if n_full == len(p) or capacity <= 0.0:
        slacks[:] = 2.0 if n_full == len(p) else 0.0
        return guess
    threshold = _kth_largest(p, n_full, guess * (1.0 - width), guess * (1.0 + width), near)
    left = capacity
    for i in range(len(p)):
        above = p[i] > threshold
        slacks[i] = 2.0 if above else 0.0
        left -= slacks[i]
    for i in range(len(p)):
        if p[i] == threshold:
            slacks[i] = min(left, 2.0)
            left -= slacks[i]
            if left <= 0.0:
                break
    return threshold


@njit(error_model="numpy")
def _kth_largest(p, k, low, high, near):
    """The value of rank k, from 0; quick if it lies between ``low`` and ``high``."""
    n_above, n_near = 0, 0
    for i in range(len(p)):
        n_above += p[i] > high
        if (p[i] <= high) & (p[i] >= low):
            near[n_near] = p[i]
            n_near += 1
    if not n_above <= k < n_above + n_near:
        n_above, n_near = 0, len(p)
        for i in range(len(p)):
            near[i] = p[i]
    rank = n_near - 1 - (k - n_above)
    # np.partition would compile for eight seconds.
    select(near, ZERO, n_near, rank)
    return near[rank]
