"""Feasibility problems: a y that separates, or a certificate that none does."""

from marginbench.solvers.feasibility.checking import Verdict, check_certificate
from marginbench.solvers.feasibility.cones import Cone, Orthant, PositiveSemidefinite, SecondOrder
from marginbench.solvers.feasibility.kernel_methods import KPCT, KVN, MPKFP
from marginbench.solvers.feasibility.kernel_smoothing import ISNKPVN, SNKP
from marginbench.solvers.feasibility.methods import MPCFP, MPLFP, PCT, VN
from marginbench.solvers.feasibility.problem import FeasibilityProblem
from marginbench.solvers.feasibility.result import FeasibilityResult, HistoryPoint
from marginbench.solvers.feasibility.smooth_methods import ISPVN, SPCT, SPVN
from marginbench.solvers.numeric.counters import FeasibilityCounters

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
    "Orthant",
    "PositiveSemidefinite",
    "SecondOrder",
    "Verdict",
    "check_certificate",
]
