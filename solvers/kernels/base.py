"""The interface of a kernel, and points as kernels want them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from marginbench.solvers.numeric.matrices import Matrix, better_dense


@dataclass(frozen=True)
class Points:
    """Points as one kernel wants them.

    Attributes
    ----------
    values : ndarray or csr_matrix, shape (n_points, width)
        The features; how many, and what stands besides, is the kernel's affair.
    norms : ndarray, shape (n_points,), or None
        ``gamma ||x||^2`` for the Gaussian kernel, whose values are scaled by ``sqrt(2 gamma)``.
    frame : Frame or None
        How dense points of the Gaussian kernel were shifted and which features were kept.
    columns : ndarray of int, shape (n_points,), or None
        For a precomputed kernel, the columns of these points in the Gram matrix.
    """

    values: Matrix
    norms: np.ndarray | None = None
    frame: Frame | None = None
    columns: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def take(self, index: np.ndarray | slice) -> Points:
        """The points at these positions."""
        return Points(
            self.values[index],
            None if self.norms is None else self.norms[index],
            self.frame,
            None if self.columns is None else self.columns[index],
        )


@dataclass(frozen=True)
class Frame:
    """Where the training points put the origin, and what tells them apart.

    Attributes
    ----------
    shift : ndarray of float64, shape (n_features,)
        The mean of the training points.
    features : ndarray of int, shape (n_kept,)
        The features that are not the same in every training point.
    """

    shift: np.ndarray
    features: np.ndarray


class Kernel(ABC):
    """A kernel function. Frozen: parameters are set once."""

    name = ""
    #: k(x, x) = 1 for every x, so the diagonal needs no evaluation.
    unit_diagonal = False
    #: Entries are computed on demand; ``False`` if they are given (a precomputed Gram matrix).
    evaluates = True

    @abstractmethod
    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        """Bring points into the form of :meth:`block`.

        Parameters
        ----------
        X : ndarray or csr_matrix, shape (n_points, n_features)
        dtype : data-type
            float32 or float64, the type of the entries.
        like : Points, optional
            The training points against which these will be evaluated.
        """

    @abstractmethod
    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        """Entries k(a, b), C-contiguous, shape (len(A), len(B)).

        Parameters
        ----------
        A, B : Points
        out : ndarray, shape (len(A), len(B)), optional
            Where to put them; a fresh array by default.
        """

    @abstractmethod
    def diag(self, A: Points) -> np.ndarray:
        """Entries k(a, a), float64, shape (len(A),)."""

    def describe(self) -> dict[str, Any]:
        """Name and parameters, as plain JSON values."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


def placed(entries: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The entries in ``out``, if they are to be there and are not yet."""
    if out is None or entries is out:
        return entries
    out[...] = entries
    return out


def kept_dense(X: Matrix, dtype: Any, like: Points | None) -> bool:
    """Whether points are kept dense: as those they meet, else as is better for them."""
    return better_dense(X, dtype) if like is None else not sparse.issparse(like.values)


def check_range(kernel: Kernel, bound: float, norms: np.ndarray, dtype: Any) -> None:
    """Raise ValueError if entries could be infinite or NaN; no entry needs a check after this."""
    dtype = np.dtype(dtype)
    if np.isfinite(norms).all() and bound <= np.finfo(dtype).max:
        return
    hint = " or use dtype='float64'" if dtype == np.float32 else ""
    raise ValueError(
        f"the {kernel.name} kernel of these points overflows {dtype.name}: scale the features{hint}"
    )
