"""Kernels, the counting oracle, the cache of rows, and which rows to fetch ahead.

Each kernel is one file, found by its name (:mod:`marginbench.solvers.kernels.choice`). Kernels know
nothing of counting or caching; that is the oracle's work.
"""

from marginbench.solvers.kernels.base import Frame, Kernel, Points
from marginbench.solvers.kernels.callable import CallableKernel
from marginbench.solvers.kernels.choice import (
    is_registered,
    kernel_class,
    kernel_names,
    kernel_of,
    make_kernel,
)
from marginbench.solvers.kernels.linear import Linear
from marginbench.solvers.kernels.polynomial import Polynomial
from marginbench.solvers.kernels.precomputed import Precomputed
from marginbench.solvers.kernels.rbf import RBF

__all__ = [
    "RBF",
    "CallableKernel",
    "Frame",
    "Kernel",
    "Linear",
    "Points",
    "Polynomial",
    "Precomputed",
    "is_registered",
    "kernel_class",
    "kernel_names",
    "kernel_of",
    "make_kernel",
]
