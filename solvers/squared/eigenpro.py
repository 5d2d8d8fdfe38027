"""EigenPro 2: interpolation by stochastic gradients, preconditioned for large batches."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.matrices import matmul
from ..numeric.validation import check_iteration_limit, check_whole
from ..registration import register

# The eigenvalues of a subsample are not quite those of all points: ratios of them are flattened by
# this power, as in the authors' code.
_POWER = 0.95
# What is left of the largest step that batches of the critical size admit (authors' code).
_SAFETY = 0.99
# Eigenvalues below this part of the largest are rounding, by type of the entries.
_SMALLEST = {"float64": 1e-12, "float32": 1e-5}
# An epoch has diverged if its residuals have grown to so many times those of f = 0.
_DIVERGED = 2.0


@register("svm")
@hyperparameters
class EigenPro(Solver, SolverParameters, CachedKernelParameters):
    """Kernel interpolation of the labels by preconditioned stochastic gradients, EigenPro 2.

    Looks for the function of least norm with ``f(x_i) = y_i``, the limit of gradient descent on
    ``sum_i (f(x_i) - y_i)^2`` from ``f = 0``. ``K_s`` is the Gram matrix of a subsample of s
    points, ``l_1, ..., l_q`` are the largest eigenvalues of ``K_s / s``, and the columns of V its
    eigenvectors. A batch of m points with residuals g changes their coefficients by ``-eta/m g``,
    and those of the subsample by ``eta/m V D V' K_sm g`` with ``D_ii = (1 - l_q / l_i) / (s l_i)``
    ([MB19]_ Algorithm 1). This is stochastic descent for a kernel whose largest eigenvalues are
    lowered to ``l_q``, so that larger batches are worth their work. The squared loss is another aim
    than the hinge loss, and nothing but the end of the run regularises it: there are errors to
    report but no suboptimality.

    Parameters
    ----------
    n_subsample : int >= 2
        Number s of points for the preconditioner; all points if there are fewer. The authors take
        2000 below 1e5 points, else 12000.
    n_eigenvalues : int >= 1 or None
        Number q of eigenvalues; None for the largest for which the critical batch size is at most
        ``max_batch_size`` ([MB19]_ section 3), but no more than ``max_batch_size`` or a tenth of s.
    max_batch_size : int >= 1
        The largest batch; the critical size, ``beta / l + 1``, is used if it is smaller.
    max_epochs : int >= 1
        Stop after this many epochs of n points.
    tol : float >= 0
        Stop when the root mean square of the residuals, as an epoch met them, is at most ``tol``.
    random_state
        Seeds the subsample and the order of the points.

    Attributes
    ----------
    batch_size_ : int
    step_size_ : float
        The step eta of the last epoch.
    n_eigenvalues_ : int
        Number q of eigenvalues in use.
    residual_ : float
        Root mean square of the residuals as the last epoch met them.

    Notes
    -----
    The critical batch size is ``beta / l + 1``, where ``beta`` is the largest diagonal entry of the
    preconditioned kernel on the subsample and l its largest eigenvalue. No batch is larger; its
    step is ``m / beta``, 0.99 times that at the critical size itself, which is ``2 m / (beta + (m -
    1) l)`` there ([MBB18]_ Theorem 4, [MB19]_). Each epoch takes the points in a new order.

    Kernel evaluations: s^2, then n for each point that is drawn; the entries with the subsample are
    a part of them. Time besides: the eigenvalues of a matrix of s^2 numbers, and (m + q) s
    multiply-adds for each batch. Memory: s^2 and m n numbers and the cache. An iteration is a
    draw of a point. Returns the last f. Deviations: the power 0.95 of ``l_q / l_i`` replaces the
    ratio, as in the authors' code; q follows from ``max_batch_size`` and not from the memory of a
    GPU; the step is halved after an epoch whose residuals are larger than those of ``f = 0`` and of
    the epoch before; and from one where they grow beyond twice those of ``f = 0``, it goes back to
    the start of the epoch with the smallest residuals.
    """

    scalarization = None

    n_subsample: int = 2000
    n_eigenvalues: int | None = None
    max_batch_size: int = 256
    max_epochs: int = 20
    tol: float = 1e-3

    def _check_parameters(self) -> None:
        check_whole("n_subsample", self.n_subsample, at_least=2)
        check_whole("max_batch_size", self.max_batch_size, at_least=1)
        check_iteration_limit(self.max_epochs)
        if self.n_eigenvalues is not None:
            check_whole("n_eigenvalues", self.n_eigenvalues, at_least=1)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y, oracle = problem.n, problem.y, problem.oracle
        drawn = problem.rng.permutation(n)[: int(self.n_subsample)]
        preconditioner = problem.once("eigenpro", lambda: self._preconditioner(problem, drawn))
        size = int(min(preconditioner.critical_size, int(self.max_batch_size), n))
        self.batch_size_, self.n_eigenvalues_ = size, preconditioner.n_eigenvalues
        coef, step, n_iter = np.zeros(n), preconditioner.step(size), 0
        # Of the last epoch and the one before; the start of the best epoch, and those it met.
        residual, before, best, smallest = 1.0, math.inf, coef.copy(), 1.0
        status: SolveStatus = "budget"

        def snapshot() -> KernelExpansion:
            return problem.expansion(coef)

        for _ in range(self.max_epochs):
            if n_iter > 0 and monitor.epoch_ended(n_iter, snapshot):
                status = "stopped"
                break
            start, squares, met = coef.copy(), 0.0, 0
            order = problem.rng.permutation(n)
            diverged = False
            while met < n and not diverged and status != "stopped":
                batch = order[met : met + size]
                rows = oracle.rows(batch)
                residuals = matmul(rows.astype(np.float64, copy=False), coef) - y[batch]
                squares += float(residuals @ residuals)
                met += len(batch)
                coef[batch] -= step / size * residuals
                correction = preconditioner.correction(rows, residuals)
                coef[preconditioner.points] += step / size * correction
                n_iter += len(batch)
                # Whatever is still to come.
                diverged = not squares <= _DIVERGED**2 * n
                if monitor.due(problem.kernel_evals) and monitor.record(n_iter, snapshot):
                    status = "stopped"
            if status == "stopped":
                break
            residual = math.sqrt(squares / met)
            if diverged or residual >= max(before, 1.0):
                step /= 2
            before = residual
            if diverged:
                coef = best.copy()
            elif residual < smallest:
                best, smallest = start, residual
            if residual <= self.tol:
                status = "converged"
                break
        self.step_size_, self.residual_ = step, residual
        shortfall = short_of(f"the residuals of an epoch are {residual:.3g}", self.tol)
        return Solution(snapshot(), n_iter, status, shortfall)

    def _preconditioner(self, problem: Problem, points: np.ndarray) -> Preconditioner:
        oracle = problem.oracle
        gram = oracle.block(points, points).astype(np.float64)
        if not gram.diagonal().max() > 0:
            raise ValueError("no k(x, x) is above 0: there is no direction to move in")
        wanted = None if self.n_eigenvalues is None else int(self.n_eigenvalues)
        smallest = _SMALLEST[oracle.dtype.name]
        return make_preconditioner(gram, points, wanted, int(self.max_batch_size), smallest)


class Preconditioner(NamedTuple):
    """The kernel whose largest eigenvalues are lowered, as a correction of gradients."""

    points: np.ndarray
    vectors: np.ndarray
    scales: np.ndarray
    beta: float
    top: float

    @property
    def n_eigenvalues(self) -> int:
        """The number q of eigenvalues in use."""
        return len(self.scales) + 1

    @property
    def critical_size(self) -> float:
        """The batch size above which steps grow no more in proportion (MB19 section 2)."""
        return self.beta / self.top + 1

    def step(self, batch_size: int) -> float:
        """The step eta for batches of this size (MBB18 Theorem 4)."""
        step = batch_size / self.beta
        return step if batch_size < self.critical_size else _SAFETY * step

    def correction(self, rows: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """``V D V' K_sm g``, shape (s,), from the kernel rows of a batch."""
        product = matmul(residuals, rows[:, self.points].astype(np.float64, copy=False))
        return matmul(self.vectors, self.scales * matmul(product, self.vectors))


def make_preconditioner(
    gram: np.ndarray, points: np.ndarray, wanted: int | None, max_batch_size: int, smallest: float
) -> Preconditioner:
    """The preconditioner of a subsample."""
    s = len(gram)
    # Of its last eigenvectors a subsample says nothing about other points.
    count = min(s, wanted) if wanted is not None else max(1, min(s // 10, max_batch_size))
    values, vectors = eigh(gram / s, subset_by_index=[s - count, s - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > smallest * values[0]).sum())
    values, vectors = values[:rank], vectors[:, :rank]
    tops = values[0] * (values / values[0]) ** _POWER
    betas = _largest_diagonals(gram.diagonal(), values, vectors)
    q = rank
    if wanted is None:
        affordable = np.flatnonzero(betas / tops + 1 <= max_batch_size)
        q = int(affordable[-1]) + 1 if len(affordable) else 1
    ratios = (values[q - 1] / values[: q - 1]) ** _POWER
    return Preconditioner(
        points,
        np.ascontiguousarray(vectors[:, : q - 1]),
        (1 - ratios) / (s * values[: q - 1]),
        float(betas[q - 1]),
        float(tops[q - 1]),
    )


def _largest_diagonals(diagonal: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The largest diagonal entry of the preconditioned kernel for each number q of eigenvalues."""
    s = len(diagonal)
    # What lowering takes from the diagonal: s (l_i - l_i^0.05 l_q^0.95) V_ji^2, summed over i < q.
    squares = s * vectors**2
    whole = np.cumsum(squares * values, axis=1)
    flattened = np.cumsum(squares * values ** (1 - _POWER), axis=1) * values**_POWER
    return (diagonal[:, None] - whole + flattened).max(axis=0)
