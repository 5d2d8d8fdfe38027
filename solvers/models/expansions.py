"""What a solver returns: predictors that know their size and can be stored without pickle."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from inspect import isabstract
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy import sparse

from ..kernels import Kernel, Points, is_registered, kernel_of
from ..kernels.scoring import (
    EntryScorer,
    LinearScorer,
    expansion_scorer,
    expansion_scores,
    linear_scores,
)
from ..numeric.matrices import Matrix, matmul

_AnyModel = TypeVar("_AnyModel", bound="Model")


class Model(ABC):
    """A predictor f: a point is of the positive class if f(x) > 0, or of the largest f_c(x)."""

    #: What the file of a saved model calls it.
    kind: ClassVar[str]
    intercept: float

    @property
    @abstractmethod
    def n_support(self) -> int:
        """Number of support vectors; 0 for a model that keeps no points."""

    @abstractmethod
    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z, float64, shape (len(Z),)."""

    @abstractmethod
    def squared_norm(self) -> float:
        """||w||^2, without the intercept."""

    def __getstate__(self) -> dict[str, Any]:
        """The fields: what is computed from them when it is first wanted is not pickled."""
        if not is_dataclass(self):
            return vars(self)
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def scores_together(cls, parts: Sequence[Self], Z: Matrix) -> np.ndarray:
        """The scores of several such predictors, float64, shape (len(Z), len(parts)).

        A class whose predictors have something in common computes it once.
        """
        return np.stack([part.decision_function(Z) for part in parts], axis=1)

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of an estimator with this model, by scikit-learn's names."""

    @abstractmethod
    def _stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The model as plain JSON values and as arrays."""

    @classmethod
    @abstractmethod
    def _restored(cls, description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """The model of what :meth:`_stored` returned."""

    @classmethod
    def of_kind(cls, kind: str) -> type[Self]:
        """The class of models that calls itself so.

        Raises
        ------
        ValueError
            If neither this class nor one derived from it does.
        """
        for known in _descendants(cls):
            if known.kind == kind:
                return known
        raise ValueError(f"there is no model of kind {kind!r}")

    def save(self, path: str | Path) -> None:
        """Write the model as an .npz file of plain arrays.

        Raises
        ------
        ValueError
            For a callable or custom kernel, whose code cannot be stored.
        """
        description, arrays = self._stored()
        text = json.dumps({"kind": self.kind, **description})
        with open(path, "wb") as sink:
            np.savez(sink, allow_pickle=False, description=np.array(text), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        ValueError
            If the file holds a model of another kind.
        """
        with np.load(path, allow_pickle=False) as stored:
            description = json.loads(str(stored["description"]))
            kind = description.pop("kind", KernelExpansion.kind)
            for known in _descendants(cls):
                if known.kind == kind:
                    return known._restored(description, stored)
        raise ValueError(f"{path} holds a model of kind {kind!r}, not a {cls.__name__}")


@dataclass(frozen=True)
class KernelExpansion(Model):
    """f(x) = sum_j coef_j k(x_j, x) + intercept over training points x_j.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray or csr_matrix, shape (n_support, n_features)
        The support vectors; of shape (0, 0) for a precomputed kernel.
    coef : ndarray of float64, shape (n_support,)
        Signed coefficients, none of them zero.
    intercept : float
    support : ndarray of int64, shape (n_support,)
        Positions of the support vectors in the training set.
    n_train : int
        Number of training points.
    dtype : str
        Type of the kernel entries, "float32" or "float64"; sums are float64.
    """

    kernel: Kernel
    points: Matrix
    coef: np.ndarray
    intercept: float
    support: np.ndarray
    n_train: int
    dtype: str = "float32"
    kind: ClassVar[str] = "kernel expansion"

    @property
    def n_support(self) -> int:
        """Number of support vectors, the kernel evaluations that one prediction costs."""
        return len(self.coef)

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z, float64, shape (len(Z),).

        Parameters
        ----------
        Z : ndarray or csr_matrix, shape (n_points, n_features)
            For a precomputed kernel k(z, x_i), shape (n_points, n_train).
        """
        if self.n_support == 0:
            return np.full(Z.shape[0], self.intercept)
        return self._scorer(Z)[:, 0] + self.intercept

    @cached_property
    def _scorer(self) -> LinearScorer | EntryScorer:
        return expansion_scorer(self.kernel, self.prepared(), self.coef[None, :], self.dtype)

    def squared_norm(self) -> float:
        """||w||^2 = sum_ij coef_i coef_j k(x_i, x_j); not for a precomputed kernel.

        Raises
        ------
        ValueError
            For a precomputed kernel, whose entries the model does not hold.
        """
        if not self.kernel.evaluates:
            raise ValueError("a model of a precomputed kernel does not hold the kernel's entries")
        return _squared_norm(self.kernel, self.points, self.coef, self.dtype)

    def attributes(self) -> dict[str, Any]:
        """``dual_coef_``, ``support_``, ``support_vectors_`` and ``intercept_``."""
        return {
            "dual_coef_": self.coef[None, :],
            "support_": self.support,
            "support_vectors_": self.points,
            "intercept_": np.array([self.intercept]),
        }

    def _stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        description = {
            "kernel": _described(self.kernel),
            "intercept": self.intercept,
            "n_train": self.n_train,
            "dtype": self.dtype,
        }
        arrays = {"coef": self.coef, "support": self.support, **_matrix_arrays(self.points)}
        return description, arrays

    @classmethod
    def _restored(cls, description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        return cls(
            kernel=kernel_of(description["kernel"]),
            points=_matrix_of(arrays),
            coef=arrays["coef"],
            intercept=float(description["intercept"]),
            support=arrays["support"],
            n_train=int(description["n_train"]),
            dtype=str(description["dtype"]),
        )

    def prepared(self) -> Points:
        """The support vectors as the kernel wants them."""
        if not self.kernel.evaluates:
            # Only the columns matter: the entries come with the points to predict.
            return Points(np.empty((self.n_support, 0), dtype=self.dtype), columns=self.support)
        return self.kernel.prepare(self.points, self.dtype)


@dataclass(frozen=True)
class BudgetExpansion(Model):
    """f(x) = sum_j coef_j k(z_j, x) + intercept over points z_j of the model's own.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray, shape (n_support, n_features)
        Points that need not be training points.
    coef : ndarray of float64, shape (n_support,)
        Signed coefficients.
    intercept : float
    dtype : str
        Type of the kernel entries, "float32" or "float64"; sums are float64.
    """

    kernel: Kernel
    points: np.ndarray
    coef: np.ndarray
    intercept: float = 0.0
    dtype: str = "float32"
    kind: ClassVar[str] = "budget expansion"

    @property
    def n_support(self) -> int:
        """Number of points, the kernel evaluations that one prediction costs."""
        return len(self.coef)

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z, float64, shape (len(Z),)."""
        if self.n_support == 0:
            return np.full(Z.shape[0], self.intercept)
        points = self.kernel.prepare(self.points, self.dtype)
        return expansion_scores(self.kernel, points, self.coef, Z, self.dtype) + self.intercept

    def squared_norm(self) -> float:
        """||w||^2 = sum_ij coef_i coef_j k(z_i, z_j)."""
        return _squared_norm(self.kernel, self.points, self.coef, self.dtype)

    def attributes(self) -> dict[str, Any]:
        """``dual_coef_``, ``support_vectors_`` and ``intercept_``; there is no ``support_``."""
        return {
            "dual_coef_": self.coef[None, :],
            "support_vectors_": self.points,
            "intercept_": np.array([self.intercept]),
        }

    def _stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        description = {
            "kernel": _described(self.kernel),
            "intercept": self.intercept,
            "dtype": self.dtype,
        }
        return description, {"coef": self.coef, **_matrix_arrays(self.points)}

    @classmethod
    def _restored(cls, description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        return cls(
            kernel=kernel_of(description["kernel"]),
            points=arrays["points"],
            coef=arrays["coef"],
            intercept=float(description["intercept"]),
            dtype=str(description["dtype"]),
        )


@dataclass(frozen=True)
class LinearModel(Model):
    """f(x) = <weights, x> + intercept.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_features,)
    intercept : float
    dual_coef : ndarray of float64, shape (n_train,), or None
        y_i alpha_i of a dual point, the certificate of a method that has one. It takes no part in
        predictions.
    """

    weights: np.ndarray
    intercept: float = 0.0
    dual_coef: np.ndarray | None = None
    kind: ClassVar[str] = "linear"

    @property
    def n_support(self) -> int:
        """0: the model keeps no points."""
        return 0

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z, float64, shape (len(Z),)."""
        return linear_scores(Z, self.weights) + self.intercept

    def squared_norm(self) -> float:
        """||w||^2."""
        return float(matmul(self.weights, self.weights))

    def attributes(self) -> dict[str, Any]:
        """``coef_`` and ``intercept_``."""
        return {"coef_": self.weights[None, :], "intercept_": np.array([self.intercept])}

    def _stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"weights": self.weights}
        if self.dual_coef is not None:
            arrays["dual_coef"] = self.dual_coef
        return {"intercept": self.intercept}, arrays

    @classmethod
    def _restored(cls, description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        intercept = float(description["intercept"])
        return cls(arrays["weights"], intercept, arrays.get("dual_coef"))


def _descendants(cls: type[_AnyModel]) -> Iterator[type[_AnyModel]]:
    """The class itself and every class derived from it that is no longer abstract."""
    if not isabstract(cls):
        yield cls
    for derived in cls.__subclasses__():
        yield from _descendants(derived)


def _squared_norm(kernel: Kernel, points: Matrix, coef: np.ndarray, dtype: str) -> float:
    if len(coef) == 0:
        return 0.0
    scores = expansion_scores(kernel, kernel.prepare(points, dtype), coef, points, dtype)
    return float(matmul(coef, scores))


def _described(kernel: Kernel) -> dict[str, Any]:
    if not is_registered(kernel):
        raise ValueError(
            "a model with a callable or custom kernel cannot be saved: its code cannot be stored"
        )
    return kernel.describe()


def _matrix_arrays(points: Matrix) -> dict[str, np.ndarray]:
    if not sparse.issparse(points):
        return {"points": points}
    return {
        "data": points.data,
        "indices": points.indices,
        "indptr": points.indptr,
        "shape": np.array(points.shape),
    }


def _matrix_of(arrays: Mapping[str, np.ndarray]) -> Matrix:
    if "points" in arrays:
        return arrays["points"]
    return sparse.csr_matrix(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"]
    )
