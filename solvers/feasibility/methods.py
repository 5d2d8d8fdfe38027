"""The methods on columns and cones: mirror prox, the perceptron and von Neumann's algorithm."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from ..interface.declaration import hyperparameters
from ..numeric.validation import check_one_of
from ..registration import register
from . import greedy, mirror_prox
from .columns import ColumnSpace
from .parameters import FeasibilityParameters
from .problem import FeasibilityProblem, as_problem
from .progress import Progress, check_limits
from .result import FeasibilityResult


@hyperparameters
class FeasibilityMethod(FeasibilityParameters, BaseEstimator, ABC):
    """Base class: checks the parameters, builds the problem and its space, runs the method.

    A method has the parameters of an estimator, but is given a problem and returns a result.
    """

    #: The problems that the method takes.
    kind: ClassVar[Literal["linear", "conic"]] = "linear"

    def solve(self, A: Any, *, max_seconds: float = math.inf) -> FeasibilityResult:
        """Find a separating y, a proof that there is none, or that its margin is at most tol.

        Parameters
        ----------
        A : FeasibilityProblem or array-like or sparse matrix, shape (m, n)
            Signed columns, which are scaled to unit length; for :class:`MPCFP` a matrix stands for
            the orthant, and its columns are not scaled.
        max_seconds : float > 0, default=inf
            Stop after the first iteration that is done later than this.

        Returns
        -------
        FeasibilityResult

        Raises
        ------
        ValueError
            For parameters out of range, or a matrix that states no problem.

        Warns
        -----
        ConvergenceWarning
            If it ends at a limit without an answer.
        """
        check_limits(self.max_iter, self.tol, self.stop, self.history, max_seconds)
        self._check_parameters()
        result = self._solved(as_problem(A, self.kind, type(self).__name__), max_seconds)
        self._warn(result)
        return result

    def _solved(self, problem: FeasibilityProblem, max_seconds: float) -> FeasibilityResult:
        space = self._space(problem)
        progress = self._progress(space, max_seconds=max_seconds)
        if problem.zero is not None:
            return progress.known(np.zeros(problem.m), problem.zero)
        return self._iterate(space, progress)

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter of the method itself that is out of range."""

    def _space(self, problem: FeasibilityProblem) -> Any:
        """The space that :meth:`_iterate` works in."""
        return ColumnSpace(problem)

    @abstractmethod
    def _iterate(self, space: Any, progress: Progress) -> FeasibilityResult:
        """Run the method."""


@register("feasibility")
@hyperparameters
class MPLFP(FeasibilityMethod):
    """Mirror prox for linear feasibility problems.

    Solves ``max_{||y|| <= 1} min_x y'A x`` over the simplex by mirror prox with entropy on the
    simplex and constant steps, and averages the leading points ([MPFP14]_ Algorithm 1, section
    5.3). After t iterations ``phi_up - phi_lo <= sqrt(2 log n) / t``: it ends within
    ``sqrt(2 log n) / max(rho, tol) + 1`` iterations. The paper's constant is not legible; this one
    follows from its choice of the two weights.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this; ``||A x||`` and the margin then
        are, too.

    Notes
    -----
    Kernel evaluations: none. An iteration is 4 products with A or A', 4 m n multiply-adds, all in
    one pass over A: the two points of the ball are known before the products on the simplex side.
    Memory beyond A: 5 n + 10 m numbers. Returns the averages.

    References
    ----------
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    gap_certifies = True

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        return mirror_prox.on_columns(space, progress)


@hyperparameters
class MPCFP(FeasibilityMethod):
    """Mirror prox for conic feasibility problems.

    Finds y with A'y in the interior of a product of orthants, second-order and positive
    semidefinite cones, or x in the cone with ``<e, x> = 1`` and ``||A x|| <= tol`` ([MPFP14]_
    section 6.2). A single second-order cone has the Euclidean prox mapping, everything else the
    entropy of the spectral values of all factors together. After t iterations the residual is at
    most ``2 sqrt(Omega_x / 2) L / t``, with Omega_x = 1/2 for one second-order cone, else log of
    the number of spectral values, and L the norm of A between the two geometries.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this.

    Notes
    -----
    Kernel evaluations: none. An iteration is 4 products with A or A', and for each positive
    semidefinite factor of order p two eigendecompositions and one set of eigenvalues, O(p^3).
    Deviations from [MPFP14]_: the diameter of the spectrahedron is log p where the paper has
    4 log p; products of cones, which the paper does not treat, have one base for the whole
    product, since the sum of the least values over separate bases proves nothing. Returns the
    averages.

    References
    ----------
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    kind = "conic"
    gap_certifies = True

    def _space(self, problem: FeasibilityProblem) -> mirror_prox.ConicSpace:
        return mirror_prox.ConicSpace(problem)

    def _iterate(self, space: mirror_prox.ConicSpace, progress: Progress) -> FeasibilityResult:
        return mirror_prox.on_cone(space, progress)


@register("feasibility")
@hyperparameters
class PCT(FeasibilityMethod):
    """The normalised perceptron.

    y is the mean of the columns that were mistakes: the one with the least response enters, or
    the next mistake in cyclic order. Up to its length this is the classical perceptron, so a
    separable problem ends within ``1 / rho^2`` iterations (Novikoff). A baseline of [MPFP14]_.
    Beyond the paper: y is A x for the visit frequencies x, so ``||y|| <= tol`` is a certificate
    that the margin is at most tol, and comes within ``1 / tol^2`` iterations where it exists.

    Parameters
    ----------
    pick : {"worst", "cyclic"}
        The column that enters: the one with the least response, or the next mistake in cyclic
        order.

    Notes
    -----
    Kernel evaluations: none. An iteration is 1 product with A'. Memory beyond A: 2 n + 2 m numbers.
    Returns y of unit length.

    References
    ----------
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    pick: Literal["worst", "cyclic"] = "worst"

    def _check_parameters(self) -> None:
        check_one_of("pick", self.pick, ("worst", "cyclic"))

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        return greedy.perceptron(space, progress, self.pick)


@register("feasibility")
@hyperparameters
class VN(FeasibilityMethod):
    """Von Neumann's algorithm: the shortest point of the columns' convex hull.

    Frank-Wolfe with exact line search on ``1/2 ||A x||^2`` ([DAN92]_; a baseline of [MPFP14]_).
    ``||A x|| <= 1 / sqrt(t + 1)`` as long as nothing separates.

    Parameters
    ----------
    start : {"centre", "vertex"}
        The first x: all columns alike, or the first column alone.

    Notes
    -----
    Kernel evaluations: none. An iteration is 1 product with A'; A x is computed afresh every 1000
    iterations. Memory beyond A: 2 n + 2 m numbers. Returns ``y = A x`` at unit length.

    References
    ----------
    .. [DAN92] Dantzig: An epsilon-precise feasible solution to a linear program with a convexity
       constraint in 1/epsilon^2 iterations independent of problem size. Stanford University,
       technical report SOL 92-5, 1992. BibTeX key ``dantzig1992epsilon``.
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    start: Literal["centre", "vertex"] = "centre"

    def _check_parameters(self) -> None:
        check_one_of("start", self.start, ("centre", "vertex"))

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        return greedy.von_neumann(space, progress, self.start)
