"""Reference solvers, kernels, the counting oracle, models and objectives."""

from solvers.base import Solver, WeightedSolver
from solvers.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from solvers.libsvm import LIBSVM
from solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from solvers.monitor import Monitor
from solvers.oracle import Counters, KernelOracle
from solvers.pegasos import Pegasos
from solvers.perceptron import Perceptron
from solvers.problem import Problem, Solution
from solvers.registry import registry
from solvers.sbp import SBP
from solvers.sdca import SDCA
from solvers.smo import SMO

__all__ = [
    "LIBSVM",
    "RBF",
    "SBP",
    "SDCA",
    "SMO",
    "BudgetExpansion",
    "CallableKernel",
    "Counters",
    "Kernel",
    "KernelExpansion",
    "KernelOracle",
    "Linear",
    "LinearModel",
    "Model",
    "Monitor",
    "Pegasos",
    "Perceptron",
    "Polynomial",
    "Precomputed",
    "Problem",
    "Solution",
    "Solver",
    "WeightedSolver",
    "registry",
]
