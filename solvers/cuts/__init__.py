"""Cutting planes with kernels: two or more classes, sequences, and custom structures."""

from .cutting_plane import CuttingPlane
from .structure import LinearChain, MultiClass, StructuredProblem, TwoClasses, Violations
from .structured import StructuredExpansion, StructuredSVM

__all__ = [
    "CuttingPlane",
    "LinearChain",
    "MultiClass",
    "StructuredExpansion",
    "StructuredProblem",
    "StructuredSVM",
    "TwoClasses",
    "Violations",
]
