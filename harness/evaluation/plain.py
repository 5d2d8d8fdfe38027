"""Returned models as plain numbers: all that is taken over from a solver."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from ...solvers.models.fourier import FourierExpansion
from ...solvers.models.several import OneVsRestModel
from ...solvers.models.voting import VotedExpansion
from ..errors import EvaluationError

Array = npt.NDArray[Any]

#: The arrays of each kind of model, and what messages call them.
_ARRAYS: dict[str, dict[str, str]] = {
    "kernel expansion": {"support": "support", "coef": "coefficients"},
    "budget expansion": {"points": "points", "coef": "coefficients"},
    "linear": {"weights": "weights", "dual_coef": "dual coefficients"},
    "Fourier expansion": {"frequencies": "frequencies", "weights": "weights"},
    "voted expansion": {
        "support": "support",
        "coef": "coefficients",
        "mistakes": "mistakes",
        "survivals": "survivals",
    },
}


#: What a model of several classes is called, and how many it may have.
SEVERAL = OneVsRestModel.kind
_MAX_PARTS = 10_000
# The predictor of a class that a run has not come to yet: w = 0.
_NOTHING: dict[str, Array] = {"support": np.empty(0, dtype=np.int64), "coef": np.empty(0)}


@dataclass(frozen=True)
class PlainModel:
    """A model as numbers.

    Attributes
    ----------
    kind : str
        What sort of model it is; a key of the table above, or "one-vs-rest".
    intercept : float
    arrays : mapping of str to ndarray
        Whatever the solver put there: types, shapes and values are checked by whoever uses them.
    parts : tuple of PlainModel
        Of several classes: the predictor of each against the rest.
    """

    kind: str
    intercept: float
    arrays: Mapping[str, Array] = field(default_factory=dict)
    parts: tuple[PlainModel, ...] = ()

    @property
    def finite(self) -> bool:
        """Whether there is neither infinity nor NaN in it."""
        floats = (array for array in self.arrays.values() if array.dtype.kind == "f")
        own = np.isfinite(self.intercept) and all(np.isfinite(item).all() for item in floats)
        return bool(own) and all(part.finite for part in self.parts)

    @property
    def intercepts(self) -> tuple[float, ...]:
        """Of each predictor."""
        return tuple(part.intercept for part in self.parts) or (self.intercept,)

    @property
    def digest(self) -> bytes:
        """A hash of all that is in it."""
        found = hashlib.sha256(repr((self.kind, self.intercept)).encode())
        for name, array in self.arrays.items():
            found.update(f"{name} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
        for part in self.parts:
            found.update(part.digest)
        return found.digest()


def plain_model(model: object) -> PlainModel:
    """A returned model as numbers; its kernel and the scores that it would give are left behind.

    Raises
    ------
    EvaluationError
        If it is no model of a known kind, or its numbers are none.
    """
    if isinstance(model, PlainModel):
        return model
    if isinstance(model, OneVsRestModel):
        return _several([_part(part) for part in model.parts])
    if isinstance(model, KernelExpansion):
        return _plain("kernel expansion", model, model)
    if isinstance(model, BudgetExpansion):
        return _plain("budget expansion", model, model)
    if isinstance(model, LinearModel):
        return _plain("linear", model, model)
    if isinstance(model, FourierExpansion):
        return _plain("Fourier expansion", model, model)
    if isinstance(model, VotedExpansion):
        return _plain("voted expansion", model, model.last, model)
    what = "a model of another kind" if isinstance(model, Model) else "no marginbench.Model"
    raise EvaluationError(
        f"model_ is a {type(model).__name__}, {what}: its scores cannot be recomputed"
    )


def _part(model: object) -> PlainModel:
    if model is None:
        return PlainModel("kernel expansion", 0.0, _NOTHING)
    if isinstance(model, OneVsRestModel | PlainModel):
        raise EvaluationError("the model of a class is itself one of several classes")
    return plain_model(model)


def _several(parts: list[PlainModel]) -> PlainModel:
    if not 2 < len(parts) <= _MAX_PARTS:
        raise EvaluationError(f"a model of several classes has {len(parts)} predictors")
    return PlainModel(SEVERAL, 0.0, parts=tuple(parts))


def _plain(kind: str, model: Any, *parts: Any) -> PlainModel:
    arrays: dict[str, Array] = {}
    for name, words in _ARRAYS[kind].items():
        value = next(getattr(part, name) for part in parts if hasattr(part, name))
        if value is None:
            continue
        arrays[name] = np.asarray(value)
        if arrays[name].dtype.kind not in "fiu":
            raise EvaluationError(f"the model's {words} have type {arrays[name].dtype}, not real")
    try:
        return PlainModel(kind, float(model.intercept), arrays)
    except (TypeError, ValueError):
        raise EvaluationError(
            f"the model's intercept is {model.intercept!r:.40}, not a number"
        ) from None
