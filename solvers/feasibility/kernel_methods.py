"""The kernel methods: on a Gram matrix, and as classifiers with a kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from ..interface.base import Solver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, KernelParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.validation import check_positive
from ..registration import register
from . import mirror_prox
from .methods import (
    EntropyParameters,
    FeasibilityParameters,
    PerceptronParameters,
    RoundParameters,
    VonNeumannParameters,
)
from .problem import FeasibilityProblem
from .progress import Progress
from .proofs import contradicting_points
from .result import FeasibilityResult
from .spaces import FeatureSpace, Space


@hyperparameters
class KernelFeasibilityMethod(Solver, SolverParameters, FeasibilityParameters, KernelParameters):
    """Base class: a feasibility method in feature space is also a classifier without bias.

    ``fit`` scales all points to unit length in feature space and leaves out those of length 0:
    ``result_`` is about the others. Its bounds hold for kernel entries as they are computed, in
    float32 by default. Where ``status_`` is "no_separator", nothing separates the points with a
    margin above ``tol``, and the classifier is of no use: it is near 0 on all training points.

    Parameters
    ----------
    random_state
        Not used: the method draws nothing.

    Attributes
    ----------
    result_ : FeasibilityResult
        Bounds, certificate and history of the fit.
    """

    scalarization = None
    deterministic = True
    kind = "gram"
    #: Whether the method multiplies by the whole Gram matrix.
    _needs_gram: ClassVar[bool] = True
    #: The kernel matrix is stored if it is not larger than this, MB.
    gram_size = 0.0

    max_iter: int = 1000
    tol: float = 1e-3

    def _space(self, problem: FeasibilityProblem) -> Space:
        return FeatureSpace.of_problem(problem, stored=self._needs_gram)

    def _check_parameters(self) -> None:
        FeasibilityParameters._check_parameters(self)
        check_positive("gram_size", self.gram_size, zero=True)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        gram_bytes = int(self.gram_size * 2**20)
        stored: dict[str, np.ndarray] = problem.once("kernel matrix", dict)
        space = FeatureSpace.of_points(problem.oracle, problem.y, gram_bytes, stored)

        def model_of(y: np.ndarray) -> KernelExpansion:
            return problem.expansion(space.on_points(y))

        progress = Progress(self, space, monitor=monitor, model_of=model_of)
        result = self._iterate(space, progress)
        if result.status != "separable":
            result = _with_contradiction(result, space, problem)
        self.result_ = result
        status: SolveStatus = "stopped" if progress.stopped else "budget"
        if result.converged:
            status = "converged" if result.status == "separable" else "no_separator"
        # The starting point is work, too: a run that needs no more has done one iteration.
        n_iter = max(1, result.n_iter)
        model = model_of(result.y)
        return Solution(model, n_iter, status, self._shortfall(result), result.limit)


def _with_contradiction(
    result: FeasibilityResult, space: FeatureSpace, problem: Problem
) -> FeasibilityResult:
    """The result with the proof that points that are the same with both labels are."""
    index = np.arange(problem.n) if space.index is None else space.index
    pair = contradicting_points(problem.X[index], problem.y[index])
    if pair is None:
        return result
    x = np.zeros(space.n)
    x[list(pair)] = 0.5
    return replace(result, status="inseparable", x=x, phi_up=0.0)


@hyperparameters
class GramMethod(KernelFeasibilityMethod):
    """Base class of the methods that multiply by the whole kernel matrix.

    Parameters
    ----------
    gram_size : float >= 0
        Bound on the stored kernel matrix, MB. A larger one is computed again in each iteration.
    """

    gram_size: float = 2000.0


@hyperparameters
class RowMethod(KernelFeasibilityMethod, CachedKernelParameters):
    """Base class of the methods that look at a row of the kernel matrix in an iteration."""

    _needs_gram = False


@register("svm", "feasibility")
@hyperparameters
class MPKFP(GramMethod):
    """Mirror prox for kernelized feasibility problems.

    :class:`MPLFP` in feature space: y is known by its coefficients on the points and by their
    responses ([MPFP14]_ section 6.1). The classifier is ``f(x) = <y, Phi(x)>`` with the averaged
    y, of norm 1 or less and without bias.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 2 products with the stored
    matrix in an iteration, 2 n^2 multiply-adds in one pass over it. If it does not fit, 2 n^2
    evaluations in each iteration, of which n^2 are computed. Memory: the matrix and 17 n numbers.
    """

    gap_certifies = True

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return mirror_prox.on_features(space, progress)


@register("svm", "feasibility")
@hyperparameters
class KPCT(PerceptronParameters, RowMethod):
    """The normalised kernel perceptron, PCT in feature space.

    With a linear kernel the same as :class:`PCT`; up to its length the classifier is that of
    :class:`BatchPerceptron` on points of unit length. A baseline of [MPFP14]_.

    Notes
    -----
    Kernel evaluations: n in each iteration; the bounds come from running sums and are not
    recomputed. Memory: 8 n numbers and the cache.
    """


@register("svm", "feasibility")
@hyperparameters
class KVN(VonNeumannParameters, RowMethod):
    """Von Neumann's algorithm with a kernel, VN in feature space.

    A baseline of [MPFP14]_.

    Parameters
    ----------
    start : {"vertex", "centre"}
        The first x: the first point alone, or all alike, which costs n^2 evaluations, and n^2 again
        every 1000 iterations.

    Notes
    -----
    Kernel evaluations: n in each iteration and n for the first vertex; the bounds come from running
    sums and are not recomputed. Memory: 8 n numbers and the cache.
    """

    start: Literal["vertex", "centre"] = "vertex"


@register("svm", "feasibility")
@hyperparameters
class SNKP(EntropyParameters, GramMethod):
    """The smooth normalised kernel perceptron, SPCT in feature space.

    From [RP14]_.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 1 product with the stored
    matrix in an iteration and 2 for the start; n^2 evaluations for each if it does not fit. Memory:
    the matrix and 12 n numbers.
    """


@register("svm", "feasibility")
@hyperparameters
class ISNKPVN(RoundParameters, GramMethod):
    """The iterated smooth normalised kernel perceptron - von Neumann algorithm.

    :class:`ISPVN` in feature space ([RP14]_; a baseline of [MPFP14]_).

    Parameters
    ----------
    max_iter
        Stop after this many iterations of all rounds together.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 1 product with the stored
    matrix in an iteration; n^2 evaluations in each iteration if it does not fit. "norm" costs some
    ten products more, once. Memory: the matrix and 14 n numbers.
    """
