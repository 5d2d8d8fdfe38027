"""LIBSVM, the standard peer of kernel methods."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels import CallableKernel, Kernel, Precomputed
from ..models import KernelExpansion
from ..numeric.validation import check_positive, check_whole
from ..registration import register
from .svc import svc_kernel


@register("svm")
@hyperparameters
class LIBSVM(Solver, SolverParameters, SoftMarginParameters, CachedKernelParameters):
    """Soft-margin kernel SVM with bias by LIBSVM, through scikit-learn's SVC.

    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.SMO` with ``fit_intercept=True`` ([CL11]_).

    Parameters
    ----------
    fit_intercept
        Must be True: LIBSVM always fits an unregularised bias.
    shrinking : bool
        LIBSVM's shrinking heuristic.
    tol : float > 0
        Stop when no pair violates the optimality conditions by more than ``tol``.
    max_iter : int >= 1 or None
        Stop after this many iterations; None: max(1e7, 100 n), LIBSVM's own limit, which
        scikit-learn's copy leaves out.
    cache_size : float > 0
        LIBSVM's cache of float32 kernel rows, MB.
    dtype
        Type of the kernel entries of predictions.
    random_state
        Unused: the method is deterministic.

    Notes
    -----
    Returns the last alpha.
    """

    supports_bias = True
    supports_no_bias = False
    scalarization = "C"
    certificate: ClassVar[Literal["dual"] | None] = "dual"
    instrumented = False
    deterministic = True

    fit_intercept: bool = True
    shrinking: bool = True
    tol: float = 1e-3
    max_iter: int | None = None

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter, at_least=1)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        return self._solve_on(problem, np.arange(problem.n))

    def _solve_on(self, problem: Problem, index: np.ndarray) -> Solution:
        """The solution of the problem of these training points."""
        limit = max(10_000_000, 100 * len(index)) if self.max_iter is None else self.max_iter
        limit = min(limit, np.iinfo(np.int32).max)
        svc = SVC(
            C=self.C,
            shrinking=self.shrinking,
            tol=self.tol,
            cache_size=self.cache_size,
            max_iter=limit,
            # Without a seed SVC draws one from the global state, and then has no use for it.
            random_state=0,
            **_kernel_arguments(problem.oracle.kernel),
        )
        X = problem.X if len(index) == problem.n else problem.X[index]
        if isinstance(problem.oracle.kernel, Precomputed):
            # SVC takes a dense Gram matrix only.
            X = (X.toarray() if sparse.issparse(X) else X)[:, index]
        with warnings.catch_warnings():
            # The solver itself warns, with what it was asked for.
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(X, problem.y[index])
        dual_coef = (
            svc.dual_coef_.toarray() if hasattr(svc.dual_coef_, "toarray") else svc.dual_coef_
        )
        coef = np.zeros(problem.n)
        coef[index[svc.support_]] = dual_coef[0]
        model: KernelExpansion = problem.expansion(coef, float(svc.intercept_[0]))
        n_iter = int(svc.n_iter_[0])
        # LIBSVM does not tell by how much.
        shortfall = short_of(
            f"after {n_iter} iterations a pair may violate the conditions by more", self.tol
        )
        status: SolveStatus = "budget" if svc.fit_status_ == 1 else "converged"
        return Solution(model, n_iter, status, shortfall)


def _kernel_arguments(kernel: Kernel) -> dict[str, Any]:
    if isinstance(kernel, Precomputed):
        return {"kernel": "precomputed"}
    if isinstance(kernel, CallableKernel):
        return {"kernel": kernel.function}
    arguments = svc_kernel(kernel)
    if arguments is None:
        raise ValueError(f"LIBSVM has no kernel {kernel.describe()['name']!r}")
    return arguments
