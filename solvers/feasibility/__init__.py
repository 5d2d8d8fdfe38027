"""Feasibility problems: a y that separates, or a certificate that none does."""

from solvers.feasibility.checking import Verdict, check_certificate
from solvers.feasibility.cones import Cone, Orthant, PositiveSemidefinite, SecondOrder
from solvers.feasibility.kernel_methods import KPCT, KVN, MPKFP
from solvers.feasibility.kernel_smoothing import ISNKPVN, SNKP
from solvers.feasibility.methods import MPCFP, MPLFP, PCT, VN
from solvers.feasibility.one_vs_rest import OneVsRest
from solvers.feasibility.problem import FeasibilityProblem
from solvers.feasibility.result import FeasibilityCounters, FeasibilityResult, HistoryPoint
from solvers.feasibility.smooth_methods import ISPVN, SPCT, SPVN

__all__ = [
    "ISNKPVN",
    "ISPVN",
    "KPCT",
    "KVN",
    "MPCFP",
    "MPKFP",
    "MPLFP",
    "PCT",
    "SNKP",
    "SPCT",
    "SPVN",
    "VN",
    "Cone",
    "FeasibilityCounters",
    "FeasibilityProblem",
    "FeasibilityResult",
    "HistoryPoint",
    "OneVsRest",
    "Orthant",
    "PositiveSemidefinite",
    "SecondOrder",
    "Verdict",
    "check_certificate",
]
