"""A kernel width to start from, for data that come without one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from ..content import Matrix

#: Entries that are summed together.
_CHUNK_ENTRIES = 1 << 20


def scale_gamma(X: Matrix) -> float:
    """1 / (d var(X)) to three digits, scikit-learn's ``gamma="scale"``; 1 / d if X is constant.

    Parameters
    ----------
    X : ndarray or csr_matrix, shape (n, d)

    Returns
    -------
    float
        Of few digits, which no order of summation changes.
    """
    size = X.shape[0] * X.shape[1]
    values: NDArray[Any] = cast(csr_matrix, X).data if issparse(X) else np.ravel(X)
    mean = math.fsum(float(piece.sum()) for piece in _pieces(values)) / size
    squares = math.fsum(float(((piece - mean) ** 2).sum()) for piece in _pieces(values))
    variance = (squares + (size - len(values)) * mean**2) / size
    gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0 / X.shape[1]
    return float(f"{gamma:.3g}")


def _pieces(values: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    for start in range(0, len(values), _CHUNK_ENTRIES):
        yield values[start : start + _CHUNK_ENTRIES].astype(np.float64)
