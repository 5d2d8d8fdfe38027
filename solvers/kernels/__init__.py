"""Kernels, the counting oracle, the cache of rows, and which rows to fetch ahead."""

from marginbench.solvers.kernels.base import Frame, Kernel, Points
from marginbench.solvers.kernels.standard import (
    RBF,
    CallableKernel,
    Linear,
    Polynomial,
    Precomputed,
    make_kernel,
)

__all__ = [
    "RBF",
    "CallableKernel",
    "Frame",
    "Kernel",
    "Linear",
    "Points",
    "Polynomial",
    "Precomputed",
    "make_kernel",
]
