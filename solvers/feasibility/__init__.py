"""Feasibility problems: a y that separates, or a certificate that none does."""

from ..numeric.counters import FeasibilityCounters
from .checking import Verdict, check_certificate
from .cones import Cone, Orthant, PositiveSemidefinite, SecondOrder
from .kernel_methods import KPCT, KVN, MPKFP
from .kernel_smoothing import ISNKPVN, SNKP
from .methods import MPCFP, MPLFP, PCT, VN
from .problem import FeasibilityProblem
from .result import FeasibilityResult, HistoryPoint
from .smooth_methods import ISPVN, SPCT, SPVN

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
