"""Feasibility problems: a y that separates, or a certificate that none does."""

from ..numeric.counters import FeasibilityCounters
from .checking import Verdict, check_certificate
from .cones import Cone, Orthant, PositiveSemidefinite, SecondOrder
from .mirror_prox import MPCFP, MPKFP, MPLFP
from .problem import FeasibilityProblem
from .result import FeasibilityResult, HistoryPoint
from .rivals import ISNKPVN, ISPVN, KPCT, KVN, PCT, SNKP, SPCT, SPVN, VN

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
