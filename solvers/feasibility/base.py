"""What all feasibility methods share: parameters, the frame of a run, and the classifiers."""

from __future__ import annotations

import math
import time
from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from ..interface.base import Solver
from ..interface.convergence import warn_unconverged
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import CachedKernelParameters, KernelParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import KernelExpansion
from ..numeric.counters import Counters, FeasibilityCounters
from ..numeric.validation import check_one_of, check_positive, check_whole
from .certificates import contradicting_points
from .problem import FeasibilityProblem, as_problem
from .result import FeasibilityResult, FeasibilityStatus, HistoryPoint
from .spaces import ColumnSpace, FeatureSpace, Iterate, Space


class Progress:
    """Asked after every iteration: records bounds, and says when to stop."""

    at: Iterate  # The last one

    def __init__(
        self,
        method: Any,
        space: Space,
        *,
        max_seconds: float = math.inf,
        monitor: Monitor | None = None,
        model_of: Callable[[np.ndarray], Any] | None = None,
    ) -> None:
        self.space = space
        self.max_iter, self.max_seconds, self.tol = method.max_iter, max_seconds, method.tol
        self.to_gap = method.stop == "gap"
        self.gap_certifies = method.gap_certifies or self.to_gap
        self.monitor, self.model_of = monitor, model_of
        self.points: list[HistoryPoint] = []
        self.ratio = method.history or math.inf
        self._next_point = math.inf if method.history is None else 1
        self.n_iter, self.phi_lo, self.phi_up = 0, -math.inf, math.inf
        self.converged = self.stopped = False
        self._watched = 0
        self.message = self.limit = ""
        self.started, self.cpu_started = time.perf_counter(), time.process_time()

    def ends(self, at: Iterate) -> bool:
        """Take note of an iteration; whether the run ends with it (MPFP14 Algorithm 1 line 4)."""
        self.at, self.n_iter, self.phi_up = at, at.n_iter, at.up
        self.phi_lo = at.least / at.norm if at.norm > 0 else 0.0
        if at.n_iter >= self._next_point:
            self._record()
        # A separating y (MPFP14 Theorem 2 (a)), or an epsilon-solution of the alternative (b).
        decides = self.phi_lo > 0 and not self.to_gap
        if decides and self.space.separates(self.space.unit(at), self.phi_lo):
            return self.end("a separating y was found")
        up = self.space.rounded_up(at.up)
        residual = up - self.phi_lo if self.gap_certifies else up
        if residual <= self.tol - self.space.noise:
            what = "the saddle point residual" if self.gap_certifies else "||A x||"
            return self.end(f"{what} is at most tol={self.tol!r}")
        if at.n_iter >= self.max_iter:
            return self.end("{} iterations are done", f"max_iter={self.max_iter}")
        if time.perf_counter() - self.started > self.max_seconds:
            return self.end("{} are over", f"max_seconds={self.max_seconds!r}")
        return self._monitor_ends()

    def end(self, message: str, limit: str = "") -> bool:
        """End the run by its rule, or at a limit, for which the message has a place."""
        self.converged, self.limit, self.message = not limit, limit, message.format(limit)
        return True

    def of_zero_column(self, y: np.ndarray, j: int) -> FeasibilityResult:
        """The outcome without an iteration, for a problem with a column of zeros."""
        self.phi_lo = self.phi_up = 0.0
        self.end(f"column {j} is zero, which no y separates")
        return self.result(y, np.eye(1, self.space.n, j)[0])

    def result(self, y: np.ndarray, x: np.ndarray) -> FeasibilityResult:
        """The outcome; bounds are recomputed, the status is what they prove."""
        seconds = time.perf_counter() - self.started
        cpu_seconds = time.process_time() - self.cpu_started
        if self.points and self.points[-1].iteration < self.n_iter:
            self._record()
        low, up = self.space.bounds(y, x, self.phi_lo, self.phi_up)
        status: FeasibilityStatus
        if self.space.separates(y, low):
            status = "separable"
        elif (proof := self.space.inseparability_proof(x)) is not None:
            status = "inseparable"
            if proof is not x:
                x, (low, up) = proof, self.space.bounds(y, proof, low, 0.0)
        else:
            status = "margin_at_most_tol" if self.space.rounded_up(up) <= self.tol else "budget"
        spent = {name: getattr(self.space.counters, name) for name in Counters().as_dict()}
        spent |= {"iterations": self.n_iter, "matvecs": self.space.matvecs}
        counters = FeasibilityCounters(**spent)
        return FeasibilityResult(
            status=status, y=y, x=x, phi_lo=low, phi_up=up, n_iter=self.n_iter,
            converged=self.converged, tol=self.tol, message=self.message, counters=counters,
            seconds=seconds, history=tuple(self.points), limit=self.limit,
            cpu_seconds=cpu_seconds,
        )  # fmt: skip

    def _record(self) -> None:
        self._next_point = max(self.n_iter + 1, math.ceil(self.n_iter * self.ratio))
        seconds, evals = time.perf_counter() - self.started, self.space.counters.kernel_evals
        low, up, matvecs = self.phi_lo, self.phi_up, self.space.matvecs
        self.points.append(HistoryPoint(self.n_iter, low, up, up - low, seconds, matvecs, evals))

    def _monitor_ends(self) -> bool:
        # The start of a run, or of a round, is no iteration of its own.
        if self.monitor is None or self.model_of is None or self.n_iter <= self._watched:
            return False
        counters, model_of = self.space.counters, self.model_of
        if self.monitor.due(counters.kernel_evals + counters.matvec_entries):
            self._watched = self.n_iter
            # The model is that of the iterate as it stands when it is asked for.
            record, unit = self.monitor.record, self.space.unit
            self.stopped = record(self.n_iter, lambda: model_of(unit(self.at)))
        if self.stopped:
            self.message = "stopped by the monitor"
        return self.stopped


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
    #: The values of parameters of its own that are words.
    _words: ClassVar[dict[str, tuple[str, ...]]] = {}

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
        for name, words in (("stop", ("certificate", "gap")), *self._words.items()):
            check_one_of(name, getattr(self, name), words)
        if self.history is not None:
            check_positive("history", self.history)
            if self.history < 1:
                raise ValueError(f"history must be None or a ratio >= 1, got {self.history!r}")

    def _space(self, problem: FeasibilityProblem) -> Space:
        """The space that :meth:`_iterate` works in."""
        raise NotImplementedError

    def _iterates(self, space: Any, progress: Progress) -> Iterator[Iterate]:
        """The iterates of the method, one after each iteration."""
        raise NotImplementedError

    def _iterate(self, space: Space, progress: Progress) -> FeasibilityResult:
        """Iterate until a certificate or a limit."""
        for at in self._iterates(space, progress):
            if progress.ends(at):
                break
        x = at.weights()
        return progress.result(space.unit(at), x / space.total(x))

    def _shortfall(self, result: FeasibilityResult) -> str:
        """What a run fell short of that a limit ended; empty if it has an answer.

        With ``stop="gap"`` and ``tol=0`` a run has no stopping rule but its limits.
        """
        low, up = result.margin_bounds
        known = self.stop == "certificate" or up - low <= self.tol
        answered = (known and result.status != "budget") or (self.stop == "gap" and self.tol == 0)
        if not result.limit or answered:
            return ""
        return f"the margin is between {low:.3g} and {up:.3g}, tol={self.tol!r}"


@hyperparameters
class FeasibilityMethod(FeasibilityParameters, BaseEstimator, ABC):
    """Base class: a method with the parameters of an estimator, given a problem and not points."""

    kind: ClassVar[Literal["linear", "gram", "conic"]] = "linear"

    def _space(self, problem: FeasibilityProblem) -> Space:
        return ColumnSpace(problem)


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
    #: The kernel matrix is stored if it is not larger than this, MB.
    gram_size = 0.0

    max_iter: int = 1000
    tol: float = 1e-3

    def _space(self, problem: FeasibilityProblem) -> Space:
        return FeatureSpace.of_problem(problem, stored=isinstance(self, GramMethod))

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
            # The same points with both labels prove that nothing separates.
            pair = contradicting_points(problem.X[space.index], problem.y[space.index])
            if pair is not None:
                x = np.zeros(space.n)
                x[[*pair]] = 0.5
                result = replace(result, status="inseparable", x=x, phi_up=0.0)
        self.result_ = result
        status: SolveStatus = "stopped" if progress.stopped else "budget"
        if result.converged:
            status = "converged" if result.status == "separable" else "no_separator"
        # The starting point is work, too: a run that needs no more has done one iteration.
        n_iter = max(1, result.n_iter)
        model = model_of(result.y)
        return Solution(model, n_iter, status, self._shortfall(result), result.limit)


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
