"""The batch perceptron: always correct the worst classified point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginbench.solvers.interface.base import Solver
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution, SolveStatus
from marginbench.solvers.kernels import Kernel
from marginbench.solvers.models import KernelExpansion
from marginbench.solvers.numeric.compiling import njit
from marginbench.solvers.numeric.validation import check_iteration_limit, positive


class BatchPerceptron(Solver):
    """The kernel perceptron that looks at all points and corrects the worst one.

    Each step adds ``y_i Phi_i`` of the point with the smallest ``y_i <w, Phi_i>`` to w, until none
    is too small. It finds a separating w, or with ``target_margin`` one of at least that margin
    ``min_i y_i <w, Phi_i> / ||w||``; there is no bias and no slack. [SBP12]_ (section 3)
    generalises it to data that cannot be separated.

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
    fit_intercept : bool, default=False
        Must be False.
    target_margin : float >= 0, default=0.0
        The margin to reach, in units of distance in feature space; 0 asks for any positive one.
    max_epochs : int >= 1, default=10
        Stop after this many times n steps.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64.
    cache_size : float >= 0, default=200.0
        Bound on the cached kernel rows, MB; 0 for no cache.
    random_state : int, Generator or None, default=None
        Not used: the method draws nothing.

    Attributes
    ----------
    margin_ : float
        ``min_i y_i <w, Phi_i> / ||w||`` of the returned w.

    Notes
    -----
    Kernel evaluations: n in each step. On separable data with largest margin rho and ``||Phi_i|| <=
    R``, at most ``R^2 / rho^2`` steps to a positive margin ([Nov62]_). Memory: 2n numbers and the
    cache. Returns the last w.

    References
    ----------
    .. [Nov62] Novikoff: On convergence proofs on perceptrons. Symposium on the Mathematical Theory
       of Automata, 1962. BibTeX key ``novikoff1962convergence``.
    .. [SBP12] Cotter, Shalev-Shwartz, Srebro: The kernelized stochastic batch perceptron.
       ICML 2012. BibTeX key ``cotter2012kernelized``.
    """

    scalarization = None

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        target_margin: float = 0.0,
        max_epochs: int = 10,
        dtype: str = "float32",
        cache_size: float = 200.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.target_margin = target_margin
        self.max_epochs = max_epochs
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        positive("target_margin", self.target_margin, zero=True)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y, oracle = problem.n, problem.y, problem.oracle
        counts = np.zeros(n, dtype=np.int64)
        margins = np.zeros(n)
        worst, squared_norm, t = 0, 0.0, 0

        def snapshot() -> KernelExpansion:
            return problem.expansion(counts * y)

        status: SolveStatus = "budget"
        while t < self.max_epochs * n:
            row = oracle.row(worst)
            squared_norm += 2 * margins[worst] + row[worst]
            counts[worst] += 1
            worst = _add_row(margins, y, row, y[worst])
            t += 1
            lowest = margins[worst]
            if lowest > 0 and lowest >= self.target_margin * np.sqrt(squared_norm):
                status = "converged"
                break
            if monitor.due(problem.kernel_evals) and monitor.record(t, snapshot):
                status = "stopped"
                break
        norm = np.sqrt(max(squared_norm, 0.0))
        self.margin_ = float(margins[worst] / norm) if norm > 0 else 0.0
        return Solution(snapshot(), t, status)


@njit(error_model="numpy")
def _add_row(margins, y, row, sign):
    """margins_j += sign y_j K_ij; returns the index of the smallest."""
    worst = 0
    for j in range(len(margins)):
        margins[j] += sign * y[j] * row[j]
        if margins[j] < margins[worst]:
            worst = j
    return worst
