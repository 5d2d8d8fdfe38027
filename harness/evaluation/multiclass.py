"""Models of several classes, judged class by class: errors are theirs, objectives are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...solvers.models import Model
from ..errors import EvaluationError
from .models import SEVERAL, Evaluation, Evaluator, PlainModel, Scored, plain_model

Array = npt.NDArray[Any]


class ClassesEvaluator:
    """Evaluates models on a task of more than two classes.

    Every class against the rest is a problem of its own, with the same kernel, C and bias. What a
    class's predictor is worth is computed again only when it has changed.

    Parameters
    ----------
    evaluator_of : callable
        Takes the labels of both parts, -1 or +1, and makes the evaluator of one problem.
    y_train, y_test : ndarray, shape (n_points,)
        Classes, at least three in the training part.
    """

    def __init__(
        self, evaluator_of: Callable[[Array, Array], Evaluator], y_train: Array, y_test: Array
    ) -> None:
        self.classes = np.unique(y_train)
        self.y_train, self.y_test = y_train, y_test
        self._parts = [
            evaluator_of(np.where(y_train == label, 1, -1), np.where(y_test == label, 1, -1))
            for label in self.classes
        ]
        self.n_problems = len(self._parts)
        self.n_train, self.n_test = len(y_train), len(y_test)
        self._known: list[tuple[bytes, str, Scored] | None] = [None] * self.n_problems

    def evaluate(self, model: Model | PlainModel, dtype: str = "float64") -> Evaluation:
        """As :meth:`Evaluator.evaluate`."""
        models = self._models(model)
        each = [self._scored(c, part, dtype) for c, part in enumerate(models)]
        found = [one.evaluation for one in each]
        mistakes = self._mistakes([one.test_scores for one in each], self.y_test)
        on_train = self._mistakes([one.train_scores for one in each], self.y_train)
        return Evaluation(
            train_error=float(np.mean(on_train)),
            test_error=float(np.mean(mistakes)),
            n_support=_kept(models, found),
            primal=_sum([one.primal for one in found]),
            dual=_sum([one.dual for one in found]),
            squared_norm=_sum([one.squared_norm for one in found]),
            mean_hinge=sum(one.mean_hinge for one in found),
            mistakes=mistakes,
        )

    def test_scores(self, model: Model | PlainModel, rows: Array) -> Array:
        """f_c(x) of some test points, with float64 entries, shape (len(rows), n_classes)."""
        each = zip(self._parts, self._models(model), strict=True)
        return np.stack([one.test_scores(part, rows) for one, part in each], axis=1)

    def score_bounds(self, model: Model | PlainModel, rows: Array) -> tuple[Array, Array]:
        """Least and greatest f_c(x) of some test points that float32 entries can explain."""
        each = zip(self._parts, self._models(model), strict=True)
        low, high = zip(*(one.score_bounds(part, rows) for one, part in each), strict=True)
        return np.stack(low, axis=1), np.stack(high, axis=1)

    def score_noise(self, model: Model | PlainModel) -> float:
        """The sum of the bounds of all classes."""
        each = zip(self._parts, self._models(model), strict=True)
        return sum(one.score_noise(part) for one, part in each)

    def _models(self, model: Model | PlainModel) -> tuple[PlainModel, ...]:
        plain = plain_model(model)
        if plain.kind != SEVERAL or len(plain.parts) != len(self._parts):
            found = f"{len(plain.parts)} classes" if plain.parts else "two classes"
            raise EvaluationError(
                f"the task has {len(self._parts)} classes, but the model is one of {found}"
            )
        return plain.parts

    def _scored(self, c: int, model: PlainModel, dtype: str) -> Scored:
        digest, known = model.digest, self._known[c]
        if known is None or known[:2] != (digest, dtype):
            known = (digest, dtype, self._parts[c].scored(model, dtype))
            self._known[c] = known
        return known[2]

    def _mistakes(self, scores: list[Array], y: Array) -> Array:
        stacked = np.stack(scores)
        # Of a diverged model nothing is right: NaN is the largest number for argmax.
        finite = np.isfinite(stacked).all(axis=0)
        wrong: Array = (self.classes[stacked.argmax(axis=0)] != y) | ~finite
        return wrong


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _kept(models: tuple[PlainModel, ...], found: list[Evaluation]) -> int:
    """Points kept by any class; points of the models' own are of one class each."""
    if any("support" not in model.arrays for model in models):
        return sum(one.n_support for one in found)
    used = [model.arrays["support"][model.arrays["coef"] != 0] for model in models]
    return len(np.unique(np.concatenate(used)))
