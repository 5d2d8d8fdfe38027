"""What solvers return: expansions and linear models, their scores, and objectives."""

from marginbench.solvers.models.expansions import (
    BudgetExpansion,
    KernelExpansion,
    LinearModel,
    Model,
)
from marginbench.solvers.models.fourier import FourierExpansion
from marginbench.solvers.models.several import OneVsRestModel
from marginbench.solvers.models.voting import VotedExpansion

__all__ = [
    "BudgetExpansion",
    "FourierExpansion",
    "KernelExpansion",
    "LinearModel",
    "Model",
    "OneVsRestModel",
    "VotedExpansion",
]
