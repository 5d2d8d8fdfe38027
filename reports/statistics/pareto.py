"""Which solvers of a task no other one dominates in error, cost and size of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..frames import by_solver
from .errors import SolverErrors, difference

_ERROR = "test_error"
_KEYS = ["task", "solver"]


def fronts(runs: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Who dominates whom on each task.

    A solver dominates another if none of its medians is larger and at least one of them is smaller
    beyond doubt. For a test error that means that the interval of the difference on the same test
    points (:func:`.errors.difference`) excludes zero; for another measure, that all runs of the one
    are below all runs of the other. Only solvers of which all runs ended as planned and have a
    value of each measure are compared.

    Parameters
    ----------
    runs : DataFrame
        Of :class:`marginbench.reports.results.Results`.
    measures : sequence of str
        Columns of ``runs`` of which less is better.

    Returns
    -------
    DataFrame
        One row for each task and solver that is compared: task, solver, n (runs), the median of
        each measure, dominated_by (labels, separated by commas) and front (dominated by none).
    """
    rows = [
        row
        for _, mine in runs[runs["status"] != "skipped"].groupby("task", sort=False)
        for row in _of_task(mine, measures)
    ]
    columns = [*_KEYS, "n", *measures, "dominated_by", "front"]
    # A table without a row has no types of its own.
    types = {"n": int, "front": bool} | dict.fromkeys(measures, float)
    return pd.DataFrame(rows, columns=columns).astype(types)


@dataclass(frozen=True)
class _Compared:
    """The runs of a solver on a task, with what is asked of them for each other solver."""

    runs: pd.DataFrame
    values: npt.NDArray[np.float64]
    medians: npt.NDArray[np.float64]

    @classmethod
    def of(cls, runs: pd.DataFrame, measures: Sequence[str]) -> _Compared | None:
        """None where a run failed or a value is not known."""
        values = runs[list(measures)].to_numpy(np.float64)
        if not runs["ok"].all() or np.isnan(values).any():
            return None
        return cls(runs, values, np.median(values, axis=0))

    @cached_property
    def errors(self) -> SolverErrors | None:
        """Unpacked only where a comparison needs the single test points."""
        return SolverErrors.of(self.runs)

    def dominates(self, other: _Compared, measures: Sequence[str]) -> bool:
        """Whether no median is larger, and some measure is smaller beyond doubt."""
        if (self.medians > other.medians).any():
            return False
        below = self.values.max(axis=0) < other.values.min(axis=0)
        if any(below[place] for place, name in enumerate(measures) if name != _ERROR):
            return True
        return _ERROR in measures and _fewer_errors(self.errors, other.errors)


def _of_task(runs: pd.DataFrame, measures: Sequence[str]) -> list[dict[str, Any]]:
    found = {solver: _Compared.of(mine, measures) for _, solver, mine in by_solver(runs)}
    whole = {solver: mine for solver, mine in found.items() if mine is not None}
    rows: list[dict[str, Any]] = []
    for solver, mine in whole.items():
        above = [
            name
            for name, other in whole.items()
            if name != solver and other.dominates(mine, measures)
        ]
        rows.append(
            {"task": mine.runs["task"].iloc[0], "solver": solver, "n": len(mine.runs)}
            | dict(zip(measures, mine.medians, strict=True))
            | {"dominated_by": ", ".join(above), "front": not above}
        )
    return rows


def _fewer_errors(first: SolverErrors | None, second: SolverErrors | None) -> bool:
    if first is None or second is None or first.n_test != second.n_test:
        return False
    return difference(first, second).high < 0
