"""The batch perceptron: always correct the worst classified point."""

from __future__ import annotations

import numpy as np

from ..interface.base import Solver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels.sums import add_row
from ..models import KernelExpansion
from ..numeric.validation import check_positive, check_whole
from ..registration import register


@register("svm")
@hyperparameters
class BatchPerceptron(Solver, SolverParameters, CachedKernelParameters):
    """The kernel perceptron that looks at all points and corrects the worst one.

    Each step adds ``y_i Phi_i`` of the point with the smallest ``y_i <w, Phi_i>`` to w, until none
    is too small. It finds a separating w, or with ``target_margin`` one of at least that margin
    ``min_i y_i <w, Phi_i> / ||w||``; there is no bias and no slack. [SBP12]_ (section 3)
    generalises it to data that cannot be separated.

    Parameters
    ----------
    target_margin : float >= 0
        The margin to reach, in units of distance in feature space; 0 asks for any positive one.
    max_iter : int >= 1 or None
        Stop after this many steps; None: 10 n.
    random_state
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
    """

    scalarization = None
    deterministic = True

    target_margin: float = 0.0
    max_iter: int | None = None

    def _check_parameters(self) -> None:
        check_positive("target_margin", self.target_margin, zero=True)
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter, at_least=1)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, y, oracle = problem.n, problem.y, problem.oracle
        counts = np.zeros(n, dtype=np.int64)
        margins = np.zeros(n)
        worst, squared_norm, t = 0, 0.0, 0

        def snapshot() -> KernelExpansion:
            return problem.expansion(counts * y)

        limit = 10 * n if self.max_iter is None else self.max_iter
        status: SolveStatus = "budget"
        while t < limit:
            row = oracle.row(worst)
            squared_norm += 2 * margins[worst] + row[worst]
            counts[worst] += 1
            add_row(margins, y, row, y[worst])
            worst = int(margins.argmin())
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
        wrong = int(np.count_nonzero(margins <= 0))
        shortfall = (
            f"{wrong} of {n} points are misclassified, the margin is {self.margin_:.3g}, "
            f"target_margin={self.target_margin:g}"
        )
        return Solution(snapshot(), t, status, shortfall)
