"""The parameters of kernels: which values each takes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from ..numeric.matrices import Matrix, variance
from ..numeric.validation import check_whole


@dataclass(frozen=True)
class Parameter(ABC):
    """What a kernel says of one of its parameters."""

    @abstractmethod
    def resolved(self, name: str, value: Any, X: Any = None, weights: Any = None) -> Any:
        """The value as the kernel stores it."""


@dataclass(frozen=True)
class Width(Parameter):
    """A number > 0, or "scale" or "auto": 1 / (n_features * X.var()) or 1 / n_features.

    The variance counts each point as often as its sample weight says; class weights do not enter.
    """

    def resolved(self, name: str, value: Any, X: Any = None, weights: Any = None) -> float:
        if isinstance(value, str) and value in ("scale", "auto"):
            if X is None:
                raise ValueError(f"{name}={value!r} needs the training points")
            return 1.0 / X.shape[1] if value == "auto" else _scale(name, X, weights)
        if not (_is_finite(value) and value > 0):
            raise ValueError(f"{name} must be a number > 0, 'scale' or 'auto', got {value!r}")
        return float(value)


@dataclass(frozen=True)
class WholeNumber(Parameter):
    """A whole number >= ``at_least``."""

    at_least: int = 0

    def resolved(self, name: str, value: Any, X: Any = None, weights: Any = None) -> int:
        check_whole(name, value, at_least=self.at_least)
        return int(value)


@dataclass(frozen=True)
class FiniteNumber(Parameter):
    """A finite number."""

    def resolved(self, name: str, value: Any, X: Any = None, weights: Any = None) -> float:
        if not _is_finite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}")
        return float(value)


def parameter(kind: Parameter, *, default: Any) -> Any:
    """Declare a parameter as a field of a kernel's dataclass."""
    return field(default=default, metadata={"parameter": kind})


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _scale(name: str, X: Matrix, weights: np.ndarray | None) -> float:
    spread = X.shape[1] * variance(X, weights)
    if not np.isfinite(spread):
        raise ValueError(f"{name}='scale' needs the variance of X, which overflows: scale X")
    return 1.0 / spread if spread > 0 else 1.0
