"""LIBLINEAR as its authors package it, a peer of the linear methods."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from ..interface.base import Solver
from ..interface.convergence import short_of
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import LinearModel
from ..numeric.rows import finite_squared_norms
from ..numeric.validation import check_positive
from ..registration import register

# `-s 3`: the dual of the hinge loss with half the squared norm.
_HINGE_DUAL = 3


@register("svm")
@hyperparameters
class LIBLINEAROfficial(Solver, SolverParameters, SoftMarginParameters):
    """Linear soft-margin SVM without bias by LIBLINEAR, through its authors' own package.

    An external solver: it counts no inner products and shows no checkpoint before its end. It
    solves the problem of :class:`marginbench.LIBLINEAR` by the same method ([HCL08]_ Algorithm 3),
    in the present release instead of the copy in scikit-learn. The package is not one of
    marginbench's own: ``pip install 'marginbench[peers]'``.

    Parameters
    ----------
    fit_intercept
        Must be False: LIBLINEAR's bias is the weight of a constant feature, regularised like the
        others.
    tol : float > 0
        Stop when the projected derivatives of the dual lie within ``tol`` of each other.
        LIBLINEAR's own default is 0.1.
    random_state
        Seeds the order of the points.

    Notes
    -----
    Kernel evaluations: none; what it does is not counted. Points are copied to double precision,
    16 bytes for each stored number, as a part of the fit. LIBLINEAR bounds the number of passes
    itself (300 in release 2.50), and has no parameter for it. The order of the points comes from
    the C library's ``rand``, which the fit seeds for the whole process. Returns the last w.
    """

    requires = "liblinear-official"
    scalarization = "C"
    instrumented = False
    kernel = "linear"

    tol: float = 1e-3

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("tol", self.tol)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        finite_squared_norms(problem.X)
        liblinear = _package()
        points = sparse.csr_matrix(problem.X, dtype=np.float64)
        options = f"-s {_HINGE_DUAL} -c {float(self.C)!r} -e {float(self.tol)!r}"
        seed = int(problem.rng.integers(2**31))
        model, printed = _train(liblinear, liblinear.problem(problem.y, points), options, seed)
        n_iter = _passes(printed)
        # w points to the class of the first label.
        w = np.ctypeslib.as_array(model.w, (model.nr_feature,)) * model.get_labels()[0]
        # LIBLINEAR does not tell how far apart they are.
        shortfall = short_of(
            f"after {n_iter} passes the projected derivatives may differ by more", self.tol
        )
        status: SolveStatus = "budget" if "reaching max number" in printed else "converged"
        return Solution(LinearModel(w), n_iter, status, shortfall)


def _train(liblinear: ModuleType, data: Any, options: str, seed: int) -> tuple[Any, str]:
    """LIBLINEAR's model, and what it prints meanwhile."""
    from liblinear.liblinearutil import train

    printed: list[bytes] = []
    parameter = liblinear.parameter(options)
    parameter.print_func = liblinear.PRINT_STRING_FUN(printed.append)
    _seed(liblinear.liblinear, seed)
    try:
        model = train(data, parameter)
    finally:
        # The library keeps the function, which will soon be gone.
        quiet = liblinear.parameter("-q").print_func
        liblinear.liblinear.set_print_string_function(quiet)
    return model, b"".join(printed).decode(errors="replace")


def _seed(library: Any, seed: int) -> None:
    """Seed the ``rand`` that the library draws from, on systems where it is to be found there."""
    seeding = getattr(library, "srand", None)
    if seeding is not None:
        seeding(seed)


def _passes(printed: str) -> int:
    """How many passes over the points LIBLINEAR says that it took."""
    passes = re.search(r"#iter = (\d+)", printed)
    if passes is None:
        raise RuntimeError(f"LIBLINEAR did not say how many passes it took: {printed[:200]!r}")
    return int(passes[1])


def _package() -> Any:
    """The module of the package, imported by the first fit."""
    try:
        from liblinear import liblinear
    except Exception as error:  # it raises Exception itself where its library cannot be loaded
        raise ImportError(
            f"LIBLINEAROfficial needs the package {LIBLINEAROfficial.requires}, which cannot be "
            f"imported here ({str(error).partition(chr(10))[0]}): pip install 'marginbench[peers]'"
        ) from error
    return liblinear
