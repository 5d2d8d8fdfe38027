"""What solvers return: expansions and linear models, their scores, and objectives."""

from .expansions import BudgetExpansion, KernelExpansion, LinearModel, Model
from .fourier import FourierExpansion
from .several import OneVsRestModel
from .voting import VotedExpansion

__all__ = [
    "BudgetExpansion",
    "FourierExpansion",
    "KernelExpansion",
    "LinearModel",
    "Model",
    "OneVsRestModel",
    "VotedExpansion",
]
