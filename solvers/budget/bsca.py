"""Budgeted stochastic dual coordinate ascent."""

from __future__ import annotations

import numpy as np

from ..interface.declaration import hyperparameters
from ..interface.problem import Problem
from ..registration import register
from .base import BudgetSolver
from .maintenance import Rule
from .points import TrainingPoints
from .state import ModelState
from .steps import ASCENT, Method, iterate


@register("svm")
@hyperparameters
class BSCA(BudgetSolver):
    """Soft-margin kernel SVM without bias by dual coordinate ascent on a budget of points.

    Goes through the variables of ``max sum_i alpha_i - 1/2 alpha' Q alpha, 0 <= alpha_i <= C`` like
    :class:`SDCA`, but scores each drawn point with an approximate w of at most ``budget`` points;
    a step ``delta`` on alpha_i adds the point x_i with coefficient ``y_i delta``, and one point too
    many is merged with another, projected onto the others, or removed ([BSCA18]_ Algorithm 1).

    Parameters
    ----------
    pairing : {"label", "any", "sign"}
        Which points may be merged: those of the same label, any two, or those whose coefficients
        have the same sign. "any" is the most accurate; see docs/budget.md.

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

    Deviations: [BSCA18]_ prints the new coefficient without the label, and merges only points of
    the same class, which is ``pairing="label"``; a point that stands in the model already has its
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

    pairing: str = "any"

    def _iterations(
        self, problem: Problem, training: TrainingPoints, model: ModelState, rule: Rule
    ) -> _Ascent:
        return _Ascent(problem, training, model, rule, float(self.C))


class _Ascent:
    """Exact steps on single dual variables, scored by the model."""

    scale = 1.0

    def __init__(
        self,
        problem: Problem,
        training: TrainingPoints,
        model: ModelState,
        rule: Rule,
        C: float,
    ) -> None:
        self.alpha = np.zeros(problem.n)
        self._model = (model, training.code, rule)
        self._method = Method(ASCENT, problem.y, training.squares, self.alpha, C)

    def advance(self, drawn: np.ndarray, index: np.ndarray, start: int, limit: int) -> int:
        return iterate(*self._model, self._method, drawn, index, 0, start, limit)
