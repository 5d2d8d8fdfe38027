"""The methods on columns and cones, and the parameters that they share with the kernel methods."""

from __future__ import annotations

import math
from abc import ABC
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from ..interface.convergence import warn_unconverged
from ..interface.declaration import hyperparameters
from ..numeric.validation import check_one_of, check_positive, check_whole
from ..registration import register
from . import mirror_prox, rivals
from .problem import FeasibilityProblem, as_problem
from .progress import Progress
from .result import FeasibilityResult
from .spaces import ColumnSpace, ConicSpace, ElementSpace, Space


@hyperparameters
class FeasibilityParameters:
    """When a method ends, and what it records until then.

    Parameters
    ----------
    max_iter : int >= 1
        Stop after this many iterations.
    tol : float >= 0
        Stop when ``||A x||`` is at most this.
    stop : {"certificate", "gap"}
        "certificate" stops at the first certificate of either kind; "gap" continues until
        ``phi_up - phi_lo`` is at most ``tol``, so that the margin is known to ``tol``.
    history : float >= 1 or None
        Record bounds at iterations that grow by this ratio (1: all of them); None for no history.
    """

    #: The problems that the method takes.
    kind: ClassVar[Literal["linear", "gram", "conic"]]
    #: Whether a run ends by the saddle point residual; else by ||A x||.
    gap_certifies: ClassVar[bool] = False

    max_iter: int = 1_000_000
    tol: float = 1e-4
    stop: str = "certificate"
    history: float | None = None

    def solve(self, A: Any, *, max_seconds: float = math.inf) -> FeasibilityResult:
        """Find a separating y, a proof that there is none, or that its margin is at most tol.

        Parameters
        ----------
        A : FeasibilityProblem or array-like or sparse matrix, shape (m, n)
            Signed columns, which are scaled to unit length; for :class:`MPCFP` a matrix stands for
            the orthant, and its columns are not scaled. For a kernel method the Gram matrix ``y_i
            y_j k(x_i, x_j)``, whose entries all count as asked for if it needs the whole matrix.
        max_seconds : float > 0, default=inf
            Stop after the first iteration that is done later than this.

        Returns
        -------
        FeasibilityResult
            Of a Gram matrix, its ``y`` holds coefficients on the columns of unit length.

        Raises
        ------
        ValueError
            For parameters out of range, or a matrix that states no problem.

        Warns
        -----
        ConvergenceWarning
            If it ends at a limit without an answer.
        """
        if max_seconds != math.inf:
            check_positive("max_seconds", max_seconds)
        check_positive("tol", self.tol, zero=True)
        self._check_parameters()
        problem = as_problem(A, self.kind, type(self).__name__)
        space = self._space(problem)
        progress = Progress(self, space, max_seconds=max_seconds)
        if problem.zero is not None:
            result = progress.of_zero_column(np.zeros(problem.m), problem.zero)
        else:
            result = self._iterate(space, progress)
        if shortfall := self._shortfall(result):
            warn_unconverged(type(self).__name__, result.limit, shortfall, stacklevel=3)
        return result

    def _check_parameters(self) -> None:
        """Raise ValueError for a parameter of the method itself that is out of range."""
        check_whole("max_iter", self.max_iter, at_least=1)
        check_one_of("stop", self.stop, ("certificate", "gap"))
        if self.history is not None:
            check_positive("history", self.history)
            if self.history < 1:
                raise ValueError(f"history must be None or a ratio >= 1, got {self.history!r}")

    def _space(self, problem: FeasibilityProblem) -> Space:
        """The space that :meth:`_iterate` works in."""
        raise NotImplementedError

    def _iterate(self, space: Any, progress: Progress) -> FeasibilityResult:
        """Run the method."""
        raise NotImplementedError

    def _shortfall(self, result: FeasibilityResult) -> str:
        """What a run fell short of that a limit ended; empty if it has an answer.

        With ``stop="gap"`` and ``tol=0`` a run has no stopping rule but its limits.
        """
        low, up = result.margin_bounds
        known = self.stop == "certificate" or up - low <= self.tol
        if not result.limit or (known and result.status != "budget"):
            return ""
        if self.stop == "gap" and self.tol == 0:
            return ""
        return f"the margin is between {low:.3g} and {up:.3g}, tol={self.tol!r}"


@hyperparameters
class PerceptronParameters:
    """The perceptron, in any space.

    Parameters
    ----------
    pick : {"worst", "cyclic"}
        The column (or point) that enters: the one with the least response, or the next mistake in
        cyclic order.
    """

    pick: Literal["worst", "cyclic"] = "worst"

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_one_of("pick", self.pick, ("worst", "cyclic"))

    def _iterate(self, space: ElementSpace, progress: Progress) -> FeasibilityResult:
        return rivals.run(space, progress, rivals.perceptron(space, self.pick))


@hyperparameters
class VonNeumannParameters:
    """Von Neumann's algorithm, in any space.

    Parameters
    ----------
    start : {"centre", "vertex"}
        The first x: all columns alike, or the first column alone.
    """

    start: Literal["centre", "vertex"] = "centre"

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_one_of("start", self.start, ("centre", "vertex"))

    def _iterate(self, space: ElementSpace, progress: Progress) -> FeasibilityResult:
        return rivals.run(space, progress, rivals.von_neumann(space, self.start))


@hyperparameters
class EntropyParameters:
    """The smooth perceptron, in any space.

    Parameters
    ----------
    mu0 : float > 0
        The first smoothing parameter. The method's invariant ``1/2 ||A x||^2 <= phi_mu(y)`` is
        proven for 2 and more; 1, half of that, gives the bound that [MPFP14]_ quotes.
    """

    mu0: float = 2.0

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_positive("mu0", self.mu0)

    def _iterate(self, space: ElementSpace, progress: Progress) -> FeasibilityResult:
        return rivals.run(space, progress, rivals.smooth_perceptron(space, float(self.mu0)))


@hyperparameters
class RoundParameters:
    """The rounds of the iterated smooth methods.

    Parameters
    ----------
    factor : float > 1
        What a round divides ``||A x||`` by; called gamma in the papers.
    mu0 : float > 0, "norm" or "n"
        The first smoothing parameter of each round. "norm" is twice a bound on ``||A||_2^2``, the
        least that the invariant is proven for; "n" is 2 n, as in the paper, which always suffices.
    max_rounds : int >= 1
        Stop after this many rounds.
    max_inner : int >= 1 or None
        Stop if a round takes more iterations; None for no limit but ``max_iter``.
    """

    factor: float = 2.0
    mu0: float | str = "norm"
    max_rounds: int = 1000
    max_inner: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_positive("factor", self.factor)
        if self.factor <= 1:
            raise ValueError(f"factor must be a number > 1, got {self.factor!r}")
        _check_first_mu(self.mu0)
        check_whole("max_rounds", self.max_rounds, at_least=1)
        if self.max_inner is not None:
            check_whole("max_inner", self.max_inner, at_least=1)

    def _iterate(self, space: ElementSpace, progress: Progress) -> FeasibilityResult:
        iterates = rivals.smooth_von_neumann(
            space,
            progress,
            mu0=self.mu0,
            factor=float(self.factor),
            max_rounds=self.max_rounds,
            max_inner=self.max_inner,
        )
        return rivals.run(space, progress, iterates)


def _check_first_mu(mu0: float | str) -> None:
    if isinstance(mu0, str):
        check_one_of("mu0", mu0, ("norm", "n"))
    else:
        check_positive("mu0", mu0)


@hyperparameters
class FeasibilityMethod(FeasibilityParameters, BaseEstimator, ABC):
    """Base class: a method with the parameters of an estimator, given a problem and not points."""

    kind: ClassVar[Literal["linear", "gram", "conic"]] = "linear"

    def _space(self, problem: FeasibilityProblem) -> Space:
        return ColumnSpace(problem)


@register("feasibility")
@hyperparameters
class MPLFP(FeasibilityMethod):
    """Mirror prox for linear feasibility problems.

    Solves ``max_{||y|| <= 1} min_x y'A x`` over the simplex by mirror prox with entropy on the
    simplex and constant steps, and averages the leading points ([MPFP14]_ Algorithm 1, section
    5.3). After t iterations ``phi_up - phi_lo <= sqrt(2 log n) / t``: it ends within
    ``sqrt(2 log n) / max(rho, tol) + 1`` iterations. The paper leaves the two weights to its
    appendix; these minimise the bound.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this; ``||A x||`` and the margin then
        are, too.

    Notes
    -----
    Kernel evaluations: none. An iteration is 4 products with A or A', 4 m n multiply-adds, all in
    one pass over A: the two points of the ball are known before the products on the simplex side.
    Memory beyond A: 5 n + 10 m numbers, 11 n if A is sparse. Returns the averages.
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
    """

    kind = "conic"
    gap_certifies = True

    def _space(self, problem: FeasibilityProblem) -> Space:
        return ConicSpace(problem)

    def _iterate(self, space: ConicSpace, progress: Progress) -> FeasibilityResult:
        return mirror_prox.on_cone(space, progress)


@register("feasibility")
@hyperparameters
class PCT(PerceptronParameters, FeasibilityMethod):
    """The normalised perceptron.

    y is the mean of the columns that were mistakes: the one with the least response enters, or
    the next mistake in cyclic order. Up to its length this is the classical perceptron, so a
    separable problem ends within ``1 / rho^2`` iterations (Novikoff). A baseline of [MPFP14]_.
    Beyond the paper: y is A x for the visit frequencies x, so ``||y|| <= tol`` is a certificate
    that the margin is at most tol, and comes within ``1 / tol^2`` iterations where it exists.

    Notes
    -----
    Kernel evaluations: none. An iteration is 1 product with A'. Memory beyond A: 2 n + 2 m numbers.
    Returns y of unit length.
    """


@register("feasibility")
@hyperparameters
class VN(VonNeumannParameters, FeasibilityMethod):
    """Von Neumann's algorithm: the shortest point of the columns' convex hull.

    Frank-Wolfe with exact line search on ``1/2 ||A x||^2`` ([DAN92]_; a baseline of [MPFP14]_).
    ``||A x|| <= 1 / sqrt(t + 1)`` as long as nothing separates.

    Notes
    -----
    Kernel evaluations: none. An iteration is 1 product with A'; A x is computed afresh every 1000
    iterations. Memory beyond A: 2 n + 2 m numbers. Returns ``y = A x`` at unit length.
    """


@register("feasibility")
@hyperparameters
class SPCT(EntropyParameters, FeasibilityMethod):
    """The smooth perceptron.

    Nesterov's excessive gap technique on ``max_y -1/2 ||y||^2 + min_x y'A x``, the inner minimum
    smoothed by the entropy ([SP12]_; a baseline of [MPFP14]_). With ``mu0 = 2`` a separable problem
    ends within ``sqrt(8 log n) / rho`` iterations.

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A', in one pass over A whose
    exponentials are shifted to the least response seen so far, so that nothing overflows. Memory
    beyond A: 2 n + 5 m numbers. Returns the last y, at unit length, and the last x.
    """


@register("feasibility")
@hyperparameters
class ISPVN(RoundParameters, FeasibilityMethod):
    """The iterated smooth perceptron - von Neumann algorithm.

    Rounds of the smooth algorithm with half the squared distance from a centre as smoothing
    function; each round divides ``||A x||`` by ``factor`` and centres the next one at its x, unless
    its y separates ([SP13]_; a baseline of [MPFP14]_, which reports runs that never ended: rounds
    and their iterations are limited here).

    Parameters
    ----------
    max_iter
        Stop after this many iterations of all rounds together.

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A'; "norm" costs some ten pairs
    of products more, once. Memory beyond A: 5 n + 5 m numbers. Returns the last y, at unit length,
    and the last x.
    """


@register("feasibility")
@hyperparameters
class SPVN(FeasibilityMethod):
    """The smooth perceptron - von Neumann algorithm: one round of ISPVN.

    Ends with ``||A x|| <= tol`` or a separating y, within ``2 sqrt(mu0) / tol`` iterations or so
    ([SP13]_).

    Parameters
    ----------
    mu0 : float > 0, "norm" or "n"
        The first smoothing parameter, as in :class:`ISPVN`.

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A'. Memory beyond A: 5 n + 5 m
    numbers. Returns the last y, at unit length, and the last x.
    """

    mu0: float | str = "norm"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_first_mu(self.mu0)

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        iterates = rivals.smooth_von_neumann(
            space, progress, mu0=self.mu0, factor=math.inf, max_rounds=1, max_inner=None
        )
        return rivals.run(space, progress, iterates)
