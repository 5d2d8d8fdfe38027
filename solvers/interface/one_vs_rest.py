"""Each class against the rest, with the predictors kept as they stood on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..models import Model
from ..numeric.validation import check_whole
from .base import Solver
from .classes import of_classes
from .declaration import hyperparameters
from .inputs import new_points
from .monitor import Monitor


class _Stages(Monitor):
    """Keeps the first state at or after each of some numbers of iterations, beside a monitor."""

    # Always due: being asked is cheap, a snapshot is made at a stage only.
    next_checkpoint = 0.0

    def __init__(self, stages: Iterable[int], outer: Monitor) -> None:
        self.coming = sorted(stages)
        self.seen: dict[int, Model] = {}
        self._outer, self._outer_is_due = outer, False

    def due(self, kernel_evals: int) -> bool:
        self._outer_is_due = self._outer.due(kernel_evals)
        return True

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        while self.coming and n_iter >= self.coming[0]:
            self.seen[self.coming.pop(0)] = snapshot()
        return self._outer_is_due and self._outer.record(n_iter, snapshot)

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        return self._outer.epoch_ended(n_iter, snapshot)


@hyperparameters
class OneVsRest(ClassifierMixin, BaseEstimator):
    """A solver for several classes whose predictors are kept at stages of its iterations.

    Any solver trains each class against the rest by itself; this is for those who want to see how
    the predictor comes about, with every class after the same number of iterations.

    Parameters
    ----------
    estimator : Solver
        Its parameters hold for each class.
    stages : iterable of int >= 1
        Numbers of iterations after which the predictor is kept: the first state at or after each
        at which the solver can be asked, which for the feasibility methods is every iteration. A
        class that ends earlier keeps its last predictor.

    Attributes
    ----------
    estimator_ : Solver
        The fitted solver; its attributes are those of all classes.
    estimators_ : list of Solver
        The solver of each class, or of two classes the only one.
    staged_models_ : dict
        Stage -> the predictor.
    classes_ : ndarray, shape (n_classes,)
    n_iter_ : int
    counters_ : Counters or None
        What the fit cost.
    """

    estimator: Solver = field(kw_only=False)
    stages: Iterable[int] = ()

    def fit(self, X: Any, y: Any) -> OneVsRest:
        """Train one predictor for each class, or one in all for two classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, n_features)
            The training points; for ``kernel="precomputed"`` the Gram matrix, shape (n, n).
        y : array-like, shape (n,)
            Classes, at least two.

        Returns
        -------
        OneVsRest
            The fitted estimator itself.

        Raises
        ------
        TypeError
            If the estimator is no :class:`Solver`.
        ValueError
            For parameters out of range, NaN or infinity in X, or fewer than two classes.
        """
        if not isinstance(self.estimator, Solver):
            raise TypeError(f"estimator must be a marginbench.Solver, got {self.estimator!r}")
        if not isinstance(self.stages, Iterable):
            raise ValueError(f"stages must be whole numbers >= 1 in a list, got {self.stages!r}")
        stages = tuple(self.stages)
        for stage in stages:
            check_whole("stages", stage, at_least=1)
        watches: list[_Stages] = []

        def stages_of(monitor: Monitor) -> Monitor:
            # Without stages nobody is to be asked at every iteration.
            watches.append(_Stages(stages, monitor))
            return watches[-1] if stages else monitor

        fitted = clone(self.estimator)
        try:
            fitted._fit(X, y, None, None, stages_of)
        finally:
            # Ctrl-C leaves a model as well.
            if hasattr(fitted, "model_"):
                self._take(fitted, watches, stages)
        return self

    def _take(self, fitted: Solver, watches: list[_Stages], stages: tuple[int, ...]) -> None:
        """Set the fitted attributes."""
        self.estimator_ = fitted
        self.estimators_ = getattr(fitted, "estimators_", [fitted])
        for name in ("classes_", "n_iter_", "counters_", "n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        self.staged_models_ = {}
        for stage in stages:
            pairs = zip(watches, self.estimators_, strict=True)
            models = [watch.seen.get(stage, part.model_) for watch, part in pairs]
            several = len(self.classes_) > 2
            joined = of_classes(models, len(self.classes_)) if several else models[0]
            self.staged_models_[stage] = joined

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores as those of the solver: of two classes those of the second one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            For ``kernel="precomputed"`` the entries k(x, x_i), shape (n_points, n).

        Returns
        -------
        ndarray of float64, shape (n_points,) or (n_points, n_classes)
        """
        check_is_fitted(self)
        return self.estimator_.model_.decision_function(new_points(self, X))

    def staged_decision_function(self, X: Any) -> dict[int, np.ndarray]:
        """Scores by the predictors of each of the ``stages``.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        dict
            Stage -> scores.
        """
        check_is_fitted(self)
        X = new_points(self, X)
        return {stage: model.decision_function(X) for stage, model in self.staged_models_.items()}

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row of X, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, Solver):
            inner = self.estimator.__sklearn_tags__().input_tags
            tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        return tags
