"""oneDAL's support vector machine, a peer of the exact kernel methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads
from scipy import sparse

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels import Kernel
from ..numeric.validation import check_positive, check_whole
from ..registration import register
from .svc import svc_kernel


@register("svm")
@hyperparameters
class OneDAL(Solver, SolverParameters, SoftMarginParameters, CachedKernelParameters):
    """Soft-margin kernel SVM with bias by oneDAL, through scikit-learn-intelex's SVC.

    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.SMO` with ``fit_intercept=True`` by sequential minimal
    optimisation on large working sets ([WSL18]_). The package is not one of marginbench's own:
    ``pip install 'marginbench[peers]'``.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or Kernel
        The kernels that oneDAL has.
    fit_intercept
        Must be True: oneDAL always fits an unregularised bias.
    shrinking : bool
        oneDAL's shrinking heuristic.
    tol : float > 0
        Stop when no pair violates the optimality conditions by more than ``tol``.
    max_iter : int >= 1
        Stop after this many iterations, each of which solves for a working set.
    cache_size : float > 0
        oneDAL's cache of kernel rows, MB.
    dtype
        Type of the points and of all computations of oneDAL, and of the kernel entries of
        predictions.
    random_state
        Unused: the method is deterministic.

    Notes
    -----
    As many threads as numba may use: one in a study, unless it says otherwise. Returns the last
    alpha, whose signed sum is 0 up to the rounding of ``dtype``: it is no certificate.
    """

    requires = "scikit-learn-intelex"
    supports_bias = True
    supports_no_bias = False
    supports_callable_kernel = False
    scalarization = "C"
    instrumented = False
    deterministic = True

    fit_intercept: bool = True
    shrinking: bool = True
    tol: float = 1e-3
    max_iter: int = 10_000

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        check_whole("max_iter", self.max_iter, at_least=1)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        kernel = _kernel_arguments(problem.kernel)
        svc = _svc_class()(
            C=self.C,
            shrinking=self.shrinking,
            tol=self.tol,
            cache_size=self.cache_size,
            max_iter=min(self.max_iter, np.iinfo(np.int32).max),
            n_jobs=get_num_threads(),
            **kernel,
        )
        svc.fit(problem.X.astype(self.dtype), problem.y)
        dual = svc.dual_coef_
        coef = np.zeros(problem.n)
        coef[svc.support_] = (dual.toarray() if sparse.issparse(dual) else dual)[0]
        model = problem.expansion(coef, float(svc.intercept_[0]))
        n_iter = int(np.ravel(svc.n_iter_)[0])
        # oneDAL does not tell by how much.
        shortfall = short_of(
            f"after {n_iter} iterations a pair may violate the conditions by more", self.tol
        )
        status: SolveStatus = "budget" if n_iter >= self.max_iter else "converged"
        return Solution(model, n_iter, status, shortfall)


def _svc_class() -> Any:
    """The class of scikit-learn-intelex, imported by the first fit."""
    try:
        from sklearnex.svm import SVC
    except ImportError as error:
        raise ImportError(
            f"OneDAL needs the package {OneDAL.requires}, which cannot be imported here "
            f"({str(error).partition(chr(10))[0]}): pip install 'marginbench[peers]'"
        ) from error
    return SVC


def _kernel_arguments(kernel: Kernel) -> dict[str, Any]:
    arguments = svc_kernel(kernel)
    if arguments is None:
        name = kernel.describe()["name"]
        raise ValueError(f"OneDAL has no kernel {name!r}: take rbf, linear, poly")
    return arguments
