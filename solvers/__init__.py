"""Reference solvers, kernels, the counting oracle, models and objectives."""

from solvers.base import Solver, WeightedSolver
from solvers.batch_perceptron import BatchPerceptron
from solvers.budget import BSCA, BSGD
from solvers.bundle import (
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
from solvers.cuts import (
    CuttingPlane,
    LinearChain,
    MultiClass,
    StructuredExpansion,
    StructuredProblem,
    StructuredSVM,
    TwoClasses,
    Violations,
)
from solvers.declaration import hyperparameters
from solvers.feasibility import (
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
from solvers.fourier import FourierExpansion
from solvers.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from solvers.liblinear import LIBLINEAR
from solvers.libsvm import LIBSVM
from solvers.linear_pegasos import LinearPegasos
from solvers.linear_sdca import LinearSDCA
from solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from solvers.monitor import Monitor
from solvers.nystrom import Nystrom
from solvers.oracle import Counters, KernelOracle
from solvers.parameters import (
    CachedKernelParameters,
    KernelParameters,
    SeedParameters,
    SoftMarginParameters,
    SolverParameters,
)
from solvers.pegasos import Pegasos
from solvers.perceptron import Perceptron
from solvers.problem import Problem, Solution
from solvers.random_features import RandomFourierFeatures, RandomFourierMap
from solvers.registry import registry
from solvers.sbp import SBP
from solvers.sdca import SDCA
from solvers.sgd import SGD
from solvers.simba import SIMBA
from solvers.smo import SMO
from solvers.voting import VotedExpansion

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
    "CachedKernelParameters",
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
    "KernelParameters",
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
    "SeedParameters",
    "SimplexEntropy",
    "SoftMarginParameters",
    "Solution",
    "Solver",
    "SolverParameters",
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
    "hyperparameters",
    "minimize_risk",
    "registry",
]
