"""Bundle methods: regularised risks minimised by planes below them."""

from .bmrm import BundleResult, BundleTrace
from .estimators import OCAS, BundleClassifier, BundleRegressor, minimize_risk
from .losses import (
    F1,
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    PrecisionAtK,
    Quantile,
    ROCArea,
    SquaredHinge,
)
from .regularizers import L1, L2, Entropy, Legendre, Regularizer, SimplexEntropy

__all__ = [
    "F1",
    "L1",
    "L2",
    "OCAS",
    "BundleClassifier",
    "BundleRegressor",
    "BundleResult",
    "BundleTrace",
    "Entropy",
    "EpsilonInsensitive",
    "Hinge",
    "LeastSquares",
    "Legendre",
    "Logistic",
    "Loss",
    "Multiclass",
    "Novelty",
    "PointwiseLoss",
    "PrecisionAtK",
    "Quantile",
    "ROCArea",
    "Regularizer",
    "SimplexEntropy",
    "SquaredHinge",
    "minimize_risk",
]
