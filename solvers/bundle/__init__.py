"""Bundle methods: regularised risks minimised by planes below them."""

from solvers.bundle.losses import (
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    Quantile,
    SquaredHinge,
)
from solvers.bundle.rankings import F1, PrecisionAtK, ROCArea

__all__ = [
    "F1",
    "EpsilonInsensitive",
    "Hinge",
    "LeastSquares",
    "Logistic",
    "Loss",
    "Multiclass",
    "Novelty",
    "PointwiseLoss",
    "PrecisionAtK",
    "Quantile",
    "ROCArea",
    "SquaredHinge",
]
