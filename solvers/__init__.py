"""Reference solvers, kernels, the counting oracle, models and objectives."""

from solvers.base import Problem, Solution, Solver
from solvers.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Precomputed
from solvers.libsvm import LIBSVM
from solvers.models import KernelExpansion
from solvers.monitor import Monitor
from solvers.oracle import Counters, KernelOracle
from solvers.pegasos import Pegasos
from solvers.perceptron import Perceptron
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
    "CallableKernel",
    "Counters",
    "Kernel",
    "KernelExpansion",
    "KernelOracle",
    "Linear",
    "Monitor",
    "Pegasos",
    "Perceptron",
    "Polynomial",
    "Precomputed",
    "Problem",
    "Solution",
    "Solver",
    "registry",
]
