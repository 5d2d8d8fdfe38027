"""A Python function as a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from ..numeric.matrices import Matrix
from .base import Kernel, Points, placed


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function as a black box.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` returns the block k(a, b) of shape (len(A), len(B)) for two matrices of
        points, as the points were given to ``fit``.
    """

    name = "callable"
    words = "custom kernel"

    function: Callable[[Any, Any], Any] = field(repr=False)

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        # The function sees the user's own matrix.
        return Points(X, dtype=np.dtype(dtype))

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        entries = self.function(A.values, B.values)
        if scipy.sparse.issparse(entries):
            entries = entries.toarray()
        # A copy: the function may hand out the same array again.
        entries = np.array(entries, dtype=A.dtype, order="C")
        if entries.shape != (len(A), len(B)):
            raise ValueError(
                f"the kernel function returned shape {entries.shape} for matrices of {len(A)} and "
                f"{len(B)} points; expected {(len(A), len(B))}"
            )
        if not np.isfinite(entries).all():
            raise ValueError("the kernel function returned a value that is not finite")
        return placed(entries, out)

    def diag(self, A: Points) -> np.ndarray:
        one = [self.block(A.take(slice(i, i + 1)), A.take(slice(i, i + 1))) for i in range(len(A))]
        return np.array(one, dtype=np.float64).reshape(len(A))

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "function": getattr(self.function, "__qualname__", "?")}
