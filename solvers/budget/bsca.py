"""Budgeted stochastic dual coordinate ascent."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginbench.solvers.budget.base import BudgetSolver
from marginbench.solvers.budget.expansion import Expansion
from marginbench.solvers.budget.maintenance import Maintenance, Rule
from marginbench.solvers.budget.rows import TrainingRows
from marginbench.solvers.budget.steps import ASCENT, iterate
from marginbench.solvers.interface.problem import Problem
from marginbench.solvers.kernels import Kernel


class BSCA(BudgetSolver):
    """Soft-margin kernel SVM without bias by dual coordinate ascent on a budget of points.

    Goes through the variables of ``max sum_i alpha_i - 1/2 alpha' Q alpha, 0 <= alpha_i <= C`` like
    :class:`SDCA`, but scores each drawn point with an approximate w of at most ``budget`` points;
    a step ``delta`` on alpha_i adds the point x_i with coefficient ``y_i delta``, and one point too
    many is merged with another, projected onto the others, or removed ([BSCA18]_ Algorithm 1).

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or Kernel, default="rbf"
        Evaluated in compiled code, so no callable and no precomputed matrix.
    gamma : float > 0, "scale" or "auto", default="scale"
        Width of "rbf" (``exp(-gamma ||x - z||^2)``) and scale of "poly".
    degree : int >= 1, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    C : float > 0, default=1.0
        Weight of the summed hinge loss against ``1/2 ||w||^2``.
    fit_intercept : bool, default=False
        Must be False: the method has no unregularised bias.
    budget : int >= 1, default=500
        The most points that the model may have after any iteration.
    maintenance : str or Maintenance, default="merge"
        What keeps to the budget: "merge" (only for "rbf"), "project", "remove", a name of
        ``budget.STRATEGIES``, or one of ``Merging``, ``Projection``, ``Removal``.
    order : {"permutation", "iid"}, default="permutation"
        A fresh permutation in each epoch (the authors' code), or independent uniform draws
        (the paper).
    max_epochs : int >= 1, default=20
        Stop after this many epochs of n iterations. The paper runs 20 to 100.
    record_objectives : bool, default=False
        Evaluate primal, duals and drift after each epoch, into ``trace_``. That takes time within
        ``fit``, but none of the time in ``trace_``.
    dtype : {"float32", "float64"}, default="float32"
        Type of points and kernel entries. Sums are float64.
    random_state : int, Generator or None, default=None
        Seeds the draws.

    Attributes
    ----------
    alpha_ : ndarray of float64, shape (n,)
        The dual variables, feasible. The model is not ``sum_i alpha_i y_i phi(x_i)``, but what
        maintenance has made of it.
    trace_ : list of EpochRecord
        Maintenance events, degradation, kernel evaluations and times of each epoch.

    Notes
    -----
    Kernel evaluations: the model's size in each iteration, and its size less one for each event of
    merging; none for removal and projection. For kernels with a diagonal other than 1, n more,
    once. Memory: the model, n numbers, and a block of rows; the data are not copied.

    The model is a :class:`BudgetExpansion`: ``support_vectors_`` are points of its own, and
    ``dual_coef_`` their signed coefficients. There is no certificate: alpha belongs to another w.

    Deviations: [BSCA18]_ prints the new coefficient without the label; signs to be merged are
    those of the coefficients, not the labels; a point that stands in the model already has its
    coefficient changed there. See docs/budget.md.

    References
    ----------
    .. [BSCA18] Qaadan, Schüler, Glasmachers: Dual SVM training on a budget. 2018. BibTeX key
       ``qaadan2018dual``.
    .. [WCV12] Wang, Crammer, Vucetic: Breaking the curse of kernelization: budgeted stochastic
       gradient descent for large-scale SVM training. JMLR 13, 2012. BibTeX key
       ``wang2012breaking``.
    """

    scalarization = "C"

    def __init__(
        self,
        kernel: str | Kernel = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        fit_intercept: bool = False,
        budget: int = 500,
        maintenance: str | Maintenance = "merge",
        order: str = "permutation",
        max_epochs: int = 20,
        record_objectives: bool = False,
        dtype: str = "float32",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.fit_intercept = fit_intercept
        self.budget = budget
        self.maintenance = maintenance
        self.order = order
        self.max_epochs = max_epochs
        self.record_objectives = record_objectives
        self.dtype = dtype
        self.random_state = random_state

    def _iterations(
        self, problem: Problem, rows: TrainingRows, model: Expansion, rule: Rule, budget: int
    ) -> _Ascent:
        return _Ascent(problem, rows, model, rule, budget, float(self.C))


class _Ascent:
    """Exact steps on single dual variables, scored by the model."""

    scale = 1.0

    def __init__(
        self,
        problem: Problem,
        rows: TrainingRows,
        model: Expansion,
        rule: Rule,
        budget: int,
        C: float,
    ) -> None:
        self.alpha = np.zeros(problem.n)
        self._model = (model, rows.code, rule, budget)
        self._problem = (problem.y, rows.squares, ASCENT, self.alpha, C)

    def advance(self, rows: np.ndarray, index: np.ndarray, start: int, limit: int) -> int:
        return iterate(*self._model, rows, index, *self._problem, 0, start, limit)
