"""Which solvers a page shows in colour where there are too many to tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd


def best_ranked(costs: pd.DataFrame, labels: Sequence[str], most: int) -> list[str]:
    """The solvers with the lowest mean rank over the tasks, by their median cost to a target.

    A solver that does not stay at the target, whose cost is unknown, or of which a run failed or is
    missing, shares the last rank of the task. Among equals those that the study names first are
    taken.

    Parameters
    ----------
    costs : DataFrame
        Of :func:`marginbench.reports.statistics.leading.costs`.
    labels : sequence of str
        All solvers, in the order of the study.
    most : int
        How many are taken.

    Returns
    -------
    list of str
        In the order of the study.
    """
    complete = (costs["absent"] == "") & (costs["n_failed"] == 0) & (costs["n_missing"] == 0)
    known = costs.assign(cost=costs["median"].where(complete, np.inf))
    table = known.pivot(index="solver", columns="task", values="cost").reindex(list(labels))
    # Equal medians, infinite ones too, share a rank: a task that nobody finishes decides nothing.
    ranks = table.fillna(np.inf).rank(method="average").mean(axis=1)
    chosen = set(ranks.sort_values(kind="stable").index[:most])
    return [label for label in labels if label in chosen]
