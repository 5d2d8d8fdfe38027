"""Random Fourier features of the Gaussian kernel, and the linear predictor on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from ..numeric.matrices import Matrix, matmul
from .expansions import Model

# Blocks of float64 features are at most this large while scores are computed.
_BLOCK_BYTES = 32 * 2**20


def draw_frequencies(
    rng: np.random.Generator, gamma: float, n_pairs: int, n_features: int
) -> np.ndarray:
    """Frequencies of ``exp(-gamma ||x - z||^2)``: normal, each coordinate of variance 2 gamma."""
    return np.sqrt(2 * gamma) * rng.standard_normal((n_pairs, n_features))


def fourier_features(X: Matrix, frequencies: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """F(x) = (cos <v_1, x>, ..., cos <v_k, x>, sin <v_1, x>, ..., sin <v_k, x>) / sqrt(k)."""
    k = len(frequencies)
    features = np.empty((X.shape[0], 2 * k), dtype=dtype)
    step = max(1, _BLOCK_BYTES // (8 * k))
    for start in range(0, len(features), step):
        rows = slice(start, start + step)
        if sparse.issparse(X):
            phases = X[rows].astype(np.float64) @ frequencies.T
        else:
            phases = matmul(X[rows].astype(np.float64, copy=False), frequencies.T)
        features[rows, :k] = np.cos(phases)
        features[rows, k:] = np.sin(phases)
    features /= np.sqrt(k)
    return features


@dataclass(frozen=True)
class FourierExpansion(Model):
    """f(x) = <weights, F(x)> + intercept with the Fourier features F of some frequencies.

    Attributes
    ----------
    frequencies : ndarray of float64, shape (k, n_features)
        See :func:`fourier_features`.
    weights : ndarray of float64, shape (2 k,)
    intercept : float
    """

    frequencies: np.ndarray
    weights: np.ndarray
    intercept: float = 0.0
    kind: ClassVar[str] = "Fourier expansion"

    @property
    def n_support(self) -> int:
        """0: the model keeps no points. A prediction costs k inner products."""
        return 0

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f(z) for each row of Z, float64, shape (len(Z),)."""
        return _feature_scores(Z, self.frequencies, self.weights) + self.intercept

    @classmethod
    def scores_together(cls, parts: Sequence[Self], Z: Matrix) -> np.ndarray:
        """The scores of several predictors; of the same features, computed once if they are."""
        frequencies = parts[0].frequencies
        if not all(np.array_equal(part.frequencies, frequencies) for part in parts):
            return super().scores_together(parts, Z)
        weights = np.stack([part.weights for part in parts], axis=1)
        return _feature_scores(Z, frequencies, weights) + [part.intercept for part in parts]

    def squared_norm(self) -> float:
        """||w||^2, in the space of the features."""
        return float(matmul(self.weights, self.weights))

    def attributes(self) -> dict[str, Any]:
        """``frequencies_``, ``coef_`` (of the features) and ``intercept_``."""
        return {
            "frequencies_": self.frequencies,
            "coef_": self.weights[None, :],
            "intercept_": np.array([self.intercept]),
        }


def _feature_scores(Z: Matrix, frequencies: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """F(z) times the weights, shape (2 k,) or (2 k, n_outputs), for each row of Z."""
    scores = np.empty((Z.shape[0], *weights.shape[1:]))
    step = max(1, _BLOCK_BYTES // (8 * len(weights)))
    for start in range(0, len(scores), step):
        rows = slice(start, start + step)
        scores[rows] = matmul(fourier_features(Z[rows], frequencies), weights)
    return scores
