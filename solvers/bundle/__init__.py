"""Bundle methods: regularised risks minimised by planes below them."""

from .estimators import BundleClassifier, BundleRegressor
from .loop import BundleResult, minimize_risk
from .losses import (
    Hinge,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    SquaredHinge,
)
from .ocas import OCAS
from .rankings import F1, PrecisionAtK, ROCArea
from .regression import EpsilonInsensitive, LeastSquares, Quantile
from .regularizers import (
    L1,
    L2,
    Entropy,
    Legendre,
    Regularizer,
    SimplexEntropy,
)
from .trace import BundleTrace

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
