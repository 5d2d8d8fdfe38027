"""Datasets for large-margin solvers: sources, formats, generators and the cache.

>>> from marginbench.data_loaders import load
>>> digits = load("digits")
>>> digits.X_train.shape
(1198, 64)
"""

from .cache import Dataset, Verification, fetch, load, verify
from .errors import DataError, DataWarning, suggest
from .feasibility import FeasibilityInstance, lap, ldfp
from .own.importing import (
    Imported,
    import_data,
    imported,
    imported_info,
    remove_imported,
)
from .sources import Source, find, sources

__all__ = [
    "DataError",
    "DataWarning",
    "Dataset",
    "FeasibilityInstance",
    "Imported",
    "Source",
    "Verification",
    "fetch",
    "find",
    "import_data",
    "imported",
    "imported_info",
    "lap",
    "ldfp",
    "load",
    "remove_imported",
    "sources",
    "suggest",
    "verify",
]
