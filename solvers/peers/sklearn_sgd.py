"""scikit-learn's SGDClassifier with the hinge loss, a peer of the stochastic linear methods."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import SGDClassifier

from ..interface.base import WeightedSolver
from ..interface.convergence import without_convergence_warnings
from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.parameters import SoftMarginParameters, SolverParameters
from ..interface.problem import Problem, Solution, SolveStatus
from ..models import LinearModel
from ..numeric.rows import finite_squared_norms
from ..numeric.validation import check_flag, check_iteration_limit, check_positive
from ..registration import register


@register("svm")
@hyperparameters
class SklearnSGD(WeightedSolver, SolverParameters, SoftMarginParameters):
    """Linear soft-margin SVM by stochastic gradients, through scikit-learn's SGDClassifier.

    An external solver: it counts no inner products and shows no checkpoint before its end. It
    minimises the objective of :class:`marginbench.LinearPegasos` in lambda units, with
    ``alpha = 1 / (n C)``, by steps of size ``1 / (alpha (t_0 + t))`` ([Bot12]_), where Bottou's
    heuristic chooses ``t_0``.

    Parameters
    ----------
    fit_intercept : bool
        Fit an unregularised bias. On sparse data scikit-learn takes a hundredth of the step for it.
    average : bool
        Return the average of w after each step instead of the last w.
    min_improvement : float >= 0
        SGDClassifier's ``tol``: stop when the mean loss of an epoch, as it met the points, has not
        fallen by this much below the lowest so far for five epochs in a row; 0 for no such rule.
        scikit-learn's default is 1e-3, with 1000 passes. The rule bounds no distance from the
        optimum, from which it may stop far away, so it is no ``tol`` as other solvers have it.
    max_epochs : int >= 1
        Stop after this many passes over the points, in a new order each.
    random_state
        Seeds the order of the points.

    Notes
    -----
    Kernel evaluations: none; what it does is not counted. Points keep their precision. An
    iteration is a draw of a point.
    """

    supports_bias = True
    instrumented = False
    kernel = "linear"

    average: bool = False
    min_improvement: float = 0.0
    max_epochs: int = 100

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_flag("average", self.average)
        check_positive("min_improvement", self.min_improvement, zero=True)
        check_iteration_limit(self.max_epochs)

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        finite_squared_norms(problem.X)
        sgd = SGDClassifier(
            loss="hinge",
            alpha=1 / (problem.n * float(self.C)),
            fit_intercept=bool(self.fit_intercept),
            average=bool(self.average),
            tol=self.min_improvement if self.min_improvement > 0 else None,
            max_iter=min(self.max_epochs, np.iinfo(np.int32).max),
            random_state=int(problem.rng.integers(2**31)),
        )
        with without_convergence_warnings():
            sgd.fit(problem.X, problem.y, sample_weight=problem.weights)
        model = LinearModel(np.array(sgd.coef_[0], dtype=np.float64), float(sgd.intercept_[0]))
        epochs = int(sgd.n_iter_)
        # SGDClassifier does not tell by how much.
        fell = f"the mean loss may still fall, min_improvement={self.min_improvement:g}"
        shortfall = f"after {epochs} passes {fell}" if self.min_improvement > 0 else ""
        status: SolveStatus = "budget" if epochs >= self.max_epochs else "converged"
        return Solution(model, epochs * problem.n, status, shortfall)
