"""Small typed steps on DataFrames that several modules of the report take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pandas as pd


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts."""
    return cast("list[dict[str, Any]]", frame.to_dict("records"))


def is_number(value: object) -> bool:
    """Whether a value of a record's JSON is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def by_solver(frame: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """The rows of each task and solver, in order of first appearance."""
    for (task, solver), group in frame.groupby(["task", "solver"], sort=False):
        yield str(task), str(solver), group


def of_task(frame: pd.DataFrame, task: str, solver: str | None = None) -> pd.DataFrame:
    """The rows of one task, and of one solver if given."""
    chosen = frame["task"] == task
    return frame[chosen if solver is None else chosen & (frame["solver"] == solver)]


def n_planned(runs: pd.DataFrame) -> dict[tuple[str, str], int]:
    """How many runs are planned of each task and solver."""
    return {(task, solver): len(group) for task, solver, group in by_solver(runs)}
