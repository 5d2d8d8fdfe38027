"""How far the test error of a run still moves in its last epochs."""

from __future__ import annotations

import pandas as pd

from ...harness.results.measures import Measure
from . import Derived

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
    keys = ["task", "solver", "seed"]
    mine = runs[keys].assign(run=runs.index, n_train=runs["n_train"].where(runs["n_train"] > 0))
    states = mine.merge(traces[[*keys, "n_iter", "test_error"]], on=keys)
    states["epoch"] = states["n_iter"] / states["n_train"]
    # Of two checkpoints after the same iteration the last one counts.
    states = states.dropna(subset="epoch").drop_duplicates(["run", "epoch"], keep="last")
    last = states.groupby("run")["epoch"].transform("max")
    at_ends = (last % 1 == 0) & (last >= LATE_EPOCHS) & (states["epoch"] % 1 == 0)
    late = states[at_ends & (last - states["epoch"] < LATE_EPOCHS)]
    errors = late.groupby("run")["test_error"].agg(["count", "min", "max"])
    whole = errors[errors["count"] == LATE_EPOCHS]
    return (whole["max"] - whole["min"]).reindex(runs.index).astype(float)
