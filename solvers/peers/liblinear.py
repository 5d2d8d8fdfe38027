"""LIBLINEAR, the standard peer of linear methods: scikit-learn's copy and its authors' package."""

from __future__ import annotations

import re

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC

from ..interface.base import Solver, WeightedSolver
from ..interface.convergence import short_of, without_convergence_warnings
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution
from ..models import LinearModel
from ..numeric.rows import finite_squared_norms
from ..numeric.validation import check_iteration_limit, check_positive
from ..registration import register, required_module

# `-s 3`: the dual of the hinge loss with half the squared norm.
_HINGE_DUAL = 3


@hyperparameters
class LiblinearParameters(SolverParameters, SoftMarginParameters):
    """Parameters of LIBLINEAR.

    Parameters
    ----------
    fit_intercept
        Must be False: LIBLINEAR's bias is the weight of a constant feature, regularised like the
        others.
    tol : float > 0
        Stop when the projected derivatives of the dual lie within ``tol`` of each other.
        LIBLINEAR's own default is 0.1, scikit-learn's 1e-4.
    random_state
        Seeds the order of the points.
    """

    tol: float = 1e-3

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)

    def _solution(self, w: np.ndarray, n_iter: int, *, limited: bool) -> Solution:
        # LIBLINEAR does not tell how far apart they are.
        shortfall = short_of(
            f"after {n_iter} passes the projected derivatives may differ by more", self.tol
        )
        model = LinearModel(np.array(w, dtype=np.float64))
        return Solution(model, n_iter, "budget" if limited else "converged", shortfall)


@register("svm")
@hyperparameters
class LIBLINEAR(LiblinearParameters, WeightedSolver):
    """Linear soft-margin SVM without bias by LIBLINEAR, through scikit-learn's LinearSVC.

    An external solver: it counts no inner products and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.LinearSDCA` by the same method, dual coordinate
    descent with shrinking ([HCL08]_ Algorithm 3).

    Parameters
    ----------
    max_epochs : int >= 1
        Stop after this many passes over the points.

    Notes
    -----
    Kernel evaluations: none; what it does is not counted. Points are copied to double precision.
    Returns the last w. LinearSVC does not give the dual variables, so there is no certificate.
    """

    instrumented = False
    kernel = "linear"

    max_epochs: int = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
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
        with without_convergence_warnings():
            svc.fit(problem.X, problem.y, sample_weight=problem.weights)
        n_iter = int(svc.n_iter_)
        return self._solution(svc.coef_[0], n_iter, limited=n_iter >= self.max_epochs)


@register("svm")
@hyperparameters
class LIBLINEAROfficial(LiblinearParameters, Solver):
    """Linear soft-margin SVM without bias by LIBLINEAR, through its authors' own package.

    An external solver: it counts no inner products and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.LIBLINEAR` by the same method ([HCL08]_ Algorithm 3),
    in the present release instead of the copy in scikit-learn. The package is not one of
    marginbench's own: ``pip install 'marginbench[peers]'``.

    Notes
    -----
    Kernel evaluations: none; what it does is not counted. Points are copied to double precision,
    16 bytes for each stored number, as a part of the fit. LIBLINEAR bounds the number of passes
    itself (300 in release 2.50), and has no parameter for it. The order of the points comes from
    the C library's ``rand``, which the fit seeds for the whole process. Returns the last w.
    """

    requires = "liblinear-official"
    instrumented = False
    kernel = "linear"

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        finite_squared_norms(problem.X)
        liblinear = required_module(LIBLINEAROfficial, "liblinear.liblinear")
        points = sparse.csr_matrix(problem.X, dtype=np.float64)
        data = liblinear.problem(problem.y, points)
        parameter = liblinear.parameter(
            f"-s {_HINGE_DUAL} -c {float(self.C)!r} -e {float(self.tol)!r}"
        )
        printed: list[bytes] = []
        parameter.print_func = liblinear.PRINT_STRING_FUN(printed.append)
        library = liblinear.liblinear
        # It draws from the C library's `rand`, which is not to be found there on every system.
        if hasattr(library, "srand"):
            library.srand(int(problem.rng.integers(2**31)))
        try:
            train = required_module(LIBLINEAROfficial, "liblinear.liblinearutil").train
            model = train(data, parameter)
        finally:
            # The library keeps the function, which will soon be gone.
            library.set_print_string_function(liblinear.parameter("-q").print_func)
        text = b"".join(printed).decode(errors="replace")
        # w points to the class of the first label.
        w = np.ctypeslib.as_array(model.w, (model.nr_feature,)) * model.get_labels()[0]
        n_iter = int(re.findall(r"#iter = (\d+)", text)[0])
        return self._solution(w, n_iter, limited="reaching max number" in text)
