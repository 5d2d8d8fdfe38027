"""Cutting planes with kernels: two classes, more, sequences, and structures of one's own."""

from solvers.cuts.chain import LinearChain
from solvers.cuts.cutting_plane import CuttingPlane
from solvers.cuts.labels import MultiClass, TwoClasses
from solvers.cuts.structure import StructuredProblem, Violations

__all__ = [
    "CuttingPlane",
    "LinearChain",
    "MultiClass",
    "StructuredProblem",
    "TwoClasses",
    "Violations",
]
