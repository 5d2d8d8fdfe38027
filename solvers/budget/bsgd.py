"""Budgeted stochastic subgradient descent."""

from __future__ import annotations

import numpy as np

from ..interface.declaration import hyperparameters
from ..interface.problem import Problem
from ..registration import register
from .base import BudgetSolver
from .maintenance import Rule
from .points import TrainingPoints
from .state import ModelState
from .steps import DESCENT, Method, iterate


@register("svm")
@hyperparameters
class BSGD(BudgetSolver):
    """Soft-margin kernel SVM without bias by subgradient steps on a budget of points.

    Minimises ``lambda/2 ||w||^2 + (1/n) sum_i hinge_i``, ``lambda = 1 / (n C)``, like
    :class:`Pegasos`: iteration t multiplies w by ``1 - 1/t``, and adds ``y_i n C / t phi(x_i)`` if
    the drawn point had margin below 1 ([BSCA18]_ eq. 4). One point too many for the budget is
    merged with another, projected onto the others, or removed ([WCV12]_).

    Attributes
    ----------
    alpha_ : ndarray of float64, shape (n,)
        ``n C / t`` times the number of violations of each point: the w that the model approximates
        is ``sum_i alpha_i y_i phi(x_i)``. Entries may exceed C, so that the "dual values" of BSGD
        are only diagnostics.
    trace_ : list of EpochRecord
        Maintenance events, degradation, kernel evaluations and times of each epoch.

    Notes
    -----
    Kernel evaluations: the model's size in each iteration, and its size less one for each event of
    merging; none for removal and projection. For kernels with a diagonal other than 1, n more,
    once. Memory: the model, n numbers, and a block of rows; the data are not copied.

    The model is a :class:`BudgetExpansion`: ``support_vectors_`` are points of its own, and
    ``dual_coef_`` their signed coefficients.

    Deviations: the first step has length n C, as eq. 4 says (the authors' code takes 1); a point
    that stands in the model already has its coefficient changed there. See docs/budget.md.

    References
    ----------
    .. [WCV12] Wang, Crammer, Vucetic: Breaking the curse of kernelization: budgeted stochastic
       gradient descent for large-scale SVM training. JMLR 13, 2012. BibTeX key
       ``wang2012breaking``.
    .. [BSCA18] Qaadan, Schüler, Glasmachers: Dual SVM training on a budget. 2018. BibTeX key
       ``qaadan2018dual``.
    """

    scalarization = "R"

    def _iterations(
        self, problem: Problem, training: TrainingPoints, model: ModelState, rule: Rule
    ) -> _Descent:
        return _Descent(problem, training, model, rule, problem.n * float(self.C))


class _Descent:
    """Subgradient steps on ``w = (1/t) sum_j coef_j phi(z_j)``: only additions to the sum.

    The factor 1/t is the product of all decays since the first, so it can neither underflow nor
    lose digits however long the run is.
    """

    def __init__(
        self,
        problem: Problem,
        training: TrainingPoints,
        model: ModelState,
        rule: Rule,
        step: float,
    ) -> None:
        self._violations = np.zeros(problem.n)
        self._model = (model, training.code, rule)
        self._method = Method(DESCENT, problem.y, training.squares, self._violations, step)
        self._step = step
        self._done = 0

    @property
    def scale(self) -> float:
        return 1.0 / max(self._done, 1)

    @property
    def alpha(self) -> np.ndarray:
        return self._violations * (self._step * self.scale)

    def advance(self, drawn: np.ndarray, index: np.ndarray, start: int, limit: int) -> int:
        before = self._done - start
        position = iterate(*self._model, self._method, drawn, index, before, start, limit)
        self._done += position - start
        return position
