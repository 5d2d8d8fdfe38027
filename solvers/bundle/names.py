"""Losses and regularisers by name."""

from __future__ import annotations

from typing import Any

from .losses import (
    Hinge,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    SquaredHinge,
)
from .rankings import F1, PrecisionAtK, ROCArea
from .regression import EpsilonInsensitive, LeastSquares, Quantile
from .regularizers import L1, L2, Entropy, Regularizer, SimplexEntropy


def make_loss(loss: Any) -> Loss:
    """The loss of this name, with its default parameters; or the loss itself."""
    known: dict[str, type[Loss]] = {
        "hinge": Hinge,
        "squared_hinge": SquaredHinge,
        "logistic": Logistic,
        "least_squares": LeastSquares,
        "epsilon_insensitive": EpsilonInsensitive,
        "quantile": Quantile,
        "novelty": Novelty,
        "multiclass": Multiclass,
        "roc_area": ROCArea,
        "precision_at_k": PrecisionAtK,
        "f1": F1,
    }
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in known:
        raise ValueError(f"loss must be a Loss or one of {', '.join(known)}, got {loss!r}")
    return known[loss]()


def make_regularizer(regularizer: Any) -> Regularizer:
    """The regulariser of this name; or the regulariser itself."""
    known: dict[str, type[Regularizer]] = {
        "l2": L2,
        "entropic": Entropy,
        "simplex_entropy": SimplexEntropy,
        "l1": L1,
    }
    if isinstance(regularizer, Regularizer):
        return regularizer
    if not isinstance(regularizer, str) or regularizer not in known:
        raise ValueError(
            f"regularizer must be a Regularizer or one of {', '.join(known)}, got {regularizer!r}"
        )
    return known[regularizer]()
