"""What a solver returns: predictors that know their size and can be stored without pickle."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from inspect import isabstract
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from ..kernels import Kernel, Points, is_registered, kernel_of
from ..kernels.scoring import expansion_scorer, expansion_scores, linear_scores
from ..numeric.matrices import Matrix, matmul


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

    def save(self, path: str | Path) -> None:
        """Write the model as an .npz file of plain arrays.

        Raises
        ------
        ValueError
            For a callable or custom kernel, whose code cannot be stored.
        """
        arrays: dict[str, np.ndarray] = {}
        text = np.array(json.dumps(packed(self, "", arrays)))
        contents: dict[str, Any] = {"description": text, **arrays}
        with open(path, "wb") as sink:
            np.savez(sink, **contents)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        ValueError
            If the file holds a model of another kind.
        """
        with np.load(path, allow_pickle=False) as stored:
            model: Model = unpacked(json.loads(str(stored["description"])), "", stored)
        if not isinstance(model, cls):
            raise ValueError(f"{path} holds a model of kind {model.kind!r}, not a {cls.__name__}")
        return model


class _Expansion(Model):
    """f(x) = sum_j coef_j k(z_j, x) + intercept."""

    kernel: Kernel
    points: Matrix
    coef: np.ndarray
    dtype: str

    @property
    def n_support(self) -> int:
        """Number of points, the kernel evaluations that one prediction costs."""
        return len(self.coef)

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z (for a precomputed kernel k(z, x_i)), float64, shape (len(Z),)."""
        if self.n_support == 0:
            return np.full(Z.shape[0], self.intercept)
        return self._scorer(Z) + self.intercept

    @cached_property
    def _scorer(self) -> Callable[[Matrix], np.ndarray]:
        return expansion_scorer(self.kernel, self.prepared(), self.coef, self.dtype)

    def squared_norm(self) -> float:
        """||w||^2 = sum_ij coef_i coef_j k(z_i, z_j); ValueError for a precomputed kernel."""
        if not self.kernel.evaluates:
            raise ValueError("a model of a precomputed kernel does not hold the kernel's entries")
        if self.n_support == 0:
            return 0.0
        points = self.kernel.prepare(self.points, self.dtype)
        scores = expansion_scores(self.kernel, points, self.coef, self.points, self.dtype)
        return float(matmul(self.coef, scores))

    def attributes(self) -> dict[str, Any]:
        """``dual_coef_``, ``support_vectors_`` and ``intercept_``; there is no ``support_``."""
        return {
            "dual_coef_": self.coef[None, :],
            "support_vectors_": self.points,
            "intercept_": np.array([self.intercept]),
        }

    def prepared(self) -> Points:
        """The points as the kernel wants them."""
        return self.kernel.prepare(self.points, self.dtype)


@dataclass(frozen=True)
class KernelExpansion(_Expansion):
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

    def attributes(self) -> dict[str, Any]:
        """``dual_coef_``, ``support_``, ``support_vectors_`` and ``intercept_``."""
        return {**super().attributes(), "support_": self.support}

    def prepared(self) -> Points:
        """The support vectors as the kernel wants them."""
        if not self.kernel.evaluates:
            # Only the columns matter: the entries come with the points to predict.
            return Points(np.empty((self.n_support, 0), dtype=self.dtype), columns=self.support)
        return super().prepared()


@dataclass(frozen=True)
class BudgetExpansion(_Expansion):
    """f(x) = sum_j coef_j k(z_j, x) + intercept over points z_j of the model's own.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray or csr_matrix, shape (n_support, n_features)
        Points that need not be training points.
    coef : ndarray of float64, shape (n_support,)
        Signed coefficients.
    intercept : float
    dtype : str
        Type of the kernel entries, "float32" or "float64"; sums are float64.
    """

    kernel: Kernel
    points: Matrix
    coef: np.ndarray
    intercept: float = 0.0
    dtype: str = "float32"
    kind: ClassVar[str] = "budget expansion"


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


def packed(value: Any, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    """A model, or a field or parameter, as JSON; arrays are put beside it, named after the prefix.

    What JSON lacks is an object with one key, its kind. ValueError for what cannot be stored.
    """
    if isinstance(value, Model):
        inside = {
            item.name: packed(getattr(value, item.name), f"{prefix}{item.name}.", arrays)
            for item in fields(value)  # type: ignore[arg-type]
        }
        return {value.kind: inside}
    if isinstance(value, Kernel):
        if not is_registered(value):
            raise ValueError(
                "a model with a callable or custom kernel cannot be saved: its code cannot be "
                "stored"
            )
        return {"kernel": value.describe()}
    if isinstance(value, list | tuple):
        items = [packed(one, f"{prefix}{k}.", arrays) for k, one in enumerate(value)]
        return {type(value).__name__: items}
    if isinstance(value, dict):
        pairs = enumerate(value.items())
        return {
            "dict": [[packed(part, f"{prefix}{k}.", arrays) for part in item] for k, item in pairs]
        }
    if sparse.issparse(value):
        arrays |= {prefix + name: getattr(value, name) for name in ("data", "indices", "indptr")}
        return {"csr": list(value.shape)}
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays[prefix[:-1]] = value
        return {"array": list(value.shape)}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{value!r} cannot be stored")


def unpacked(value: Any, prefix: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """What :func:`packed` made this of."""
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "kernel":
        return kernel_of(inside)
    if kind in ("list", "tuple"):
        sequence = [unpacked(one, f"{prefix}{k}.", arrays) for k, one in enumerate(inside)]
        return sequence if kind == "list" else tuple(sequence)
    if kind == "dict":
        items = enumerate(inside)
        return dict([unpacked(part, f"{prefix}{k}.", arrays) for part in item] for k, item in items)
    if kind == "csr":
        parts = tuple(arrays[prefix + name] for name in ("data", "indices", "indptr"))
        return sparse.csr_matrix(parts, shape=inside)
    if kind == "array":
        return arrays[prefix[:-1]]
    by_kind = {getattr(model, "kind", None): model for model in _descendants(Model)}
    if kind not in by_kind:
        raise ValueError(f"there is no model of kind {kind!r}")
    return by_kind[kind](
        **{name: unpacked(one, f"{prefix}{name}.", arrays) for name, one in inside.items()}
    )


def _descendants(cls: type[Any]) -> Iterator[type[Any]]:
    """Every class derived from this one that is not abstract."""
    for derived in cls.__subclasses__():
        if not isabstract(derived):
            yield derived
        yield from _descendants(derived)
