"""LIBSVM, as the peer that everyone knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

from marginbench.solvers.interface.base import Solver
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution
from marginbench.solvers.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from marginbench.solvers.models import KernelExpansion
from marginbench.solvers.numeric.validation import check_iteration_limit, positive


class LIBSVM(Solver):
    """Soft-margin kernel SVM with bias by LIBSVM, through scikit-learn's SVC.

    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.SMO` with ``fit_intercept=True`` ([CL11]_).

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
    C : float > 0, default=1.0
        Weight of the summed hinge loss against ``1/2 ||w||^2``.
    fit_intercept : bool, default=True
        Must be True: LIBSVM always fits an unregularised bias.
    shrinking : bool, default=True
        LIBSVM's shrinking heuristic.
    tol : float > 0, default=1e-3
        Stop when no pair violates the optimality conditions by more than ``tol``.
    max_epochs : int >= 1 or None, default=None
        Stop after this many times n iterations; None: LIBSVM's own limit.
    cache_size : float > 0, default=200.0
        LIBSVM's cache of float32 kernel rows, MB.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries of predictions.
    random_state : int, Generator or None, default=None
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

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        fit_intercept: bool = True,
        shrinking: bool = True,
        tol: float = 1e-3,
        max_epochs: int | None = None,
        cache_size: float = 200.0,
        dtype: str = "float32",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.tol = tol
        self.max_epochs = max_epochs
        self.cache_size = cache_size
        self.dtype = dtype
        self.random_state = random_state

    def _check_parameters(self) -> None:
        positive("C", self.C)
        positive("tol", self.tol)
        positive("cache_size", self.cache_size)
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
