"""The Gaussian kernel."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from ..numeric.matrices import (
    Matrix,
    as_dense,
    for_products,
    products,
    scratch,
    squared_norms,
    stored,
)
from ..registration import register_kernel
from .base import (
    Frame,
    Kernel,
    Points,
    check_range,
    in_row_parts,
    kept_dense,
    placed,
    products_are_steady,
    rounding_unit,
    row_blocks,
)
from .parameters import parameter, width

# Sparse points are made dense in chunks of so many numbers.
_CHUNK = 2**16
# An error of entries that is worth a warning.
_UNRELIABLE = 0.05


@register_kernel("rbf")
@dataclass(frozen=True)
class RBF(Kernel):
    """The Gaussian kernel k(x, z) = exp(-gamma ||x - z||^2).

    Parameters
    ----------
    gamma : float > 0
    """

    words = "RBF kernel"
    unit_diagonal = True
    by_products = True

    gamma: float = parameter(width, default=1.0)

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        # Scaled points need no factor per entry, and keep extreme units of length in range.
        scale = np.sqrt(2 * self.gamma)
        if kept_dense(X, dtype, like):
            frame = _frame(X) if like is None else like.frame
            assert frame is not None
            values, norms = _centred(X, frame, scale, np.dtype(dtype))
        else:
            frame = None
            with np.errstate(over="ignore"):
                values = stored(X.astype(np.float64) * scale, dtype, dense=False)
            norms = squared_norms(values) / 2
        # The exponent is a sum of terms up to four times the largest norm.
        check_range(self, 4 * _largest(norms), norms, dtype)
        if like is None and _noise(_largest(norms), np.dtype(dtype).name) > _UNRELIABLE:
            _warn_of_rounding(float(np.median(norms)), np.dtype(dtype).name)
        return Points(values, norms.astype(dtype), frame)

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        from .sums import exponentials

        entries = products(A.values, B.values, out)
        in_row_parts(exponentials, len(A), entries, A.norms, B.norms)
        return placed(entries, out)

    def weighted_sums(self, A: Points, B: Points, coef: np.ndarray, sums: np.ndarray) -> None:
        # With entries summed as they are computed, predictions take .6 to .9 of the time.
        from .sums import exponential_sums

        for part, own, room in row_blocks(A, B, sums):
            inner = products(part.values, B.values, room)
            in_row_parts(exponential_sums, own.shape[1], inner, part.norms, B.norms, coef, own)

    def diag(self, A: Points) -> np.ndarray:
        return np.ones(len(A))

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        assert points.norms is not None
        return _noise(_largest(points.norms), dtype)

    def same_in_every_block(self, points: Points, dtype: Any) -> bool:
        return products_are_steady(points, dtype)


def _noise(size: float, dtype: str) -> float:
    """The error of an entry between points of this ``gamma ||x||^2``."""
    # The exponent is a sum of terms up to four times that; exp passes its error on.
    return rounding_unit(dtype) * (1.0 + 4.0 * size)


def _warn_of_rounding(size: float, dtype: str) -> None:
    """Say so where entries of half the points, of this ``gamma ||x||^2``, are mostly rounding."""
    noise = _noise(size, dtype)
    if noise > _UNRELIABLE:
        warnings.warn(
            f"most points lie so far from their mean for this gamma (gamma ||x||^2 = {size:.2g}) "
            f"that {dtype} entries between near ones may be off by {min(noise, 1.0):.1g}; scale "
            "the features" + (", or set dtype='float64'" if dtype == "float32" else ""),
            UserWarning,
            stacklevel=2,
        )


def _largest(norms: np.ndarray) -> float:
    return float(norms.max(initial=0.0))


def _frame(X: Matrix) -> Frame:
    if X.shape[0] == 0:
        return Frame(np.zeros(X.shape[1]), np.arange(X.shape[1]))
    X = as_dense(X)
    with np.errstate(over="ignore", invalid="ignore"):
        shift = X.mean(axis=0, dtype=np.float64)
    return Frame(shift, np.flatnonzero(X.min(axis=0) != X.max(axis=0)))


def _centred(
    X: Matrix, frame: Frame, scale: float, dtype: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Shifted and scaled points, and half their squared norms.

    The kernel does not change under a shift of all points. Centred points have the smallest norms,
    hence the least cancellation in ||x||^2 + ||z||^2 - 2 <x, z>. A feature that is the same in
    every training point counts in the norm of another point, but in no product.
    """
    from .sums import centre

    values = scratch((X.shape[0], len(frame.features)), dtype)
    norms = np.empty(X.shape[0])
    step = max(1, (_CHUNK if scipy.sparse.issparse(X) else X.size) // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        centre(as_dense(X[rows]), frame.shift, scale, frame.features, values[rows], norms[rows])
    return for_products(values), norms
