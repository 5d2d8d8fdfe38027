"""What BSGD and BSCA share: blocks of iterations, checkpoints, objectives."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ..interface.base import Solver
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import (
    KernelParameters,
    SoftMarginParameters,
    SolverParameters,
)
from ..interface.problem import Problem, Solution
from ..kernels import RBF, Kernel
from ..models import BudgetExpansion
from ..numeric.validation import (
    check_flag,
    check_iteration_limit,
    check_one_of,
    check_positive,
    check_whole,
)
from .epochs import BudgetObjectives, EpochRecord, budget_objectives
from .ledger import Ledger
from .maintenance import PAIRINGS, Maintenance, Rule, strategy_of
from .merging import SAME_LABEL
from .points import TrainingPoints
from .state import ModelState, empty_state

# More kernel evaluations than any call makes.
_NO_LIMIT = 2**62
# The square of so many non-zero alpha is affordable after each epoch.
_EXACT_UP_TO = 20_000


class Iterations(Protocol):
    """One of the two methods at work on a model."""

    def advance(self, drawn: np.ndarray, index: np.ndarray, start: int, limit: int) -> int:
        """Iterate over ``index[start:]`` and return the position where that ended."""

    @property
    def scale(self) -> float:
        """What multiplies the model's coefficients."""

    @property
    def alpha(self) -> np.ndarray:
        """The dual variables, shape (n,)."""


@hyperparameters
class BudgetSolver(Solver, SolverParameters, SoftMarginParameters, KernelParameters):
    """Base class of the solvers on a budget, :class:`BSCA` and :class:`BSGD`.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or Kernel
        Evaluated in compiled code, so no callable and no precomputed matrix.
    dtype
        Type of points and kernel entries. Sums are float64.
    budget : int >= 1
        The most points that the model may have after any iteration.
    maintenance : str or Maintenance
        What keeps to the budget: "merge" (only for "rbf"), "project", "remove", a name of
        ``budget.STRATEGIES``, or one of ``Merging``, ``Projection``, ``Removal``.
    pairing : {"label", "any", "sign"}
        Which points may be merged: those of the same label, any two, or those whose coefficients
        have the same sign. See docs/budget.md. Projection and removal do not read it.
    order : {"permutation", "iid"}
        A fresh permutation in each epoch (the authors' code), or independent uniform draws
        (the theory).
    max_epochs : int >= 1
        Stop after this many epochs of n iterations. [BSCA18]_ states no number.
    record_objectives : bool
        Evaluate primal, duals and drift after each epoch, into ``trace_``. That takes time within
        ``fit``, but none of the time in ``trace_``.

    Attributes
    ----------
    alpha_ : ndarray, shape (n,)
        The dual variables whose w the model approximates.
    trace_ : list of EpochRecord
        One record for each epoch.
    """

    supports_callable_kernel: ClassVar[bool] = False

    budget: int = 500
    maintenance: str | Maintenance = "merge"
    pairing: str = "sign"
    order: str = "permutation"
    max_epochs: int = 20
    record_objectives: bool = False

    @abstractmethod
    def _iterations(
        self, problem: Problem, training: TrainingPoints, model: ModelState, rule: Rule
    ) -> Iterations:
        """The method before its first iteration."""

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_whole("budget", self.budget, at_least=1)
        strategy_of(self.maintenance)
        check_one_of("pairing", self.pairing, tuple(PAIRINGS))
        check_one_of("order", self.order, ("permutation", "iid"))
        check_iteration_limit(self.max_epochs)
        check_flag("record_objectives", self.record_objectives)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        kernel = problem.kernel
        strategy = self._strategy(kernel, problem.n)
        rule = strategy.rule(self.pairing)
        # A model of all points needs no room for more.
        budget = min(int(self.budget), problem.n)
        training = TrainingPoints(kernel, problem.X, np.dtype(self.dtype).name)
        problem.counters.charge(len(training.squares), len(training.squares))
        model = empty_state(
            problem.X.shape[1],
            budget,
            training.dtype,
            gram=strategy.keeps_gram,
            labels=rule.pairing == SAME_LABEL,
        )
        iterations = self._iterations(problem, training, model, rule)
        ledger = Ledger(model, problem.counters)

        def snapshot() -> BudgetExpansion:
            coef = model.coef[: int(model.counts["n_points"])] * iterations.scale
            return BudgetExpansion(kernel, training.points_of(model), coef, dtype=training.dtype)

        self.trace_: list[EpochRecord] = []
        for epoch in range(1, self.max_epochs + 1):
            draws = self._draw_epoch(problem.rng, problem.n)
            stopped = _run_epoch(problem, monitor, iterations, training, draws, ledger, snapshot)
            if not stopped and epoch < self.max_epochs:  # the end of the last is that of the fit
                stopped = monitor.epoch_ended(ledger.n_iter, snapshot)
            self.alpha_ = iterations.alpha
            objectives = None
            if self.record_objectives:
                with monitor.paused():
                    objectives = budget_objectives(
                        snapshot(), problem.X, problem.y, self.alpha_, float(self.C), _EXACT_UP_TO
                    )
            self.trace_.append(ledger.close_epoch(objectives))
            if stopped:
                return Solution(snapshot(), ledger.n_iter, "stopped")
        return Solution(snapshot(), ledger.n_iter, "budget")

    def objectives(self, X: Any, y: Any, exact_up_to: int = _EXACT_UP_TO) -> BudgetObjectives:
        """Primal, dual values and drift of the fitted model, in C units, with float64 entries.

        Costs n kernel evaluations for each point of the model, and the square of the number of
        non-zero ``alpha_`` for the exact dual; none of them is counted.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points, in the order of ``fit``.
        y : array-like, shape (n,)
            Their labels.
        exact_up_to : int, default=20000
            Leave out the exact dual and the drift, which become NaN, for more non-zero ``alpha_``
            than this.

        Returns
        -------
        BudgetObjectives

        Raises
        ------
        ValueError
            If the points are not as many as those of ``fit``.
        """
        check_is_fitted(self)
        X, y = validate_data(
            self, X, y, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        if len(y) != len(self.alpha_):
            raise ValueError(
                f"objectives takes the {len(self.alpha_)} training points, got {len(y)} points"
            )
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        assert isinstance(self.model_, BudgetExpansion)
        return budget_objectives(self.model_, X, signs, self.alpha_, float(self.C), exact_up_to)

    def _strategy(self, kernel: Kernel, n: int) -> Maintenance:
        strategy = strategy_of(self.maintenance)
        # With room for all points no maintenance ever happens.
        if strategy.gaussian_only and not isinstance(kernel, RBF) and self.budget < n:
            raise ValueError(
                f"merging needs the rbf kernel, got {kernel.name}: set maintenance='project' or "
                f"'remove', or a budget of all {n} points"
            )
        return strategy

    def _draw_epoch(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.permutation(n) if self.order == "permutation" else rng.integers(n, size=n)


def _run_epoch(
    problem: Problem,
    monitor: Monitor,
    iterations: Iterations,
    training: TrainingPoints,
    draws: np.ndarray,
    ledger: Ledger,
    snapshot: Callable[[], BudgetExpansion],
) -> bool:
    """One iteration for each draw, block by block; whether the monitor stopped it."""
    for begin in range(0, len(draws), training.block_length):
        index = draws[begin : begin + training.block_length]
        with ledger.timed():
            drawn = training.gather(index)
        position = 0
        while position < len(index):
            ahead = monitor.next_checkpoint - problem.kernel_evals
            limit = max(1, math.ceil(ahead)) if math.isfinite(ahead) else _NO_LIMIT
            start = position
            with ledger.timed():
                position = iterations.advance(drawn, index, start, limit)
            ledger.n_iter += position - start
            ledger.charge()
            if monitor.due(problem.kernel_evals) and monitor.record(ledger.n_iter, snapshot):
                return True
    return False
