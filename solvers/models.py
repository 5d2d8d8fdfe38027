"""What a solver returns: a predictor that knows its size and can be stored without pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from solvers.kernels import (
    RBF,
    Kernel,
    Linear,
    Points,
    Polynomial,
    Precomputed,
    make_kernel,
)
from solvers.matrices import Matrix, matmul

# Blocks of predictions are at most this large, so that memory does not grow with the test set.
_BLOCK_BYTES = 32 * 2**20


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = sum_j coef_j k(x_j, x) + intercept over training points x_j.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray or csr_matrix, shape (n_support, n_features)
        The support vectors; of shape (0, 0) for a precomputed kernel.
    coef : ndarray of float64, shape (n_support,)
        Signed coefficients, none of them zero.
    intercept : float
    support : ndarray of int64, shape (n_support,)
        Positions of the support vectors in the training set.
    n_train : int
        Number of training points.
    dtype : str
        Type of the kernel entries, "float32" or "float64"; sums are float64.
    """

    kernel: Kernel
    points: Matrix
    coef: np.ndarray
    intercept: float
    support: np.ndarray
    n_train: int
    dtype: str = "float32"

    @property
    def n_support(self) -> int:
        """Number of support vectors, the kernel evaluations that one prediction costs."""
        return len(self.coef)

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z, float64, shape (len(Z),).

        Parameters
        ----------
        Z : ndarray or csr_matrix, shape (n_points, n_features)
            For a precomputed kernel k(z, x_i), shape (n_points, n_train).
        """
        scores = np.full(Z.shape[0], self.intercept, dtype=np.float64)
        if self.n_support == 0:
            return scores
        points = self._prepared()
        step = max(1, _BLOCK_BYTES // (self.n_support * np.dtype(self.dtype).itemsize))
        for start in range(0, Z.shape[0], step):
            part = self.kernel.prepare(Z[start : start + step], self.dtype, like=points)
            block = self.kernel.block(part, points)
            scores[start : start + step] += _float64_product(block, self.coef)
        return scores

    def squared_norm(self) -> float:
        """||w||^2 = sum_ij coef_i coef_j k(x_i, x_j); not for a precomputed kernel.

        Raises
        ------
        ValueError
            For a precomputed kernel, whose entries the model does not hold.
        """
        if isinstance(self.kernel, Precomputed):
            raise ValueError("a model of a precomputed kernel does not hold the kernel's entries")
        bias_free = self.decision_function(self.points) - self.intercept
        return float(matmul(self.coef, bias_free))

    def save(self, path: str | Path) -> None:
        """Write the model as an .npz file of plain arrays.

        Raises
        ------
        ValueError
            For a callable kernel or one of the user's own, which is code and cannot be stored.
        """
        if type(self.kernel) not in (RBF, Linear, Polynomial, Precomputed):
            raise ValueError(
                "a model with a callable kernel or one of your own cannot be saved: its code "
                "cannot be stored"
            )
        description = {
            "kernel": self.kernel.describe(),
            "intercept": self.intercept,
            "n_train": self.n_train,
            "dtype": self.dtype,
        }
        points: dict[str, Any]
        if sparse.issparse(self.points):
            points = {
                "data": self.points.data,
                "indices": self.points.indices,
                "indptr": self.points.indptr,
                "shape": np.array(self.points.shape),
            }
        else:
            points = {"points": self.points}
        with open(path, "wb") as sink:
            np.savez(
                sink,
                description=np.array(json.dumps(description)),
                coef=self.coef,
                support=self.support,
                **points,
            )

    @classmethod
    def load(cls, path: str | Path) -> KernelExpansion:
        """Read a model that :meth:`save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            description = json.loads(str(stored["description"]))
            points = (
                stored["points"]
                if "points" in stored
                else sparse.csr_matrix(
                    (stored["data"], stored["indices"], stored["indptr"]), shape=stored["shape"]
                )
            )
            parameters = dict(description["kernel"])
            return cls(
                kernel=make_kernel(parameters.pop("name"), **parameters),
                points=points,
                coef=stored["coef"],
                intercept=float(description["intercept"]),
                support=stored["support"],
                n_train=int(description["n_train"]),
                dtype=str(description["dtype"]),
            )

    def _prepared(self) -> Points:
        if isinstance(self.kernel, Precomputed):
            # Only the columns matter: the entries come with the points to predict.
            return Points(np.empty((self.n_support, 0), dtype=self.dtype), columns=self.support)
        return self.kernel.prepare(self.points, self.dtype)


def _float64_product(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """block @ coef with float64 sums, whatever the block's type, without a full float64 copy."""
    if block.dtype == np.float64:
        return matmul(block, coef)
    scores = np.zeros(len(block))
    for start in range(0, block.shape[1], 1024):
        columns = slice(start, start + 1024)
        scores += matmul(block[:, columns].astype(np.float64), coef[columns])
    return scores
