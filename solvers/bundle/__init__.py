"""Bundle methods: regularised risks minimised by planes below them."""

from marginbench.solvers.bundle.estimators import BundleClassifier, BundleRegressor
from marginbench.solvers.bundle.loop import BundleResult, minimize_risk
from marginbench.solvers.bundle.losses import (
    Hinge,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    SquaredHinge,
)
from marginbench.solvers.bundle.ocas import OCAS
from marginbench.solvers.bundle.rankings import F1, PrecisionAtK, ROCArea
from marginbench.solvers.bundle.regression import EpsilonInsensitive, LeastSquares, Quantile
from marginbench.solvers.bundle.regularizers import (
    L1,
    L2,
    Entropy,
    Legendre,
    Regularizer,
    SimplexEntropy,
)
from marginbench.solvers.bundle.trace import BundleTrace

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
