"""The reference solvers by name."""

from __future__ import annotations

from solvers.base import Solver
from solvers.batch_perceptron import BatchPerceptron
from solvers.cuts import CuttingPlane
from solvers.libsvm import LIBSVM
from solvers.linear_pegasos import LinearPegasos
from solvers.linear_sdca import LinearSDCA
from solvers.nystrom import Nystrom
from solvers.pegasos import Pegasos
from solvers.perceptron import Perceptron
from solvers.random_features import RandomFourierFeatures
from solvers.sbp import SBP
from solvers.sdca import SDCA
from solvers.sgd import SGD
from solvers.simba import SIMBA
from solvers.smo import SMO


def registry() -> dict[str, type[Solver]]:
    """Every reference solver, by the name that studies and the command line use."""
    classes: tuple[type[Solver], ...] = (
        *(SMO, SBP, SDCA, Pegasos, SGD, Perceptron, BatchPerceptron),
        *(LinearSDCA, LinearPegasos, SIMBA, RandomFourierFeatures),
        *(CuttingPlane, Nystrom),
        LIBSVM,
    )
    return {solver.__name__: solver for solver in classes}
