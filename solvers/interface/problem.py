"""The problem that a solver is given and the solution that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from ..kernels import Kernel
from ..kernels.oracle import KernelOracle
from ..models import KernelExpansion, Model
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix

Shared = TypeVar("Shared")
SolveStatus = Literal["converged", "no_separator", "budget", "stopped"]
#: What is added to the diagonal of a Gram matrix of a few points, relative to its mean, by type of
#: the entries: they are known to so many digits, and noise grows by the root of its inverse.
JITTER = {"float64": 1e-10, "float32": 1e-6}


@dataclass(frozen=True)
class Solution:
    """What ``_solve`` returns.

    Parameters
    ----------
    model : Model
    n_iter : int
        Iterations done.
    status : {"converged", "no_separator", "budget", "stopped"}
        Why they ended there: the stopping rule, the finding that no separator with a margin above
        ``tol`` exists, the limit on iterations, or the monitor.
    shortfall : str
        For "budget", where the method has a stopping rule: what was achieved and what was asked
        for, such as "the largest violation is 0.2, tol=0.001". It becomes a warning. Empty for a
        method that always runs to its limit.
    ended_at : str
        What ended a run that was "budget", in words for that warning, if it was not the limit.
    state : object
        What a later fit needs to continue, for solvers with ``warm_start``; plain arrays, numbers
        and containers of them. It comes back as :attr:`Problem.state`.
    """

    model: Model
    n_iter: int
    status: SolveStatus
    shortfall: str = ""
    ended_at: str = ""
    state: Any = None


@dataclass(eq=False, repr=False)
class Problem:
    """One training problem as the solvers see it.

    Parameters
    ----------
    X : ndarray or csr_matrix, shape (n, n_features)
        The checked training points, for methods that do not go through the oracle.
    y : ndarray of float64, shape (n,)
        Labels, -1 or +1.
    rng : numpy.random.Generator
        The run's only source of randomness.
    weights : ndarray of float64, shape (n,)
        Factors of the points' losses; 1 if none are given.
    counters : Counters
    build_oracle : callable
        Makes the oracle when it is first asked for: a linear method never does.
    kernel : Kernel
        That of the oracle.
    shared : dict, optional
        What the problems of several classes have in common, see :meth:`once`.
    state : object, optional
        The state of the last fit's :class:`Solution`, if this one continues it; the generator is
        the one of that fit.
    """

    X: Matrix
    y: np.ndarray
    rng: np.random.Generator
    weights: np.ndarray
    counters: Counters
    build_oracle: Callable[[], KernelOracle]
    kernel: Kernel
    shared: dict[str, Any] = field(default_factory=dict)
    state: Any = None

    @property
    def oracle(self) -> KernelOracle:
        """Kernel entries between the training points, counted; the same for all classes."""
        return self.once("oracle", self.build_oracle)

    def once(self, name: str, make: Callable[[], Shared]) -> Shared:
        """What the problems of several classes share, made by the first of them that asks.

        Parameters
        ----------
        name : str
        make : callable
            Must not depend on the labels.

        Examples
        --------
        >>> def _solve(self, problem, monitor):
        ...     features = problem.once("features", lambda: self._features(problem.X))
        """
        if name not in self.shared:
            self.shared[name] = make()
        value: Shared = self.shared[name]
        return value

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self.y)

    @property
    def kernel_evals(self) -> int:
        """Kernel evaluations asked for so far."""
        return self.counters.kernel_evals

    def gram(self, index: np.ndarray, jitter: float = 0.0) -> np.ndarray:
        """Kernel entries between these m points, float64, shape (m, m). Costs m^2 entries.

        The jitter times the mean diagonal, or 1 if that is 0, is added to the diagonal.
        """
        own, m = self.X[index], len(index)
        if not self.kernel.evaluates:
            own = own[:, index]
        gram = KernelOracle(self.kernel, own, "float64", counters=self.counters).rows(np.arange(m))
        mean = float(np.trace(gram)) / m
        gram[np.diag_indices(m)] += jitter * (mean if mean > 0 else 1.0)
        return gram

    def gram_factor(self, index: np.ndarray, jitter: float, *, lower: bool) -> np.ndarray:
        """The triangular factor of :meth:`gram` (Cholesky).

        Raises
        ------
        ValueError
            If it has none.
        """
        try:
            return np.asarray(cholesky(self.gram(index, jitter), lower=lower))
        except LinAlgError:
            raise ValueError(
                "a matrix of kernel entries between training points is not positive definite: the "
                "kernel, or the precomputed matrix, is not positive semidefinite"
            ) from None

    def expansion(self, coef: np.ndarray, intercept: float = 0.0) -> KernelExpansion:
        """The predictor with one signed coefficient per training point, shape (n,).

        Raises
        ------
        ValueError
            If ``coef`` has another shape or is not real.
        """
        coef = np.asarray(coef)
        if coef.shape != (self.n,) or coef.dtype.kind not in "fiu":
            raise ValueError(
                f"coef must hold {self.n} real numbers, one per training point, got shape "
                f"{coef.shape} of {coef.dtype}"
            )
        support = np.flatnonzero(coef)
        kernel = self.oracle.kernel
        if not kernel.evaluates:
            points = np.empty((0, 0))
        elif len(support) == self.n:
            # All predictors of dense coefficients, of several classes and stages, have one copy.
            points = self.once("all points", self.X.copy)
        else:
            points = self.X[support]
        return KernelExpansion(
            kernel=kernel,
            points=points,
            coef=coef[support].astype(np.float64),
            intercept=float(intercept),
            support=support,
            n_train=self.n,
            dtype=self.oracle.dtype.name,
        )
