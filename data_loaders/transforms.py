"""From the raw content of a dataset to the one that solvers see: labels, scales, storage.

Every transform is a function ``(content, params) -> content``. Numbers are float32: data files
have fewer digits. Whatever is estimated comes from the training part alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from .content import Content, Labels, Matrix, Part
from .parameters import Parameters, Value

#: Scales of a feature: to [-1, 1], to [0, 1], to mean 0 and standard deviation 1, as it is.
SCALES = ("minmax", "unit", "standard", "none")
#: Scales of an image: values / 255, or Euclidean norm 1.
IMAGE_SCALES = ("unit", "norm")

_Vector: TypeAlias = NDArray[np.float64]
_CHUNK_ENTRIES = 1 << 20


def unchanged(content: Content, params: Parameters) -> Content:
    """The raw content itself."""
    return content


def as_float32(content: Content, params: Parameters) -> Content:
    """Values as float32, dense or sparse as they are; labels as int8."""
    train, test = (
        Part(part.X.astype(np.float32), part.y.astype(np.int8)) for _, part in content.parts()
    )
    return Content(train, test)


def tabular(content: Content, params: Parameters, positive: Value | None = None) -> Content:
    """Dense float32 features in the scale ``params["scale"]``, as they are where there is none;
    labels as `labels` makes them from ``params["positive"]``, or else from `positive`.

    A feature that is constant in the training part tells a learner nothing and becomes 0 in both
    parts, unless the scale is "none".
    """
    scale = _fit(content.train.X, str(params.get("scale", "none")))
    train, test = (
        Part(_scaled(part.X, scale), labels(part.y, params.get("positive", positive)))
        for _, part in content.parts()
    )
    return Content(train, test)


def images(content: Content, params: Parameters) -> Content:
    """Pixels 0..255 as float32 in the scale ``params["scale"]``, in [0, 1] where there is none;
    labels as `labels` makes them from ``params["positive"]``.
    """
    scaled = _normalised if params.get("scale") == "norm" else _fractions
    train, test = (
        Part(scaled(part.X), labels(part.y, params.get("positive"))) for _, part in content.parts()
    )
    return Content(train, test)


def labels(y: Labels, positive: Value | None) -> Labels:
    """Labels for a solver.

    Parameters
    ----------
    y : integer ndarray, shape (n,)
    positive : int, "none" or None
        The class that is set against the rest. "none": no class is. None: there are two already.

    Returns
    -------
    integer ndarray, shape (n,)
        int8, +1 for the class `positive` and -1 for the rest; int64 and as they are for "none";
        int8 and as they are for None.
    """
    if positive is None:
        return y.astype(np.int8)
    if positive == "none":
        return y.astype(np.int64)
    return np.where(y == positive, 1, -1).astype(np.int8)


def moments(X: NDArray[Any]) -> tuple[_Vector, _Vector]:
    """Mean and standard deviation (0 for a constant) of every column, the same on every platform.

    Sums are taken with :func:`math.fsum`, which rounds once whatever the order.
    """
    n = X.shape[0]
    mean, deviation = np.empty(X.shape[1]), np.empty(X.shape[1])
    for j, column in enumerate(X.T):
        values = np.asarray(column, dtype=np.float64)
        mean[j] = math.fsum(values) / n
        deviation[j] = math.sqrt(math.fsum((values - mean[j]) ** 2) / n)
    return mean, deviation


@dataclass(frozen=True, eq=False)
class _Scale:
    """x -> gain * (x - shift) / width + offset; 0 where the width is 0."""

    shift: _Vector
    width: _Vector
    gain: float = 1.0
    offset: float = 0.0


def _fit(X: Matrix, scale: str) -> _Scale | None:
    if scale == "none":
        return None
    if scale == "standard":
        return _Scale(*moments(_dense(X)))
    lowest, highest = (
        _dense(bound).astype(np.float64).reshape(-1) for bound in (X.min(axis=0), X.max(axis=0))
    )
    if scale == "unit":
        return _Scale(lowest, highest - lowest)
    if scale == "minmax":
        return _Scale(lowest, highest - lowest, gain=2.0, offset=-1.0)
    raise ValueError(f"no such scale: {scale!r}")


def _scaled(X: Matrix, scale: _Scale | None) -> NDArray[np.float32]:
    if scale is None:
        return np.ascontiguousarray(_dense(X), dtype=np.float32)
    varies = scale.width > 0
    width = np.where(varies, scale.width, 1.0)
    out = np.empty(X.shape, dtype=np.float32)
    for rows in _chunks(X):
        values = (_dense(X[rows]) - scale.shift) / width * scale.gain + scale.offset
        out[rows] = np.where(varies, values, 0.0)
    return out


def _fractions(X: Matrix) -> NDArray[np.float32]:
    return np.divide(X, np.float32(255), dtype=np.float32)


def _normalised(X: Matrix) -> NDArray[np.float32]:
    """Rows of Euclidean norm 1; a row of zeros stays one."""
    out = np.empty(X.shape, dtype=np.float32)
    for rows in _chunks(X):
        values = X[rows].astype(np.float64)
        norms = np.sqrt((values**2).sum(axis=1, keepdims=True))  # of integers: exact in any order
        out[rows] = values / np.where(norms == 0, 1.0, norms)
    return out


def _dense(X: Matrix) -> NDArray[Any]:
    dense: NDArray[Any] = cast(csr_matrix, X).toarray() if issparse(X) else np.asarray(X)
    return dense


def _chunks(X: Matrix) -> Iterator[slice]:
    step = max(1, _CHUNK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step)
