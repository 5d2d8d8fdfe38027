"""SVM training on a budget: BSGD, BSCA, and the strategies that keep to it."""

from .epochs import BudgetObjectives, EpochRecord
from .training import BSCA, BSGD

__all__ = ["BSCA", "BSGD", "BudgetObjectives", "EpochRecord"]
