"""The smooth methods on columns: the smooth perceptron, and with von Neumann's algorithm."""

from __future__ import annotations

from typing import Any

from ..interface.declaration import hyperparameters
from ..numeric.validation import check_one_of, check_positive, check_whole
from ..registration import register
from . import smoothing
from .columns import ColumnSpace
from .methods import FeasibilityMethod
from .parameters import RoundParameters
from .progress import Progress
from .result import FeasibilityResult


@register("feasibility")
@hyperparameters
class SPCT(FeasibilityMethod):
    """The smooth perceptron.

    Nesterov's excessive gap technique on ``max_y -1/2 ||y||^2 + min_x y'A x``, the inner minimum
    smoothed by the entropy ([SP12]_; a baseline of [MPFP14]_). With ``mu0 = 2`` a separable problem
    ends within ``sqrt(8 log n) / rho`` iterations.

    Parameters
    ----------
    mu0 : float > 0
        The first smoothing parameter. The method's invariant ``1/2 ||A x||^2 <= phi_mu(y)`` is
        proven for 2 and more; 1 gives the bound that [MPFP14]_ quotes, half of the above.

    Notes
    -----
    Kernel evaluations: none. An iteration is 2 products with A or A', in one pass over A whose
    exponentials are shifted to the least response seen so far, so that nothing overflows. Memory
    beyond A: 2 n + 5 m numbers. Returns the last y, at unit length, and the last x.

    References
    ----------
    .. [SP12] Soheili, Pena: A smooth perceptron algorithm. SIAM Journal on Optimization 22(2),
       2012. BibTeX key ``soheili2012smooth``.
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    mu0: float = 2.0

    def _check_parameters(self) -> None:
        check_positive("mu0", self.mu0)

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        return smoothing.smooth_perceptron(space, progress, float(self.mu0))


@register("feasibility")
@hyperparameters
class ISPVN(FeasibilityMethod, RoundParameters):
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

    References
    ----------
    .. [SP13] Soheili, Pena: A primal-dual smooth perceptron - von Neumann algorithm. Discrete
       Geometry and Optimization, 2013. BibTeX key ``soheili2013primal``.
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    def _check_parameters(self) -> None:
        check_rounds(self.factor, self.mu0, self.max_rounds, self.max_inner)

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        return smoothing.smooth_von_neumann(
            space,
            progress,
            factor=float(self.factor),
            mu=first_mu(self.mu0, space.n),
            max_rounds=self.max_rounds,
            max_inner=self.max_inner,
        )


@register("feasibility")
@hyperparameters
class SPVN(FeasibilityMethod):
    """The smooth perceptron - von Neumann algorithm: one round of :class:`ISPVN`.

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

    References
    ----------
    .. [SP13] Soheili, Pena: A primal-dual smooth perceptron - von Neumann algorithm. Discrete
       Geometry and Optimization, 2013. BibTeX key ``soheili2013primal``.
    """

    mu0: float | str = "norm"

    def _check_parameters(self) -> None:
        check_rounds(2.0, self.mu0, 1, None)

    def _iterate(self, space: ColumnSpace, progress: Progress) -> FeasibilityResult:
        mu = first_mu(self.mu0, space.n)
        return smoothing.smooth_von_neumann(
            space, progress, factor=float("inf"), mu=mu, max_rounds=1, max_inner=None
        )


def check_rounds(factor: Any, mu0: Any, max_rounds: Any, max_inner: Any) -> None:
    """Raise ValueError for a parameter of the iterated smooth methods that is out of range."""
    check_positive("factor", factor)
    if factor <= 1:
        raise ValueError(f"factor must be a number > 1, got {factor!r}")
    if isinstance(mu0, str):
        check_one_of("mu0", mu0, ("norm", "n"))
    else:
        check_positive("mu0", mu0)
    check_whole("max_rounds", max_rounds, at_least=1)
    if max_inner is not None:
        check_whole("max_inner", max_inner, at_least=1)


def first_mu(mu0: float | str, n: int) -> float | None:
    """The first smoothing parameter; None where the norm of A decides."""
    if mu0 == "norm":
        return None
    return 2.0 * n if mu0 == "n" else float(mu0)
