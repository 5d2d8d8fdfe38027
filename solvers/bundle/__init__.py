"""Bundle methods: regularised risks minimised by planes below them."""

from solvers.bundle.estimators import BundleClassifier, BundleRegressor
from solvers.bundle.loop import BundleResult, minimize_risk
from solvers.bundle.losses import (
    Hinge,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    SquaredHinge,
)
from solvers.bundle.rankings import F1, PrecisionAtK, ROCArea
from solvers.bundle.regression import EpsilonInsensitive, LeastSquares, Quantile
from solvers.bundle.regularizers import L1, L2, Entropy, Legendre, Regularizer, SimplexEntropy
from solvers.bundle.trace import BundleTrace

__all__ = [
    "F1",
    "L1",
    "L2",
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
