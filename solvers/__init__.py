"""Reference solvers, kernels, the counting oracle, models and objectives."""

from marginbench.solvers.approximate.nystrom import Nystrom
from marginbench.solvers.approximate.random_features import RandomFourierFeatures, RandomFourierMap
from marginbench.solvers.budget import BSCA, BSGD
from marginbench.solvers.bundle import (
    F1,
    L1,
    L2,
    BundleClassifier,
    BundleRegressor,
    BundleResult,
    BundleTrace,
    Entropy,
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Legendre,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    PointwiseLoss,
    PrecisionAtK,
    Quantile,
    Regularizer,
    ROCArea,
    SimplexEntropy,
    SquaredHinge,
    minimize_risk,
)
from marginbench.solvers.cuts import (
    CuttingPlane,
    LinearChain,
    MultiClass,
    StructuredExpansion,
    StructuredProblem,
    StructuredSVM,
    TwoClasses,
    Violations,
)
from marginbench.solvers.feasibility import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPCFP,
    MPKFP,
    MPLFP,
    PCT,
    SNKP,
    SPCT,
    SPVN,
    VN,
    FeasibilityCounters,
    FeasibilityProblem,
    FeasibilityResult,
    OneVsRest,
    Orthant,
    PositiveSemidefinite,
    SecondOrder,
    Verdict,
    check_certificate,
)
from marginbench.solvers.interface.base import Solver, WeightedSolver
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.interface.problem import Problem, Solution
from marginbench.solvers.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from marginbench.solvers.kernels.oracle import KernelOracle
from marginbench.solvers.linear.pegasos import LinearPegasos
from marginbench.solvers.linear.sdca import LinearSDCA
from marginbench.solvers.linear.simba import SIMBA
from marginbench.solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from marginbench.solvers.models.fourier import FourierExpansion
from marginbench.solvers.models.voting import VotedExpansion
from marginbench.solvers.numeric.counters import Counters
from marginbench.solvers.peers.liblinear import LIBLINEAR
from marginbench.solvers.peers.libsvm import LIBSVM
from marginbench.solvers.registry import registry
from marginbench.solvers.sbp.sbp import SBP
from marginbench.solvers.smo.smo import SMO
from marginbench.solvers.stochastic.batch_perceptron import BatchPerceptron
from marginbench.solvers.stochastic.pegasos import Pegasos
from marginbench.solvers.stochastic.perceptron import Perceptron
from marginbench.solvers.stochastic.sdca import SDCA
from marginbench.solvers.stochastic.sgd import SGD

__all__ = [
    "BSCA",
    "BSGD",
    "F1",
    "ISNKPVN",
    "ISPVN",
    "KPCT",
    "KVN",
    "L1",
    "L2",
    "LIBLINEAR",
    "LIBSVM",
    "MPCFP",
    "MPKFP",
    "MPLFP",
    "PCT",
    "RBF",
    "SBP",
    "SDCA",
    "SGD",
    "SIMBA",
    "SMO",
    "SNKP",
    "SPCT",
    "SPVN",
    "VN",
    "BatchPerceptron",
    "BudgetExpansion",
    "BundleClassifier",
    "BundleRegressor",
    "BundleResult",
    "BundleTrace",
    "CallableKernel",
    "Counters",
    "CuttingPlane",
    "Entropy",
    "EpsilonInsensitive",
    "FeasibilityCounters",
    "FeasibilityProblem",
    "FeasibilityResult",
    "FourierExpansion",
    "Hinge",
    "Kernel",
    "KernelExpansion",
    "KernelOracle",
    "LeastSquares",
    "Legendre",
    "Linear",
    "LinearChain",
    "LinearModel",
    "LinearPegasos",
    "LinearSDCA",
    "Logistic",
    "Loss",
    "Model",
    "Monitor",
    "MultiClass",
    "Multiclass",
    "Novelty",
    "Nystrom",
    "OneVsRest",
    "Orthant",
    "Pegasos",
    "Perceptron",
    "PointwiseLoss",
    "Polynomial",
    "PositiveSemidefinite",
    "PrecisionAtK",
    "Precomputed",
    "Problem",
    "Quantile",
    "ROCArea",
    "RandomFourierFeatures",
    "RandomFourierMap",
    "Regularizer",
    "SecondOrder",
    "SimplexEntropy",
    "Solution",
    "Solver",
    "SquaredHinge",
    "StructuredExpansion",
    "StructuredProblem",
    "StructuredSVM",
    "TwoClasses",
    "Verdict",
    "Violations",
    "VotedExpansion",
    "WeightedSolver",
    "check_certificate",
    "minimize_risk",
    "registry",
]
