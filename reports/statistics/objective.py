"""Relative suboptimality, and what the certificate of the reference optimum resolves."""

from __future__ import annotations

import numpy as np
import pandas as pd

_RUN = ["task", "solver", "seed"]
_REFERENCE = ["reference_primal", "reference_gap"]


def resolution(frame: pd.DataFrame) -> pd.Series:
    """The relative suboptimality below which the reference's certificate cannot tell.

    The optimum lies in [reference_primal - reference_gap, reference_primal], so a relative
    suboptimality is known up to reference_gap / reference_primal.
    """
    return frame["reference_gap"] / frame["reference_primal"]


def floor_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """Floor the column suboptimality at the certificate's resolution.

    Returns
    -------
    DataFrame
        A copy with suboptimality floored, ``resolution``, and ``suboptimality_is_bound``: True
        where the value is only known to be at most the resolution.
    """
    lowest = resolution(frame)
    # fmax: without a certificate (NaN) the value itself; an unknown value stays unknown.
    raw = frame["suboptimality"]
    floored = pd.Series(np.fmax(raw, lowest), index=frame.index).where(raw.notna())
    return frame.assign(
        suboptimality=floored, resolution=lowest, suboptimality_is_bound=raw <= lowest
    )


def trace_suboptimality(traces: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add each checkpoint's reference optimum and relative suboptimality.

    The suboptimality, (primal - reference) / reference, is not floored, and NaN for solvers that
    do not minimise the SVM objective.
    """
    found = traces.merge(runs[[*_RUN, *_REFERENCE]], on=_RUN, how="left")
    raw = (found["primal"] - found["reference_primal"]) / found["reference_primal"]
    return found.assign(suboptimality=raw.where(found["minimises"]))
