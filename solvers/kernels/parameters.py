"""The parameters of kernels: which values each takes, and what the kernel stores for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from numbers import Real
from typing import Any

import numpy as np

from ..numeric.matrices import Matrix, variance
from ..numeric.validation import check_whole

#: Takes a parameter's name and value, the training points and how often each counts (None if they
#: are unknown); returns what the kernel stores, or raises ValueError.
Resolve = Callable[[str, Any, Matrix | None, np.ndarray | None], Any]


def parameter(resolve: Resolve, *, default: Any) -> Any:
    """Declare a parameter as a field of a kernel's dataclass, with one of the functions below."""
    return field(default=default, metadata={"resolve": resolve})


def width(name: str, value: Any, X: Matrix | None, weights: np.ndarray | None) -> float:
    """A number > 0, or "scale" or "auto": 1 / (n_features * X.var()) or 1 / n_features.

    The variance counts each point as often as its sample weight says; class weights do not enter.
    """
    if isinstance(value, str) and value in ("scale", "auto"):
        if X is None:
            raise ValueError(f"{name}={value!r} needs the training points")
        return 1.0 / X.shape[1] if value == "auto" else _scale(name, X, weights)
    if not (_is_finite(value) and value > 0):
        raise ValueError(f"{name} must be a number > 0, 'scale' or 'auto', got {value!r}")
    return float(value)


def count(name: str, value: Any, X: Matrix | None, weights: np.ndarray | None) -> int:
    """A whole number >= 1."""
    check_whole(name, value, at_least=1)
    return int(value)


def finite(name: str, value: Any, X: Matrix | None, weights: np.ndarray | None) -> float:
    """A finite number."""
    if not _is_finite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _scale(name: str, X: Matrix, weights: np.ndarray | None) -> float:
    spread = X.shape[1] * variance(X, weights)
    if not np.isfinite(spread):
        raise ValueError(f"{name}='scale' needs the variance of X, which overflows: scale X")
    return 1.0 / spread if spread > 0 else 1.0
