"""How far the test error of a run still moves in its last epochs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from marginbench.harness.measures import Measure
from marginbench.reports.derived import Derived
from marginbench.reports.frames import records

#: Epochs at whose ends the test error is compared.
LATE_EPOCHS = 10


class LateSpread(Derived):
    """The range of a run's test error over the ends of its last epochs."""

    name = "late_spread"
    measure = Measure("Late spread", "late spread", "percent", table=30)
    kinds = ("svm",)
    note = (
        "“Late spread” is the range of the test error of a run over the ends of its last "
        f"{LATE_EPOCHS} epochs."
    )

    def values(self, runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
        """Of runs that ended as planned; NaN without a checkpoint at each of these ends."""
        finals = runs[runs["ok"]]
        spreads = late_spreads(finals, traces)
        found = finals[["task", "solver", "seed"]]
        return found.assign(value=spreads, first=spreads, upper_bound=False)


def late_spreads(runs: pd.DataFrame, traces: pd.DataFrame) -> pd.Series:
    """The range of each run's test error over the ends of its last ten epochs.

    Returns
    -------
    Series
        With the index of ``runs``; NaN for runs without a checkpoint at each of these ends.
    """
    columns = ["task", "solver", "seed", "n_iter", "test_error"]
    trace_of = dict(iter(traces[columns].groupby(["task", "solver", "seed"])))
    spreads = {
        place: _late_spread(trace_of.get((run["task"], run["solver"], run["seed"])), run["n_train"])
        for place, run in zip(runs.index, records(runs[[*columns[:3], "n_train"]]), strict=True)
    }
    return pd.Series(spreads, index=runs.index, dtype=float)


def _late_spread(trace: pd.DataFrame | None, n_train: float) -> float:
    if trace is None or not n_train > 0:
        return np.nan
    # Of two checkpoints after the same iteration the last one counts.
    error_at = dict(zip(trace["n_iter"] / n_train, trace["test_error"], strict=True))
    last = max(error_at, default=0.0)
    errors = [error_at.get(last - back, np.nan) for back in range(LATE_EPOCHS)]
    return float(np.ptp(errors)) if last.is_integer() and last >= LATE_EPOCHS else np.nan
