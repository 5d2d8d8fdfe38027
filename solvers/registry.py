"""The reference solvers by name."""

from __future__ import annotations

from typing import Any

from marginbench.solvers.approximate.nystrom import Nystrom
from marginbench.solvers.approximate.random_features import RandomFourierFeatures
from marginbench.solvers.budget import BSCA, BSGD
from marginbench.solvers.bundle import BundleClassifier
from marginbench.solvers.cuts import CuttingPlane
from marginbench.solvers.feasibility import (
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
from marginbench.solvers.linear.pegasos import LinearPegasos
from marginbench.solvers.linear.sdca import LinearSDCA
from marginbench.solvers.linear.simba import SIMBA
from marginbench.solvers.peers.liblinear import LIBLINEAR
from marginbench.solvers.peers.libsvm import LIBSVM
from marginbench.solvers.sbp.sbp import SBP
from marginbench.solvers.smo.smo import SMO
from marginbench.solvers.stochastic.batch_perceptron import BatchPerceptron
from marginbench.solvers.stochastic.pegasos import Pegasos
from marginbench.solvers.stochastic.perceptron import Perceptron
from marginbench.solvers.stochastic.sdca import SDCA
from marginbench.solvers.stochastic.sgd import SGD


def registry(kind: str = "svm") -> dict[str, type[Any]]:
    """Every reference solver for a kind of studies, by the name that studies use.

    Parameters
    ----------
    kind : {"svm", "feasibility"}
        Solvers of the soft-margin SVM, or methods that look for a separator.
    """
    svm: tuple[type[Any], ...] = (
        *(SMO, SBP, SDCA, Pegasos, SGD, Perceptron, BatchPerceptron),
        *(BSCA, BSGD),
        *(LinearSDCA, LinearPegasos, SIMBA, BundleClassifier, RandomFourierFeatures),
        *(CuttingPlane, Nystrom),
        *(MPKFP, KPCT, KVN, SNKP, ISNKPVN),
        *(LIBSVM, LIBLINEAR),
    )
    feasibility = (MPLFP, SPCT, PCT, VN, SPVN, ISPVN, MPKFP, SNKP, KPCT, KVN, ISNKPVN)
    return {solver.__name__: solver for solver in (svm if kind == "svm" else feasibility)}
