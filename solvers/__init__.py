"""Reference solvers, kernels, the counting oracle, models and objectives."""

from solvers.base import Solver, WeightedSolver
from solvers.batch_perceptron import BatchPerceptron
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
from solvers.libsvm import LIBSVM
from solvers.linear_pegasos import LinearPegasos
from solvers.linear_sdca import LinearSDCA
from solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from solvers.monitor import Monitor
from solvers.nystrom import Nystrom
from solvers.oracle import Counters, KernelOracle
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
    "ISNKPVN",
    "ISPVN",
    "KPCT",
    "KVN",
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
    "CallableKernel",
    "Counters",
    "CuttingPlane",
    "FeasibilityCounters",
    "FeasibilityProblem",
    "FeasibilityResult",
    "FourierExpansion",
    "Kernel",
    "KernelExpansion",
    "KernelOracle",
    "Linear",
    "LinearChain",
    "LinearModel",
    "LinearPegasos",
    "LinearSDCA",
    "Model",
    "Monitor",
    "MultiClass",
    "Nystrom",
    "OneVsRest",
    "Orthant",
    "Pegasos",
    "Perceptron",
    "Polynomial",
    "PositiveSemidefinite",
    "Precomputed",
    "Problem",
    "RandomFourierFeatures",
    "RandomFourierMap",
    "SecondOrder",
    "Solution",
    "Solver",
    "StructuredExpansion",
    "StructuredProblem",
    "StructuredSVM",
    "TwoClasses",
    "Verdict",
    "Violations",
    "VotedExpansion",
    "WeightedSolver",
    "check_certificate",
    "registry",
]
