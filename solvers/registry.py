"""The reference solvers by name."""

from __future__ import annotations

from typing import Any

from solvers.base import Solver
from solvers.batch_perceptron import BatchPerceptron
from solvers.budget import BSCA, BSGD
from solvers.bundle import BundleClassifier
from solvers.cuts import CuttingPlane
from solvers.feasibility import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPKFP,
    MPLFP,
    PCT,
    SNKP,
    SPCT,
    SPVN,
    VN,
)
from solvers.liblinear import LIBLINEAR
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
        *(BSCA, BSGD),
        *(LinearSDCA, LinearPegasos, SIMBA, BundleClassifier, RandomFourierFeatures),
        *(CuttingPlane, Nystrom),
        *(MPKFP, KPCT, KVN, SNKP, ISNKPVN),
        *(LIBSVM, LIBLINEAR),
    )
    return {solver.__name__: solver for solver in classes}


def feasibility_methods() -> dict[str, type[Any]]:
    """The methods that look for a separator, on columns and with a kernel, by name."""
    classes = (MPLFP, SPCT, PCT, VN, SPVN, ISPVN, MPKFP, SNKP, KPCT, KVN, ISNKPVN)
    return {method.__name__: method for method in classes}
