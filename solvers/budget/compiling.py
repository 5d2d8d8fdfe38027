"""How the inner loops of this package are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..numeric.compiling import Function, njit


def compiled(**options: Any) -> Callable[[Function], Function]:
    """``njit`` for functions that change arrays in place and allocate nothing.

    Without numba's runtime for allocations (``_nrt``) no reference is counted: with it, each array
    that goes from one function to the next costs two atomic additions, and here that is as
    much as the arithmetic. The arrays belong to the Python caller all the while.
    """
    return njit(error_model="numpy", _nrt=False, **options)
