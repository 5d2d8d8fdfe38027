"""LIBSVM, the standard peer of kernel methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

from marginbench.solvers.interface.base import Solver
from marginbench.solvers.interface.declaration import hyperparameters
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.parameters import (
    CachedKernelParameters,
    SoftMarginParameters,
    SolverParameters,
)
from marginbench.solvers.interface.problem import Problem, Solution
from marginbench.solvers.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from marginbench.solvers.models import KernelExpansion
from marginbench.solvers.numeric.validation import check_iteration_limit, check_positive
from marginbench.solvers.registration import register


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
    max_epochs : int >= 1 or None
        Stop after this many times n iterations; None: LIBSVM's own limit.
    cache_size : float > 0
        LIBSVM's cache of float32 kernel rows, MB.
    dtype
        Type of the kernel entries of predictions.
    random_state
        Unused: the method is deterministic.

    Notes
    -----
    Returns the last alpha.

    References
    ----------
    .. [CL11] Chang, Lin: LIBSVM: a library for support vector machines. ACM TIST 2, 2011.
       BibTeX key ``chang2011libsvm``.
    """

    supports_bias = True
    supports_no_bias = False
    scalarization = "C"
    certificate = "dual"
    instrumented = False

    fit_intercept: bool = True
    shrinking: bool = True
    tol: float = 1e-3
    max_epochs: int | None = None

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        check_iteration_limit(self.max_epochs, optional=True)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        limit = -1 if self.max_epochs is None else self.max_epochs * problem.n
        svc = SVC(
            C=self.C,
            shrinking=self.shrinking,
            tol=self.tol,
            cache_size=self.cache_size,
            max_iter=limit,
            **_kernel_arguments(problem.oracle.kernel),
        )
        X = problem.X
        if isinstance(problem.oracle.kernel, Precomputed) and sparse.issparse(X):
            X = X.toarray()  # SVC takes a dense Gram matrix only
        svc.fit(X, problem.y)
        dual_coef = (
            svc.dual_coef_.toarray() if hasattr(svc.dual_coef_, "toarray") else svc.dual_coef_
        )
        coef = np.zeros(problem.n)
        coef[svc.support_] = dual_coef[0]
        model: KernelExpansion = problem.expansion(coef, float(svc.intercept_[0]))
        n_iter = int(svc.n_iter_[0])
        return Solution(model, n_iter, "budget" if n_iter == limit else "converged")


def _kernel_arguments(kernel: Kernel) -> dict[str, Any]:
    if isinstance(kernel, RBF):
        return {"kernel": "rbf", "gamma": kernel.gamma}
    if isinstance(kernel, Polynomial):
        return {
            "kernel": "poly",
            "degree": kernel.degree,
            "gamma": kernel.gamma,
            "coef0": kernel.coef0,
        }
    if isinstance(kernel, Linear):
        return {"kernel": "linear"}
    if isinstance(kernel, Precomputed):
        return {"kernel": "precomputed"}
    if isinstance(kernel, CallableKernel):
        return {"kernel": kernel.function}
    raise ValueError(f"LIBSVM has no kernel {kernel.describe()['name']!r}")
