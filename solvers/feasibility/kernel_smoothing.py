"""The smooth kernel methods, as classifiers and on a Gram matrix."""

from __future__ import annotations

from ..interface.declaration import hyperparameters
from ..numeric.validation import check_positive
from ..registration import register
from . import smoothing
from .features import FeatureSpace
from .kernel_methods import GramMethod
from .parameters import RoundParameters
from .progress import Progress
from .result import FeasibilityResult
from .smooth_methods import check_rounds, first_mu


@register("svm", "feasibility")
@hyperparameters
class SNKP(GramMethod):
    """The smooth normalised kernel perceptron, SPCT in feature space.

    From [RP14]_.

    Parameters
    ----------
    mu0 : float > 0
        The first smoothing parameter; the method's invariant is proven for 2 and more.

    Attributes
    ----------
    result_ : FeasibilityResult
        Bounds, certificate and history of the fit.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 1 product with the stored
    matrix in an iteration; n^2 evaluations in each iteration if it does not fit. Memory: the matrix
    and 12 n numbers.

    References
    ----------
    .. [RP14] Ramdas, Pena: Margins, kernels and non-linear smoothed perceptrons. ICML 2014.
       BibTeX key ``ramdas2014margins``.
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    mu0: float = 2.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("mu0", self.mu0)

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return smoothing.smooth_perceptron(space, progress, float(self.mu0))


@register("svm", "feasibility")
@hyperparameters
class ISNKPVN(GramMethod, RoundParameters):
    """The iterated smooth normalised kernel perceptron - von Neumann algorithm.

    :class:`ISPVN` in feature space ([RP14]_; a baseline of [MPFP14]_).

    Parameters
    ----------
    max_iter
        Stop after this many iterations of all rounds together.

    Attributes
    ----------
    result_ : FeasibilityResult
        Bounds, certificate and history of the fit.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 1 product with the stored
    matrix in an iteration; n^2 evaluations in each iteration if it does not fit. "norm" costs some
    ten products more, once. Memory: the matrix and 14 n numbers.

    References
    ----------
    .. [RP14] Ramdas, Pena: Margins, kernels and non-linear smoothed perceptrons. ICML 2014.
       BibTeX key ``ramdas2014margins``.
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_rounds(self.factor, self.mu0, self.max_rounds, self.max_inner)

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return smoothing.smooth_von_neumann(
            space,
            progress,
            factor=float(self.factor),
            mu=first_mu(self.mu0, space.n),
            max_rounds=self.max_rounds,
            max_inner=self.max_inner,
        )
