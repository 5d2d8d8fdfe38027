"""The smooth kernel methods, as classifiers and on a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marginbench.solvers.feasibility import smoothing
from marginbench.solvers.feasibility.features import FeatureSpace
from marginbench.solvers.feasibility.kernel_methods import KernelFeasibilityMethod
from marginbench.solvers.feasibility.progress import Progress
from marginbench.solvers.feasibility.result import FeasibilityResult
from marginbench.solvers.feasibility.smooth_methods import check_rounds, first_mu
from marginbench.solvers.kernels import Kernel
from marginbench.solvers.numeric.validation import positive


class SNKP(KernelFeasibilityMethod):
    """The smooth normalised kernel perceptron, SPCT in feature space.

    From [RP14]_.

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
    fit_intercept : bool, default=False
        Must be False.
    mu0 : float > 0, default=2.0
        The first smoothing parameter; the method's invariant is proven for 2 and more.
    max_iter : int >= 1, default=1000
        Stop after this many iterations.
    tol : float >= 0, default=1e-3
        Stop when ``||A x||`` is at most this.
    stop : {"certificate", "gap"}, default="certificate"
        "certificate" stops at the first certificate of either kind; "gap" goes on until
        ``phi_up - phi_lo`` is at most ``tol``.
    history : float >= 1 or None, default=None
        Record bounds at iterations that grow by this ratio (1: all of them); None for no history.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64.
    gram_size : float >= 0, default=2000.0
        Bound on the stored kernel matrix, MB. A larger one is computed again in each iteration.
    random_state : int, Generator or None, default=None
        Not used: the method draws nothing.

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

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        mu0: float = 2.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        stop: str = "certificate",
        history: float | None = None,
        dtype: str = "float32",
        gram_size: float = 2000.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.mu0 = mu0
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.history = history
        self.dtype = dtype
        self.gram_size = gram_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive("mu0", self.mu0)

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return smoothing.smooth_perceptron(space, progress, float(self.mu0))


class ISNKPVN(KernelFeasibilityMethod):
    """The iterated smooth normalised kernel perceptron - von Neumann algorithm.

    :class:`ISPVN` in feature space ([RP14]_; a baseline of [MPFP14]_).

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
    fit_intercept : bool, default=False
        Must be False.
    factor : float > 1, default=2.0
        What a round divides ``||A x||`` by; called gamma in the papers.
    mu0 : float > 0, "norm" or "n", default="norm"
        The first smoothing parameter of each round: "norm" is twice a bound on the Gram matrix's
        largest eigenvalue, "n" the 2 n of [RP14]_.
    max_rounds : int >= 1, default=1000
        Stop after this many rounds.
    max_inner : int >= 1 or None, default=None
        Stop if a round takes more iterations; None for no limit but ``max_iter``.
    max_iter : int >= 1, default=1000
        Stop after this many iterations of all rounds together.
    tol : float >= 0, default=1e-3
        Stop when ``||A x||`` is at most this.
    stop : {"certificate", "gap"}, default="certificate"
        "certificate" stops at the first certificate of either kind; "gap" goes on until
        ``phi_up - phi_lo`` is at most ``tol``.
    history : float >= 1 or None, default=None
        Record bounds at iterations that grow by this ratio (1: all of them); None for no history.
    dtype : {"float32", "float64"}, default="float32"
        Type of the kernel entries. Sums are float64.
    gram_size : float >= 0, default=2000.0
        Bound on the stored kernel matrix, MB. A larger one is computed again in each iteration.
    random_state : int, Generator or None, default=None
        Not used: the method draws nothing.

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

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        factor: float = 2.0,
        mu0: float | str = "norm",
        max_rounds: int = 1000,
        max_inner: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        stop: str = "certificate",
        history: float | None = None,
        dtype: str = "float32",
        gram_size: float = 2000.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.factor = factor
        self.mu0 = mu0
        self.max_rounds = max_rounds
        self.max_inner = max_inner
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.history = history
        self.dtype = dtype
        self.gram_size = gram_size
        self.random_state = random_state

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
