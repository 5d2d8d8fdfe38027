"""SVM training on a budget: BSGD, BSCA, and the strategies that keep to it."""

from marginbench.solvers.budget.bsca import BSCA
from marginbench.solvers.budget.bsgd import BSGD
from marginbench.solvers.budget.epochs import BudgetObjectives, EpochRecord
from marginbench.solvers.budget.maintenance import (
    STRATEGIES,
    Maintenance,
    Merging,
    Projection,
    Removal,
)
from marginbench.solvers.budget.merging import Tables, merge_tables

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
