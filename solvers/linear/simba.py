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
from ..numeric.matrices import Matrix, matmul
from ..numeric.sample_loops import (
    finite_squared_norms,
    margins_of,
    primal_dual_steps,
    row_arrays,
)
from ..numeric.validation import check_iteration_limit, check_positive
from ..numeric.water_level import water_level
from ..registration import register


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

    References
    ----------
    .. [HKS11] Hazan, Koren, Srebro: Beating SGD: learning SVMs in sublinear time. NIPS 2011.
       BibTeX key ``hazan2011beating``.
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
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
            raise ValueError("every point is 0: there is no direction to move in")
        signed = _scaled_rows(problem.X, problem.y / radius)
        rows, columns = row_arrays(signed), row_arrays(_transposed(signed))
        u, w_sum = np.zeros(n_features), np.zeros(n_features)
        p, p_sum = np.full(n, 1.0 / n), np.zeros(n)
        counters = problem.counters
        before = counters.inner_products = 2 * n
        t = 0

        def average() -> tuple[np.ndarray, float]:
            """The average w, divided by its level, and that level."""
            margins = radius * margins_of(rows, np.ones(n), w_sum) / t
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
                combined = radius * linear_scores(signed.T, p_sum / t)
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


def _scaled_rows(X: Matrix, factors: np.ndarray) -> Matrix:
    """The rows times their factors, float64."""
    if sparse.issparse(X):
        return sparse.csr_matrix(sparse.diags(factors) @ X)
    return X * factors[:, None]


def _transposed(X: Matrix) -> Matrix:
    """The transposed matrix, stored by its rows."""
    return sparse.csr_matrix(X.T) if sparse.issparse(X) else np.ascontiguousarray(X.T)
