"""Scores of a returned model, recomputed from the task's own data with entries of its own.

Nothing here counts towards a solver's cost, and nothing is taken over from a solver but the
arrays of its model (:mod:`marginbench.harness.evaluation.predictors`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...solvers.models import Model
from ...solvers.models.objectives import dual_value, hinge, primal_value
from ..errors import EvaluationError
from .plain import SEVERAL, PlainModel, plain_model
from .predictors import Predictor, TaskPoints, predictor_of

Array = npt.NDArray[Any]

# How far alpha may leave [0, C], relative to C, and y'alpha leave 0, relative to sum alpha.
_FEASIBILITY = 1e-6


@dataclass(frozen=True)
class Evaluation:
    """What a model is worth on a task.

    Attributes
    ----------
    train_error, test_error : float
        Fractions of misclassified points; f(x) > 0 predicts the positive class, and of several
        classes the largest f_c(x) its class.
    n_support : int
        Points that the model keeps with a non-zero coefficient, those shared by classes once; 0
        for a model that keeps none.
    primal : float or None
        1/2 ||w||^2 + C sum hinge, in C units, with w in the space of the model's own features;
        None for a vote, which has no w. This and what follows are sums over several classes.
    dual : float or None
        Dual value, in C units; None if the coefficients are no feasible dual point.
    squared_norm : float or None
        ||w||^2.
    mean_hinge : float
        Mean hinge loss on the training set.
    mistakes : ndarray of bool, shape (n_test,)
        Which test points are misclassified.
    """

    train_error: float
    test_error: float
    n_support: int
    primal: float | None
    dual: float | None
    squared_norm: float | None
    mean_hinge: float
    mistakes: Array = field(
        default_factory=lambda: np.zeros(0, dtype=bool), compare=False, repr=False
    )

    @property
    def gap(self) -> float | None:
        """Primal minus dual, in C units."""
        return None if self.dual is None or self.primal is None else self.primal - self.dual

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.mean_hinge if self.primal is None else self.primal))


@dataclass(frozen=True)
class Scored:
    """A predictor's scores on both parts, float64, and what it is worth."""

    evaluation: Evaluation
    train_scores: Array
    test_scores: Array


class Evaluator:
    """Evaluates models on one task of two classes.

    Parameters
    ----------
    points : TaskPoints
        With the task's kernel; the one that a model claims is not looked at.
    C : float
    fit_intercept : bool
        Whether the task has an unregularised bias.
    y_train, y_test : ndarray, shape (n_points,)
        Labels, -1 or +1.
    dual_certificate : bool
        Whether the coefficients are y_i alpha_i of a dual point, so that a gap is defined.
    """

    #: How many problems are solved for the task.
    n_problems = 1

    def __init__(
        self,
        points: TaskPoints,
        *,
        C: float,
        fit_intercept: bool,
        y_train: Array,
        y_test: Array,
        dual_certificate: bool,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.dual_certificate = dual_certificate
        self.y_train = np.asarray(y_train, dtype=np.float64)
        self.y_test = np.asarray(y_test, dtype=np.float64)
        self.n_train, self.n_test = len(y_train), len(y_test)
        self._train_positive, self._test_positive = self.y_train > 0, self.y_test > 0
        self._points = points

    def evaluate(self, model: Model | PlainModel, dtype: str = "float64") -> Evaluation:
        """Scores, errors and objectives of a model.

        Parameters
        ----------
        model : Model or PlainModel
        dtype : {"float32", "float64"}
            Type of the kernel entries; sums are float64.

        Raises
        ------
        EvaluationError
            If the model is not well-formed or not one of this task.
        """
        return self.scored(plain_model(model), dtype).evaluation

    def scored(self, model: PlainModel, dtype: str) -> Scored:
        """The same, with the scores themselves."""
        # A diverged model has infinities and NaNs; they are a result here, not a surprise.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._scored(self._predictor(model), dtype)

    def _scored(self, predictor: Predictor, dtype: str) -> Scored:
        # w's own scores, without the bias: they can give the norm too.
        responses = predictor.train_scores(dtype)
        squared_norm = predictor.squared_norm(responses, dtype)
        scores = responses + predictor.intercept
        test_scores = predictor.test_scores(dtype) + predictor.intercept
        margins = self.y_train * scores
        mistakes = (test_scores > 0) != self._test_positive
        evaluation = Evaluation(
            train_error=_share((scores > 0) != self._train_positive),
            test_error=_share(mistakes),
            n_support=predictor.n_support,
            primal=None if squared_norm is None else primal_value(squared_norm, margins, self.C),
            dual=None if squared_norm is None else self._dual(predictor, squared_norm),
            squared_norm=squared_norm,
            mean_hinge=float(hinge(margins).mean()),
            mistakes=mistakes,
        )
        return Scored(evaluation, scores, test_scores)

    def _predictor(self, model: Model | PlainModel) -> Predictor:
        plain = plain_model(model)
        if plain.kind == SEVERAL:
            raise EvaluationError("the task has two classes, but the model is one of several")
        return predictor_of(plain, self._points)

    def test_scores(self, model: Model | PlainModel, rows: Array) -> Array:
        """f(x) of some test points, with float64 entries, shape (len(rows),)."""
        predictor = self._predictor(model)
        return predictor.test_scores("float64", rows) + predictor.intercept

    def score_bounds(self, model: Model | PlainModel, rows: Array) -> tuple[Array, Array]:
        """Least and greatest f(x) of some test points that float32 entries can explain."""
        return self._predictor(model).score_bounds(rows)

    def score_noise(self, model: Model | PlainModel) -> float:
        """A bound on the error of a score that was computed with float32 kernel entries.

        Zero for a model without a kernel, and for votes, which have no common bound.
        """
        return self._predictor(model).noise()

    def _dual(self, predictor: Predictor, squared_norm: float) -> float | None:
        coef = predictor.dual_coef
        if not self.dual_certificate or coef is None:
            return None
        alpha = coef * self.y_train
        slack = _FEASIBILITY * self.C
        if not bool(np.all((alpha >= -slack) & (alpha <= self.C + slack))):
            return None
        if self.fit_intercept and abs(coef.sum()) > _FEASIBILITY * max(self.C, alpha.sum()):
            return None
        return dual_value(alpha, predictor.dual_squared_norm(squared_norm))


def _share(flags: Array) -> float:
    """The share of those that are true, without the overhead of ``np.mean`` on flags."""
    return float(np.count_nonzero(flags)) / len(flags)
