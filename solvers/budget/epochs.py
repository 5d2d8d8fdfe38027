"""The record of each epoch of a budgeted run, and the objectives at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..kernels.scoring import expansion_scores
from ..models import BudgetExpansion
from ..models.objectives import primal_value
from ..numeric.matrices import Matrix, matmul


@dataclass(frozen=True)
class BudgetObjectives:
    """Objectives of a budget model w~ and of its dual variables alpha, in C units.

    With ``w = sum_i alpha_i y_i phi(x_i)`` and ``f~`` the scores of w~.

    Attributes
    ----------
    primal : float
        ``1/2 ||w~||^2 + C sum_i hinge(y_i f~(x_i))``.
    dual_exact : float
        ``sum alpha - 1/2 ||w||^2``; NaN where it was too expensive. For BSCA, whose alpha is
        feasible, a lower bound of the optimum; the only one of the three duals that is a bound.
    dual_mixed : float
        ``sum alpha - 1/2 sum_i alpha_i y_i f~(x_i)``; may lie above the optimum.
    dual_model : float
        ``sum alpha - 1/2 ||w~||^2``; may lie above the optimum.
    drift : float
        ``||w - w~||``, what all maintenance together has moved w; NaN with ``dual_exact``.
    """

    primal: float
    dual_exact: float
    dual_mixed: float
    dual_model: float
    drift: float


@dataclass(frozen=True)
class EpochRecord:
    """What happened in one epoch, and the state at its end.

    Attributes
    ----------
    epoch : int
        From 1.
    n_iter : int
        Iterations since the start.
    n_support : int
        Points of the model.
    iterations : int
        Of this epoch; fewer than n if the monitor stopped it.
    changes : int
        Iterations that changed the model.
    coalesced : int
        Those that found their point in the model, which did not grow.
    maintenance : int
        Events of budget maintenance.
    weight_degradation : float
        Sum of ``||w~_after - w~_before||^2`` over these events.
    margin_evals, search_evals : int
        Kernel evaluations for margins and for budget maintenance, as a textbook run asks for them.
    seconds : float
        Wall time of the iterations, drawing and objectives not included.
    maintenance_seconds : float
        The part of it that maintenance took; NaN where the processor's counter is not readable.
    objectives : BudgetObjectives or None
        At the end of the epoch, if the estimator was asked for them.
    """

    epoch: int
    n_iter: int
    n_support: int
    iterations: int
    changes: int
    coalesced: int
    maintenance: int
    weight_degradation: float
    margin_evals: int
    search_evals: int
    seconds: float
    maintenance_seconds: float
    objectives: BudgetObjectives | None = None

    @property
    def maintenance_fraction(self) -> float:
        """Events of budget maintenance per iteration: for merging, BSCA18's merging frequency."""
        return self.maintenance / self.iterations


def budget_objectives(
    model: BudgetExpansion, X: Matrix, y: np.ndarray, alpha: np.ndarray, C: float, exact_up_to: int
) -> BudgetObjectives:
    """Objectives with float64 entries of their own, which nobody counts.

    Costs n times the model's size, and the square of the number of non-zero alpha for the exact
    dual.
    """
    model = replace(model, dtype="float64")
    scores = model.decision_function(X)
    squared_norm = model.squared_norm()
    support = np.flatnonzero(alpha)
    coef = alpha[support] * y[support]
    total = float(alpha.sum())
    mixed = float(matmul(coef, scores[support]))
    exact = math.nan
    if len(support) <= exact_up_to:
        points = model.kernel.prepare(X[support], "float64")
        responses = expansion_scores(model.kernel, points, coef, X[support], "float64")
        exact = float(matmul(coef, responses))
    return BudgetObjectives(
        primal=primal_value(squared_norm, y * scores, C),
        dual_exact=total - 0.5 * exact,
        dual_mixed=total - 0.5 * mixed,
        dual_model=total - 0.5 * squared_norm,
        drift=math.sqrt(max(exact - 2.0 * mixed + squared_norm, 0.0)),
    )
