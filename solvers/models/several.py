"""The predictor for several classes: one for each class against the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np
from scipy import sparse

from ..kernels.scoring import expansion_scorer
from ..numeric.matrices import Matrix
from .expansions import KernelExpansion, Model


@dataclass(frozen=True)
class OneVsRestModel(Model):
    """f_c(x) for each class c; a point is of the class with the largest score.

    Kernel expansions over the same training points share their kernel entries, and Fourier
    expansions with the same frequencies their features.

    Attributes
    ----------
    parts : tuple of Model or None
        The predictor of each class against the rest; None for a class that a run has not come to
        yet: its w is 0.
    """

    parts: tuple[Model | None, ...]
    kind: ClassVar[str] = "one-vs-rest"

    @property
    def intercept(self) -> np.ndarray:  # type: ignore[override]
        """The intercept of each class, float64, shape (n_classes,)."""
        return np.array([0.0 if part is None else part.intercept for part in self.parts])

    @property
    def n_support(self) -> int:
        """Number of points that the model keeps, those shared by classes once."""
        each = [part.attributes() for part in self._fitted]
        if each and all("support_" in one for one in each):
            return len(np.unique(np.concatenate([one["support_"] for one in each])))
        return sum(part.n_support for part in self._fitted)

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f_c(z) for each row of Z and each class, float64, shape (len(Z), n_classes)."""
        scores = np.zeros((Z.shape[0], len(self.parts)))
        trained = [c for c, part in enumerate(self.parts) if part is not None]
        fitted = self._fitted
        if _are_expansions(fitted):
            if len(self._joint[0]):
                scores[:, trained] = self._joint_scorer(Z)
            return scores + self.intercept
        if len({type(part) for part in fitted}) == 1:
            scores[:, trained] = type(fitted[0]).scores_together(fitted, Z)
        else:
            for c, part in zip(trained, fitted, strict=True):
                scores[:, c] = part.decision_function(Z)
        return scores

    def squared_norm(self) -> float:
        """Sum of the ||w_c||^2."""
        return sum(part.squared_norm() for part in self._fitted)

    def attributes(self) -> dict[str, Any]:
        """Those of the parts, with a row for each class."""
        fitted = self._fitted
        if _are_expansions(fitted):
            support, coef = self._joint
            rows = np.zeros((len(self.parts), len(support)))
            rows[[c for c, part in enumerate(self.parts) if part is not None]] = coef
            return {
                "dual_coef_": rows,
                "support_": support,
                "support_vectors_": self._joint_expansion(support).points,
                "intercept_": self.intercept,
            }
        attributes: dict[str, Any] = {"intercept_": self.intercept}
        each = [part.attributes() for part in fitted]
        if len(each) == len(self.parts) and all("coef_" in one for one in each):
            attributes["coef_"] = np.concatenate([one["coef_"] for one in each])
        return attributes

    @property
    def _fitted(self) -> list[Model]:
        return [part for part in self.parts if part is not None]

    @cached_property
    def _joint(self) -> tuple[np.ndarray, np.ndarray]:
        """Support vectors of any class, and the coefficients of each trained class on them."""
        fitted = self._fitted
        assert _are_expansions(fitted)
        support = np.unique(np.concatenate([part.support for part in fitted]))
        coef = np.zeros((len(fitted), len(support)))
        for row, part in zip(coef, fitted, strict=True):
            row[np.searchsorted(support, part.support)] = part.coef
        return support, coef

    @cached_property
    def _joint_scorer(self) -> Callable[[Matrix], np.ndarray]:
        support, coef = self._joint
        joint = self._joint_expansion(support)
        return expansion_scorer(joint.kernel, joint.prepared(), coef, joint.dtype)

    def _joint_expansion(self, support: np.ndarray) -> KernelExpansion:
        """All support vectors as those of one expansion; its coefficients mean nothing."""
        fitted = self._fitted
        assert _are_expansions(fitted)
        first = fitted[0]
        points: Matrix = np.empty((0, 0))
        if first.kernel.evaluates:
            stack = sparse.vstack if sparse.issparse(first.points) else np.concatenate
            index = np.concatenate([part.support for part in fitted])
            order = np.unique(index, return_index=True)[1]
            points = stack([part.points for part in fitted])
            points = (points.tocsr() if sparse.issparse(points) else points)[order]
        return KernelExpansion(
            first.kernel, points, np.ones(len(support)), 0.0, support, first.n_train, first.dtype
        )


def _are_expansions(parts: list[Model]) -> TypeGuard[list[KernelExpansion]]:
    """Whether they are plain expansions over the points of one training set."""
    return bool(parts) and all(type(part) is KernelExpansion for part in parts)
