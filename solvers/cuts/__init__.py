"""Cutting planes with kernels: two or more classes, sequences, and custom structures."""

from marginbench.solvers.cuts.chain import LinearChain
from marginbench.solvers.cuts.cutting_plane import CuttingPlane
from marginbench.solvers.cuts.expansion import StructuredExpansion
from marginbench.solvers.cuts.labels import MultiClass, TwoClasses
from marginbench.solvers.cuts.structure import StructuredProblem, Violations
from marginbench.solvers.cuts.structured import StructuredSVM

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
