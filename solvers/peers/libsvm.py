"""SVC and its relatives, the standard peers of kernel methods."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numba import get_num_threads
from sklearn.svm import SVC

from ..interface.base import Solver
from ..interface.convergence import short_of, without_convergence_warnings
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from ..numeric.matrices import Matrix, as_dense
from ..numeric.validation import check_positive, check_whole
from ..registration import register, required_module


def svc_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """Arguments of SVC for a kernel that all of its implementations have; None for others."""
    description = kernel.describe() if type(kernel) in (RBF, Linear, Polynomial) else None
    return description and {"kernel": description.pop("name"), **description}


@hyperparameters
class SVCSolver(Solver, SolverParameters, SoftMarginParameters, CachedKernelParameters):
    """Base of the solvers that have the parameters of scikit-learn's SVC.

    Parameters
    ----------
    fit_intercept
        Must be True: the method always fits an unregularised bias.
    shrinking : bool
        The library's shrinking heuristic.
    tol : float > 0
        Stop when no pair violates the optimality conditions by more than ``tol``.
    cache_size : float > 0
        The library's cache of kernel rows, MB.
    random_state
        Unused: the method is deterministic.
    """

    supports_bias = True
    supports_no_bias = False
    instrumented = False
    deterministic = True

    fit_intercept: bool = True
    shrinking: bool = True
    tol: float = 1e-3

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        if self.max_iter != type(self).max_iter:
            check_whole("max_iter", self.max_iter, at_least=1)

    def _fitted(
        self,
        problem: Problem,
        X: Matrix,
        index: np.ndarray,
        limit: int,
        svc_class: Any,
        **more: Any,
    ) -> Solution:
        """The solution of the problem of these training points X by a class like SVC."""
        limit = min(limit, np.iinfo(np.int32).max)
        common = {name: getattr(self, name) for name in ("C", "shrinking", "tol", "cache_size")}
        svc = svc_class(**common, max_iter=limit, **more)
        with without_convergence_warnings():
            svc.fit(X, problem.y[index])
        coef = np.zeros(problem.n)
        coef[index[svc.support_]] = as_dense(svc.dual_coef_)[0]
        model = problem.expansion(coef, float(svc.intercept_[0]))
        n_iter = int(np.ravel(svc.n_iter_)[0])
        # Neither library tells by how much.
        words = f"after {n_iter} iterations a pair may violate the conditions by more"
        status: SolveStatus = "budget" if n_iter >= limit else "converged"
        return Solution(model, n_iter, status, short_of(words, self.tol))


@register("svm")
@hyperparameters
class LIBSVM(SVCSolver):
    """Soft-margin kernel SVM with bias by LIBSVM, through scikit-learn's SVC.

    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.SMO` with ``fit_intercept=True`` ([CL11]_).

    Parameters
    ----------
    max_iter : int >= 1 or None
        Stop after this many iterations; None: max(1e7, 100 n), LIBSVM's own limit, which
        scikit-learn's copy leaves out.
    dtype
        Type of the kernel entries of predictions.

    Notes
    -----
    Returns the last alpha.
    """

    certificate: ClassVar[Literal["dual"] | None] = "dual"

    max_iter: int | None = None

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        return self._solve_on(problem, np.arange(problem.n))

    def _solve_on(self, problem: Problem, index: np.ndarray) -> Solution:
        """The solution of the problem of these training points."""
        kernel, arguments = problem.oracle.kernel, svc_kernel(problem.kernel)
        X = problem.X if len(index) == problem.n else problem.X[index]
        if isinstance(kernel, Precomputed):
            # SVC takes a dense Gram matrix only.
            X, arguments = as_dense(X)[:, index], {"kernel": "precomputed"}
        elif isinstance(kernel, CallableKernel):
            arguments = {"kernel": kernel.function}
        elif arguments is None:
            raise ValueError(f"LIBSVM has no kernel {kernel.describe()['name']!r}")
        limit = self.max_iter or max(10_000_000, 100 * len(index))
        # Without a seed SVC draws one from the global state, and then has no use for it.
        return self._fitted(problem, X, index, limit, SVC, random_state=0, **arguments)


@register("svm")
@hyperparameters
class LIBSVMSubsample(LIBSVM):
    """Soft-margin kernel SVM with bias by LIBSVM, on points drawn from the training set.

    The baseline that every approximation of the kernel SVM has to beat: m training points, drawn
    uniformly without replacement, are given to LIBSVM ([CL11]_), and the others are ignored. C is
    the weight of each loss, as for :class:`marginbench.LIBSVM`: with fewer losses the same C
    regularises more. Errors and objective are those of the model on all points.

    Parameters
    ----------
    n_samples : int >= 2, or float in (0, 1]
        Number m of points, all if there are fewer; or their share, rounded up.
    max_iter : int >= 1 or None
        Stop after this many iterations; None: max(1e7, 100 m), LIBSVM's own limit, which
        scikit-learn's copy leaves out.
    random_state
        Seeds the points. Those of a smaller m are among those of a larger one.

    Attributes
    ----------
    samples_ : ndarray of int64, shape (m,)
        Positions of the drawn points in the training set, ascending.

    Notes
    -----
    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. If
    all drawn points are of one class, the model predicts that class. Returns the last alpha, which
    is feasible in the dual of all points, but whose gap does not close: it is no certificate.
    """

    certificate = None
    deterministic = False

    n_samples: int | float = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        m = self.n_samples
        whole = isinstance(m, Integral) and not isinstance(m, bool) and m >= 2
        share = isinstance(m, Real) and not isinstance(m, Integral) and 0 < m <= 1
        if not (whole or share):
            raise ValueError(
                f"n_samples must be a whole number >= 2 or a share in (0, 1], got {m!r}"
            )

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, m = problem.n, self.n_samples
        size = int(m) if isinstance(m, Integral) else math.ceil(m * n)
        drawn = np.arange(n) if size >= n else np.sort(problem.rng.permutation(n)[:size])
        self.samples_ = drawn
        labels = problem.y[drawn]
        if (labels == labels[0]).all():
            return Solution(problem.expansion(np.zeros(n), float(labels[0])), 0, "converged")
        return self._solve_on(problem, drawn)


@register("svm")
@hyperparameters
class OneDAL(SVCSolver):
    """Soft-margin kernel SVM with bias by oneDAL, through scikit-learn-intelex's SVC.

    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.SMO` with ``fit_intercept=True`` by sequential minimal
    optimisation on large working sets ([WSL18]_). The package is not one of marginbench's own:
    ``pip install 'marginbench[peers]'``.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or Kernel
        The kernels that oneDAL has.
    max_iter : int >= 1
        Stop after this many iterations, each of which solves for a working set.
    dtype
        Type of the points and of all computations of oneDAL, and of the kernel entries of
        predictions.

    Notes
    -----
    As many threads as numba may use: one in a study, unless it says otherwise. Returns the last
    alpha, whose signed sum is 0 up to the rounding of ``dtype``: it is no certificate.
    """

    requires = "scikit-learn-intelex"
    supports_callable_kernel = False

    max_iter: int = 10_000

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        arguments = svc_kernel(problem.kernel)
        if arguments is None:
            name = problem.kernel.describe()["name"]
            raise ValueError(f"OneDAL has no kernel {name!r}: take rbf, linear, poly")
        svc_class = required_module(OneDAL, "sklearnex.svm").SVC
        X, index = problem.X.astype(self.dtype), np.arange(problem.n)
        arguments["n_jobs"] = get_num_threads()
        return self._fitted(problem, X, index, self.max_iter, svc_class, **arguments)
