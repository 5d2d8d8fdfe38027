"""The public names of marginbench.data_loaders, for type checkers and for the lazy import."""

from .cache import (
    Dataset as Dataset,
    Verification as Verification,
    fetch as fetch,
    load as load,
    verify as verify,
)
from .errors import DataError as DataError, DataWarning as DataWarning, suggest as suggest
from .feasibility import FeasibilityInstance as FeasibilityInstance, lap as lap, ldfp as ldfp
from .own.importing import (
    Imported as Imported,
    import_data as import_data,
    imported as imported,
    imported_info as imported_info,
    remove_imported as remove_imported,
)
from .sources import Source as Source, find as find, sources as sources
