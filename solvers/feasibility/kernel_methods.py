"""The kernel methods: on a Gram matrix, and as classifiers with a kernel."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from marginbench.solvers.feasibility import greedy, mirror_prox
from marginbench.solvers.feasibility.features import FeatureSpace
from marginbench.solvers.feasibility.problem import as_problem
from marginbench.solvers.feasibility.progress import Progress, check_limits
from marginbench.solvers.feasibility.result import FeasibilityResult
from marginbench.solvers.interface.base import Solver
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution, SolveStatus
from marginbench.solvers.kernels import Kernel
from marginbench.solvers.kernels.oracle import KernelOracle
from marginbench.solvers.models import KernelExpansion
from marginbench.solvers.numeric.validation import one_of, positive


class KernelFeasibilityMethod(Solver):
    """Base class: a feasibility method in feature space is also a classifier without bias.

    ``fit`` scales all points to unit length in feature space and leaves out those of length 0.

    Attributes
    ----------
    result_ : FeasibilityResult
        Bounds, certificate and history of the fit.
    """

    scalarization = None
    #: Whether "inseparable" is concluded from the saddle point residual; else from ||A x||.
    gap_certifies: ClassVar[bool] = False
    #: The kernel matrix is stored if it is not larger than this, MB.
    gram_size: float = 0.0

    max_iter: int
    stop: str
    history: float | None

    def solve(self, A: Any, *, max_seconds: float = math.inf) -> FeasibilityResult:
        """Find a separating y in feature space, or an epsilon-certificate that there is none.

        Parameters
        ----------
        A : FeasibilityProblem or array-like, shape (n, n)
            The Gram matrix ``y_i y_j k(x_i, x_j)``, with a positive diagonal. All its entries count
            as asked for where the method needs the whole matrix.
        max_seconds : float > 0, default=inf
            Stop after the first iteration that is done later than this.

        Returns
        -------
        FeasibilityResult
            Its ``y`` holds coefficients on the columns of unit length.

        Raises
        ------
        ValueError
            For parameters out of range, or a matrix that states no problem.
        """
        self._check_parameters()
        check_limits(self.max_iter, self.tol, self.stop, self.history, max_seconds)
        problem = as_problem(A, "gram", type(self).__name__)
        space = FeatureSpace.of_problem(problem, stored=self._needs_gram)
        return self._iterate(space, self._progress(space, max_seconds=max_seconds))

    def _check_parameters(self) -> None:
        check_limits(self.max_iter, self.tol, self.stop, self.history)
        positive("gram_size", self.gram_size, zero=True)

    @property
    def _needs_gram(self) -> bool:
        """Whether the method multiplies by the whole Gram matrix."""
        return True

    @abstractmethod
    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        """Run the method."""

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        space = self._space(problem.oracle, problem.y)

        def model_of(y: np.ndarray) -> KernelExpansion:
            return problem.expansion(space.on_points(y))

        progress = self._progress(space, monitor, model_of)
        self.result_ = result = self._iterate(space, progress)
        status: SolveStatus = "converged" if result.converged else "budget"
        if progress.stopped:
            status = "stopped"
        # The starting point is work, too: a run that needs no more has done one iteration.
        return Solution(model_of(result.y), max(1, result.n_iter), status)

    def _space(self, oracle: KernelOracle, signs: np.ndarray) -> FeatureSpace:
        gram_bytes = int(self.gram_size * 2**20)
        return FeatureSpace.of_points(oracle, signs, gram_bytes)

    def _progress(
        self,
        space: FeatureSpace,
        monitor: Monitor | None = None,
        model_of: Callable[[np.ndarray], Any] | None = None,
        max_seconds: float = math.inf,
    ) -> Progress:
        return Progress(
            space,
            max_iter=self.max_iter,
            tol=self.tol,
            stop=self.stop,
            history=self.history,
            max_seconds=max_seconds,
            gap_certifies=self.gap_certifies,
            monitor=monitor,
            model_of=model_of,
        )


class MPKFP(KernelFeasibilityMethod):
    """Mirror prox for kernelized feasibility problems.

    :class:`MPLFP` in feature space: y is known by its coefficients on the points and by their
    responses ([MPFP14]_ section 6.1). The classifier is ``f(x) = <y, Phi(x)>`` with the averaged
    y, of norm 1 or less and without bias.

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
    max_iter : int >= 1, default=1000
        Stop after this many iterations.
    tol : float >= 0, default=1e-3
        Stop when the residual ``phi_up - phi_lo`` is at most this.
    stop : {"certificate", "gap"}, default="certificate"
        "certificate" stops at the first certificate of either kind; "gap" goes on to a residual of
        ``tol``, towards the largest margin.
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
    Kernel evaluations: n^2 once (about half of them computed), then 2 products with the stored
    matrix in an iteration, 2 n^2 multiply-adds in one pass over it. If it does not fit, 2 n^2
    evaluations in each iteration, of which n^2 are computed. Memory: the matrix and 17 n numbers.

    References
    ----------
    .. [MPFP14] Yu, Kilinc-Karzan, Carbonell: Saddle points and accelerated perceptron algorithms.
       ICML 2014. BibTeX key ``yu2014saddle``.
    """

    gap_certifies = True

    def __init__(
        self,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
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
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.history = history
        self.dtype = dtype
        self.gram_size = gram_size
        self.random_state = random_state

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return mirror_prox.on_features(space, progress)


class KPCT(KernelFeasibilityMethod):
    """The normalised kernel perceptron, PCT in feature space.

    With a linear kernel the same as :class:`PCT`; up to its length the classifier is that of
    :class:`BatchPerceptron` on points of unit length. A baseline of [MPFP14]_.

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
    pick : {"worst", "cyclic"}, default="worst"
        The point that enters: the one with the least response, or the next mistake in cyclic
        order.
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
    cache_size : float >= 0, default=200.0
        Bound on the cached kernel rows, MB; 0 for no cache.
    random_state : int, Generator or None, default=None
        Not used: the method draws nothing.

    Attributes
    ----------
    result_ : FeasibilityResult
        Bounds, certificate and history of the fit.

    Notes
    -----
    Kernel evaluations: n in each iteration; the bounds come from running sums and are not
    recomputed. Memory: 8 n numbers and the cache.

    References
    ----------
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
        pick: Literal["worst", "cyclic"] = "worst",
        max_iter: int = 1000,
        tol: float = 1e-3,
        stop: str = "certificate",
        history: float | None = None,
        dtype: str = "float32",
        cache_size: float = 200.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.pick = pick
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.history = history
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("pick", self.pick, ("worst", "cyclic"))

    @property
    def _needs_gram(self) -> bool:
        return False

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return greedy.perceptron(space, progress, self.pick)


class KVN(KernelFeasibilityMethod):
    """Von Neumann's algorithm with a kernel, VN in feature space.

    A baseline of [MPFP14]_.

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
    start : {"vertex", "centre"}, default="vertex"
        The first x: the first point alone, or all alike, which costs n^2 evaluations, and n^2 again
        every 1000 iterations.
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
    cache_size : float >= 0, default=200.0
        Bound on the cached kernel rows, MB; 0 for no cache.
    random_state : int, Generator or None, default=None
        Not used: the method draws nothing.

    Attributes
    ----------
    result_ : FeasibilityResult
        Bounds, certificate and history of the fit.

    Notes
    -----
    Kernel evaluations: n in each iteration and n for the first vertex; the bounds come from running
    sums and are not recomputed. Memory: 8 n numbers and the cache.

    References
    ----------
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
        start: Literal["vertex", "centre"] = "vertex",
        max_iter: int = 1000,
        tol: float = 1e-3,
        stop: str = "certificate",
        history: float | None = None,
        dtype: str = "float32",
        cache_size: float = 200.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.history = history
        self.dtype = dtype
        self.cache_size = cache_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("start", self.start, ("vertex", "centre"))

    @property
    def _needs_gram(self) -> bool:
        return False

    def _iterate(self, space: FeatureSpace, progress: Progress) -> FeasibilityResult:
        return greedy.von_neumann(space, progress, self.start)
