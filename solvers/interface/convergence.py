"""The warning of a run that ended at its limit before its stopping rule was met."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning


def warn_unconverged(name: str, limit: str, shortfall: str, *, stacklevel: int = 4) -> None:
    """Issue scikit-learn's ConvergenceWarning, with what was achieved.

    Parameters
    ----------
    name : str
        The class of the solver.
    limit : str
        What ended the run, such as "max_iter=100".
    shortfall : str
        What was achieved and what was asked for, such as "the duality gap is 0.2, tol=0.001".
    stacklevel : int
        As of :func:`warnings.warn`, counted from here; by default for a ``fit`` that calls another.
    """
    warnings.warn(
        f"{name} ended at {limit} before it converged: {shortfall}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
