"""The predictor of a structured problem: kernel expansions that share their support vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import Kernel
from ..models import KernelExpansion, Model
from ..numeric.matrices import Matrix, matmul

# Blocks of float64 entries are at most this large while scores are computed.
_BLOCK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class StructuredExpansion(Model):
    """``f_s(x) = sum_j coef_js k(x_j, x)`` in each channel s, and weights beside the kernel.

    Attributes
    ----------
    kernel : Kernel
    points : ndarray or csr_matrix, shape (n_support, n_features)
        The support vectors; of shape (0, 0) for a precomputed kernel.
    coef : ndarray of float64, shape (n_support, n_channels)
        No row is zero.
    weights : ndarray of float64, shape (n_explicit,)
        Weights outside of the kernel's space.
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
    weights: np.ndarray
    support: np.ndarray
    n_train: int
    dtype: str = "float32"
    kind: ClassVar[str] = "structured expansion"
    intercept: ClassVar[float] = 0.0  # type: ignore[misc]

    @property
    def n_support(self) -> int:
        """Number of support vectors, the kernel evaluations that one point's scores cost."""
        return len(self.coef)

    def channel(self, s: int) -> KernelExpansion:
        """f_s alone; its coefficients may be zero."""
        return KernelExpansion(
            kernel=self.kernel,
            points=self.points,
            coef=self.coef[:, s],
            intercept=0.0,
            support=self.support,
            n_train=self.n_train,
            dtype=self.dtype,
        )

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f_s(z) for each row of Z and each channel, float64, shape (len(Z), n_channels).

        Parameters
        ----------
        Z : ndarray or csr_matrix, shape (n_points, n_features)
            For a precomputed kernel k(z, x_i), shape (n_points, n_train).
        """
        scores = np.zeros((Z.shape[0], self.coef.shape[1]))
        if self.n_support == 0:
            return scores
        support = self.channel(0).prepared()
        step = max(1, _BLOCK_BYTES // (8 * self.n_support))
        for start in range(0, len(scores), step):
            rows = slice(start, start + step)
            part = self.kernel.prepare(Z[rows], self.dtype, like=support)
            scores[rows] = matmul(self.kernel.block(part, support).astype(np.float64), self.coef)
        return scores

    def squared_norm(self) -> float:
        """||w||^2, the plain weights included; not for a precomputed kernel.

        Raises
        ------
        ValueError
            For a precomputed kernel, whose entries the model does not hold.
        """
        of_weights = float((self.weights**2).sum())
        norms = [self.channel(s).squared_norm() for s in range(self.coef.shape[1])]
        return of_weights + sum(norms)

    def attributes(self) -> dict[str, Any]:
        """``dual_coef_`` (a row per channel), ``support_`` and so on, and ``explicit_coef_``."""
        return {
            "dual_coef_": self.coef.T,
            "support_": self.support,
            "support_vectors_": self.points,
            "explicit_coef_": self.weights,
        }
