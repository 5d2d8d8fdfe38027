"""LIBLINEAR, the standard peer of linear methods."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from ..interface.base import WeightedSolver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import LinearModel
from ..numeric.rows import finite_squared_norms
from ..numeric.validation import check_iteration_limit, check_positive
from ..registration import register


@register("svm")
@hyperparameters
class LIBLINEAR(WeightedSolver, SolverParameters, SoftMarginParameters):
    """Linear soft-margin SVM without bias by LIBLINEAR, through scikit-learn's LinearSVC.

    An external solver: it counts no inner products and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.LinearSDCA` by the same method, dual coordinate
    descent with shrinking ([HCL08]_ Algorithm 3).

    Parameters
    ----------
    fit_intercept
        Must be False: LIBLINEAR's bias is the weight of a constant feature, regularised like the
        others.
    tol : float > 0
        Stop when the projected derivatives of the dual lie within ``tol`` of each other.
        LIBLINEAR's own default is 0.1, scikit-learn's 1e-4.
    max_epochs : int >= 1
        Stop after this many passes over the points.
    random_state
        Seeds the order of the points.

    Notes
    -----
    Kernel evaluations: none; what it does is not counted. Points are copied to double precision.
    Returns the last w. LinearSVC does not give the dual variables, so there is no certificate.
    """

    scalarization = "C"
    instrumented = False
    kernel = "linear"

    tol: float = 1e-3
    max_epochs: int = 1000

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        finite_squared_norms(problem.X)
        svc = LinearSVC(
            loss="hinge",
            C=self.C,
            fit_intercept=False,
            tol=self.tol,
            max_iter=min(self.max_epochs, np.iinfo(np.int32).max),
            random_state=int(problem.rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            # The solver itself warns, with what it was asked for.
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(problem.X, problem.y, sample_weight=problem.weights)
        model = LinearModel(np.array(svc.coef_[0], dtype=np.float64))
        n_iter = int(svc.n_iter_)
        # LIBLINEAR does not tell how far apart they are.
        shortfall = short_of(
            f"after {n_iter} passes the projected derivatives may differ by more", self.tol
        )
        status: SolveStatus = "budget" if n_iter >= self.max_epochs else "converged"
        return Solution(model, n_iter, status, shortfall)
