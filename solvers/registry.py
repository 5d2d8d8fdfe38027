"""The reference solvers by name."""

from __future__ import annotations

from solvers.base import Solver
from solvers.libsvm import LIBSVM
from solvers.pegasos import Pegasos
from solvers.perceptron import Perceptron
from solvers.sbp import SBP
from solvers.sdca import SDCA
from solvers.smo import SMO


def registry() -> dict[str, type[Solver]]:
    """Every reference solver, by the name that studies and the command line use."""
    classes: tuple[type[Solver], ...] = (SMO, SBP, SDCA, Pegasos, Perceptron, LIBSVM)
    return {solver.__name__: solver for solver in classes}
