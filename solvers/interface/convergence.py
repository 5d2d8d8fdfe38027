"""The warning of a run that ended at its limit before its stopping rule was met."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning


def short_of(achieved: str, tol: float) -> str:
    """A run's shortfall in words; empty for ``tol=0``, which asks for no more than the limit."""
    return f"{achieved}, tol={tol:g}" if tol > 0 else ""


def warn_unconverged(name: str, limit: str, shortfall: str, *, stacklevel: int = 4) -> None:
    """Issue scikit-learn's ConvergenceWarning, with what was achieved."""
    warnings.warn(
        f"{name} ended at {limit} before it converged: {shortfall}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """What runs inside may end at a limit silently: whoever runs it looks at its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
