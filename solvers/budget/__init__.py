"""SVM training on a budget: BSGD, BSCA, and the strategies that keep to it."""

from solvers.budget.bsca import BSCA
from solvers.budget.bsgd import BSGD
from solvers.budget.maintenance import STRATEGIES, Maintenance, Merging, Projection, Removal
from solvers.budget.merging import Tables, merge_tables
from solvers.budget.trace import BudgetObjectives, EpochRecord

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
