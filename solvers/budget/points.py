"""Training points in the units of compiled code, block by block, and the model's points back."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..kernels import RBF, Kernel
from ..numeric.matrices import Matrix
from .arithmetic import KernelCode, kernel_code
from .compiling import compiled
from .state import ModelState

# A block of points stays in the second-level cache beside the model.
_BLOCK_BYTES = 256 * 2**10
_LONGEST_BLOCK = 4096


class TrainingPoints:
    """The training points in the kernel's own units, without a copy of the data.

    For the Gaussian kernel they are centred and scaled so that the exponent is the squared
    distance: float32 then holds them as well as it can, whatever the units of the features.

    Attributes
    ----------
    code : KernelCode
    squares : ndarray of float64, shape (n,)
        k(x_i, x_i); of shape (0,) for the Gaussian kernel, where all are 1.
    """

    def __init__(self, kernel: Kernel, X: Matrix, dtype: str) -> None:
        self.code: KernelCode = kernel_code(kernel)
        self.X = X
        self.dtype = dtype
        d = X.shape[1]
        self._scale, self._shift = 1.0, np.zeros(d)
        self.squares = np.empty(0)
        if isinstance(kernel, RBF):
            self._scale = float(np.sqrt(kernel.gamma))
            low, high = _extremes(X)
            self._shift = low / 2 + high / 2
            _check_range(self._scale, low, high, dtype)
        else:
            # Checks the range, too.
            points = kernel.prepare(X, dtype)
            self.squares = kernel.diag(points)
        self.block_length = min(
            _LONGEST_BLOCK, max(1, _BLOCK_BYTES // (d * np.dtype(dtype).itemsize))
        )

    def gather(self, index: np.ndarray) -> np.ndarray:
        """These points, a fresh array of shape (len(index), n_features)."""
        points = np.empty((len(index), self.X.shape[1]), dtype=self.dtype)
        if sparse.issparse(self.X):
            X = self.X
            _gather_sparse(X.data, X.indices, X.indptr, index, self._shift, self._scale, points)
        else:
            _gather_dense(self.X, index, self._shift, self._scale, points)
        return points

    def points_of(self, model: ModelState) -> np.ndarray:
        """The model's points in the data's units and type, shape (size, n_features).

        Points that are training points come out exactly as they are in the data.
        """
        size = int(model.counts["n_points"])
        points = model.points[:, :size].T / self._scale + self._shift
        points = np.ascontiguousarray(points, dtype=self.X.dtype)
        own = np.flatnonzero(model.owner[:size] >= 0)
        rows = self.X[model.owner[own]]
        points[own] = rows.toarray() if sparse.issparse(rows) else rows
        return points


def _extremes(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest value of each feature, float64."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray()[0], high.toarray()[0]
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def _check_range(scale: float, low: np.ndarray, high: np.ndarray, dtype: str) -> None:
    """Raise ValueError if a squared distance could overflow."""
    with np.errstate(over="ignore"):
        largest = np.square(scale * (high - low)).sum()
    if largest <= np.finfo(dtype).max:
        return
    hint = " or use dtype='float64'" if dtype == "float32" else ""
    raise ValueError(f"the rbf kernel of these points overflows {dtype}: scale the features{hint}")


@compiled()
def _gather_dense(X, index, shift, scale, points):
    for p in range(len(index)):
        i = index[p]
        for f in range(len(shift)):
            points[p, f] = (X[i, f] - shift[f]) * scale


@compiled()
def _gather_sparse(data, indices, indptr, index, shift, scale, points):
    for p in range(len(index)):
        for f in range(len(shift)):
            points[p, f] = -shift[f] * scale
        for q in range(indptr[index[p]], indptr[index[p] + 1]):
            f = indices[q]
            points[p, f] = (data[q] - shift[f]) * scale
