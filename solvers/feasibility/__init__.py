"""Feasibility problems: a y that separates, or a certificate that none does."""

from ..numeric.counters import FeasibilityCounters
from .checking import Verdict, check_certificate
from .cones import Cone, Orthant, PositiveSemidefinite, SecondOrder
from .kernel_methods import ISNKPVN, KPCT, KVN, MPKFP, SNKP
from .methods import ISPVN, MPCFP, MPLFP, PCT, SPCT, SPVN, VN
from .problem import FeasibilityProblem
from .result import FeasibilityResult, HistoryPoint

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
