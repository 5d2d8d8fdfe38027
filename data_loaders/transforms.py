"""From the raw content of a dataset to the one that solvers see: splits, labels, scales, storage.

Every transform is a function ``(content, params) -> content``. Numbers are float32: data files
have fewer digits. Whatever is estimated comes from the training part alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from .content import Content, Labels, Matrix, Part, row_chunks
from .errors import DataError
from .parameters import Parameters, Value

_Vector: TypeAlias = NDArray[np.float64]


def as_float32(content: Content, params: Parameters) -> Content:
    """Values as float32, dense or sparse as they are; labels as int8."""
    train, test = (
        Part(part.X.astype(np.float32), part.y.astype(np.int8)) for _, part in content.parts()
    )
    return Content(train, test)


def tabular(
    content: Content,
    params: Parameters,
    scale: str = "none",
    positive: Value | None = None,
    dtype: Any = np.float32,
) -> Content:
    """Dense features in a scale; labels as `labels` makes them.

    ``params["scale"]`` and ``params["positive"]`` come before `scale` and `positive`. A feature
    that is constant in the training part tells a learner nothing and becomes 0 in both parts,
    unless the scale is "none".
    """
    kind = str(params.get("scale", scale))
    fitted = None if kind == "none" else Scale.fit(content.train.X, kind)

    def one(part: Part) -> Part:
        X = (
            np.ascontiguousarray(_dense(part.X), dtype=dtype)
            if fitted is None
            else fitted.apply(part.X, dtype)
        )
        return Part(X, labels(part.y, params.get("positive", positive)))

    return Content(one(content.train), one(content.test))


def images(content: Content, params: Parameters, levels: int = 255) -> Content:
    """Pixels 0..`levels` as float32, of norm 1 if ``params["scale"]`` is "norm", else in [0, 1];
    labels as `labels` makes them from ``params["positive"]``.
    """
    norm = params.get("scale") == "norm"

    def one(part: Part) -> Part:
        X = unit_rows(part.X) if norm else np.divide(part.X, np.float32(levels), dtype=np.float32)
        return Part(X, labels(part.y, params.get("positive")))

    return Content(one(content.train), one(content.test))


def labels(y: Labels, positive: Value | None) -> Labels:
    """int8, +1 for the class `positive` and -1 for the rest; int64 and as they are for "none"; int8
    and as they are for None: there are two classes already.
    """
    if positive is None:
        return y.astype(np.int8)
    if positive == "none":
        return y.astype(np.int64)
    return np.where(y == positive, 1, -1).astype(np.int8)


def moments(X: Matrix) -> tuple[_Vector, _Vector]:
    """Mean and standard deviation (0 for a constant) of every column, the same on every platform.

    Sums are taken with :func:`math.fsum`, which rounds once whatever the order.
    """
    n = X.shape[0]
    mean, deviation = np.empty(X.shape[1]), np.empty(X.shape[1])
    columns = cast(csr_matrix, X).tocsc() if issparse(X) else X
    for j in range(X.shape[1]):
        values = _dense(columns[:, [j]]).astype(np.float64).ravel()
        mean[j] = math.fsum(values) / n
        # The rounding of the mean gives a constant a deviation of its own.
        varies = values.min() != values.max()
        deviation[j] = math.sqrt(math.fsum((values - mean[j]) ** 2) / n) if varies else 0.0
    return mean, deviation


@dataclass(frozen=True, eq=False)
class Scale:
    """x -> gain * (x - shift) / width + offset by column; 0 where the width is 0."""

    shift: _Vector
    width: _Vector
    gain: float = 1.0
    offset: float = 0.0

    @classmethod
    def fit(cls, X: Matrix, scale: str) -> Scale:
        """Fit to the rows of the training part.

        "standard" is mean 0 and standard deviation 1, "unit" from 0 to 1, "minmax" from -1 to 1.
        """
        if scale == "standard":
            return cls(*moments(X))
        lowest, highest = (
            _dense(bound).astype(np.float64).ravel() for bound in (X.min(axis=0), X.max(axis=0))
        )
        if scale == "unit":
            return cls(lowest, highest - lowest)
        if scale == "minmax":
            return cls(lowest, highest - lowest, gain=2.0, offset=-1.0)
        raise ValueError(f"no such scale: {scale!r}")

    def apply(self, X: Matrix, dtype: Any = np.float32) -> NDArray[Any]:
        """Dense rows in this scale."""
        varies = self.width > 0
        width = np.where(varies, self.width, 1.0)
        out = np.empty(X.shape, dtype=dtype)
        for rows in row_chunks(X):
            values = (_dense(X[rows]) - self.shift) / width * self.gain + self.offset
            out[rows] = np.where(varies, values, 0.0)
        return out


def unit_rows(X: Matrix) -> Any:
    """Rows of Euclidean norm 1 as float32, dense or sparse as they are; zeros stay zeros."""
    if issparse(X):
        sparse = csr_matrix(X, dtype=np.float64)
        shifts = _shifts(abs(sparse).max(axis=1).toarray().ravel())
        sparse.data = np.ldexp(sparse.data, np.repeat(shifts, np.diff(sparse.indptr)))
        norms = np.sqrt(np.asarray(sparse.multiply(sparse).sum(axis=1)).ravel())
        # Zeros may be stored.
        sparse.data /= np.repeat(np.where(norms == 0, 1.0, norms), np.diff(sparse.indptr))
        return sparse.astype(np.float32)
    out = np.empty(X.shape, dtype=np.float32)
    for rows in row_chunks(X):
        values = X[rows].astype(np.float64)
        values = np.ldexp(values, _shifts(np.abs(values).max(axis=1, keepdims=True)))
        norms = np.sqrt((values**2).sum(axis=1, keepdims=True))
        out[rows] = values / np.where(norms == 0, 1.0, norms)
    return out


def _shifts(largest: NDArray[Any]) -> NDArray[Any]:
    """Exponents of the powers of two that bring these near 1: no square is out of range then."""
    shifts: NDArray[Any] = -np.frexp(largest)[1]
    return shifts


def scale_gamma(X: Matrix) -> float:
    """1 / (d var(X)) to three digits, scikit-learn's ``gamma="scale"``; 1 / d if X is constant.

    A kernel width to start from, for data that come without one; of few digits, which no order of
    summation changes.
    """
    size = X.shape[0] * X.shape[1]
    values: NDArray[Any] = cast(csr_matrix, X).data if issparse(X) else np.ravel(X)
    starts = range(0, len(values), 1 << 20)

    def total(power: int, shift: float) -> float:
        pieces = (values[start : start + (1 << 20)].astype(np.float64) for start in starts)
        return math.fsum(float(((piece - shift) ** power).sum()) for piece in pieces)

    mean = total(1, 0.0) / size
    squares = total(2, mean)
    variance = (squares + (size - len(values)) * mean**2) / size
    return float(f"{1.0 / (X.shape[1] * (variance if variance > 0 else 1.0)):.3g}")


def every(whole: Part, step: int, first: int) -> Content:
    """Rows `first`, `first` + `step`, ..., counted from 0, are the test part, the others the
    training part.
    """
    test = np.arange(len(whole.y)) % step == first
    return Content(Part(whole.X[~test], whole.y[~test]), Part(whole.X[test], whole.y[test]))


def last(whole: Part, origin: str, n_test: int) -> Content:
    """The last rows are the test part, the others the training part; nothing is copied.

    Raises `DataError` if there are no rows left for the training part of `origin`.
    """
    n_train = len(whole.y) - n_test
    if n_train < 1:
        raise DataError(
            f"{origin}: {len(whole.y)} rows, but the last {n_test} alone are the test part; "
            "the file is not complete"
        )
    return Content(
        Part(whole.X[:n_train], whole.y[:n_train]), Part(whole.X[n_train:], whole.y[n_train:])
    )


def _dense(X: Any) -> NDArray[Any]:
    return X.toarray() if issparse(X) else np.asarray(X)
