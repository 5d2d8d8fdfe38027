"""Cutting planes with kernels: two classes, more, sequences, and structures of one's own."""

from solvers.cuts.chain import LinearChain
from solvers.cuts.cutting_plane import CuttingPlane
from solvers.cuts.expansion import StructuredExpansion
from solvers.cuts.labels import MultiClass, TwoClasses
from solvers.cuts.structure import StructuredProblem, Violations
from solvers.cuts.structured import StructuredSVM

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
