"""Kernels: each turns two sets of prepared points into a block of entries.

Kernels know nothing of counting or caching; that is the oracle's work. Every Gaussian kernel is
stored with one number, ``gamma``, as ``exp(-gamma ||x - z||^2)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from marginbench.solvers.kernels.base import Kernel, Points, check_range, kept_dense, placed
from marginbench.solvers.kernels.gaussian import RBF
from marginbench.solvers.numeric.matrices import Matrix, products, squared_norms, stored, variance

__all__ = [
    "RBF",
    "CallableKernel",
    "Kernel",
    "Linear",
    "Points",
    "Polynomial",
    "Precomputed",
    "make_kernel",
]


class _ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        values = stored(X, dtype, dense=kept_dense(X, dtype, like))
        norms = squared_norms(values)
        # By Cauchy-Schwarz the norms bound every product.
        check_range(self, self._bound(norms.max(initial=0.0)), norms, dtype)
        return Points(values)

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        return placed(self._finish(products(A.values, B.values, out)), out)

    def diag(self, A: Points) -> np.ndarray:
        return self._finish(squared_norms(A.values))

    @abstractmethod
    def _finish(self, inner: np.ndarray) -> np.ndarray:
        """The kernel of these inner products, in place."""

    @abstractmethod
    def _bound(self, product: float) -> float:
        """The largest entry, and the largest number on the way to it, for products up to this."""


@dataclass(frozen=True)
class Linear(_ProductKernel):
    """k(x, z) = <x, z>."""

    name = "linear"

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        return inner

    def _bound(self, product: float) -> float:
        return product


@dataclass(frozen=True)
class Polynomial(_ProductKernel):
    """k(x, z) = (gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : int >= 1
    gamma : float > 0
    coef0 : float
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0
    name = "poly"

    def _finish(self, inner: np.ndarray) -> np.ndarray:
        inner *= self.gamma
        inner += self.coef0
        return np.power(inner, self.degree, out=inner)

    def _bound(self, product: float) -> float:
        base = max(self.gamma * product + abs(self.coef0), 1.0)
        with np.errstate(over="ignore"):
            return float(np.power(np.float64(base), self.degree))


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Entries given by the user: X holds k(x_i, x_j) for the training points j."""

    name = "precomputed"
    evaluates = False

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        values = stored(X, dtype, dense=True)
        if not np.isfinite(values).all():
            raise ValueError(f"the precomputed kernel has entries that overflow {np.dtype(dtype)}")
        if like is not None:
            return Points(values)
        if values.shape[0] != values.shape[1]:
            raise ValueError(
                f"a precomputed kernel matrix must be square, got shape {values.shape}"
            )
        return Points(values, columns=np.arange(len(values)))

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        assert B.columns is not None
        return placed(np.ascontiguousarray(A.values[:, B.columns]), out)

    def diag(self, A: Points) -> np.ndarray:
        assert A.columns is not None
        return A.values[np.arange(len(A)), A.columns].astype(np.float64)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function as a black box.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` returns the block k(a, b) of shape (len(A), len(B)) for two matrices of
        points, as the points were given to ``fit``.
    """

    function: Callable[[Any, Any], Any] = field(repr=False)
    name = "callable"

    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        # norms only carries the entries' type here: the function sees the user's own matrix.
        return Points(X, norms=np.empty(X.shape[0], dtype=dtype))

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        assert A.norms is not None
        entries = self.function(A.values, B.values)
        if sparse.issparse(entries):
            entries = entries.toarray()
        # A copy: the function may hand out the same array again.
        entries = np.array(entries, dtype=A.norms.dtype, order="C")
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


_NAMES = ("rbf", "linear", "poly", "precomputed")


def make_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
    *,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    X: Matrix | None = None,
) -> Kernel:
    """Build a kernel from scikit-learn's parameters.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable
    gamma : float > 0, "scale" or "auto"
        "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.
    degree : int >= 1
    coef0 : float
    X : ndarray or csr_matrix, shape (n_points, n_features), optional
        The training points; needed by "scale" and "auto".

    Raises
    ------
    ValueError
        For an unknown name or a parameter out of range.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        if callable(kernel):
            return CallableKernel(kernel)
        raise ValueError(f"kernel must be a name, a Kernel or a callable, got {kernel!r}")
    if kernel == "linear":
        return Linear()
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "rbf":
        return RBF(_resolve_gamma(gamma, X))
    if kernel == "poly":
        if not (isinstance(degree, int | np.integer) and degree >= 1):
            raise ValueError(f"degree must be a whole number >= 1, got {degree!r}")
        if not (_is_number(coef0) and np.isfinite(coef0)):
            raise ValueError(f"coef0 must be a finite number, got {coef0!r}")
        return Polynomial(int(degree), _resolve_gamma(gamma, X), float(coef0))
    near = get_close_matches(kernel, _NAMES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_NAMES)}"
    raise ValueError(f"unknown kernel {kernel!r}; {hint}")


def _resolve_gamma(gamma: float | str, X: Matrix | None) -> float:
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be a number > 0, 'scale' or 'auto', got {gamma!r}")
        if X is None:
            raise ValueError(f"gamma={gamma!r} needs the training points")
        if gamma == "auto":
            return 1.0 / X.shape[1]
        spread = X.shape[1] * variance(X)
        if not np.isfinite(spread):
            raise ValueError("gamma='scale' needs the variance of X, which overflows: scale X")
        return 1.0 / spread if spread > 0 else 1.0
    if not (_is_number(gamma) and np.isfinite(gamma) and gamma > 0):
        raise ValueError(f"gamma must be a number > 0, 'scale' or 'auto', got {gamma!r}")
    return float(gamma)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
