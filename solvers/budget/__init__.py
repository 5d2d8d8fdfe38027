"""SVM training on a budget: BSGD, BSCA, and the strategies that keep to it."""

from .epochs import BudgetObjectives, EpochRecord
from .maintenance import STRATEGIES, Maintenance, Merging, Projection, Removal
from .merging import Tables, merge_tables
from .training import BSCA, BSGD

__all__ = [
    "BSCA",
    "BSGD",
    "STRATEGIES",
    "BudgetObjectives",
    "EpochRecord",
    "Maintenance",
    "Merging",
    "Projection",
    "Removal",
    "Tables",
    "merge_tables",
]
