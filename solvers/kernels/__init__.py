"""Kernels, the counting oracle, the cache of rows, and which rows to fetch ahead.

Each kernel is found by its name (:mod:`marginbench.solvers.kernels.choice`). Kernels know
nothing of counting or caching; that is the oracle's work.
"""

from .base import Frame, Kernel, Points
from .callable import CallableKernel
from .choice import is_registered, kernel_class, kernel_names, kernel_of, make_kernel
from .precomputed import Precomputed
from .products import Linear, Polynomial
from .rbf import RBF

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
