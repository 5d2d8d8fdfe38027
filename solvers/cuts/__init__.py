"""Cutting planes with kernels: two or more classes, sequences, and custom structures."""

from .chain import LinearChain
from .cutting_plane import CuttingPlane
from .expansion import StructuredExpansion
from .labels import MultiClass, TwoClasses
from .structure import StructuredProblem, Violations
from .structured import StructuredSVM

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
