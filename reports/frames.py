"""Small typed steps on DataFrames that several modules of the report take."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

#: What identifies a run in every frame.
RUN = ["task", "solver", "seed"]
#: Of fewer runs each one is shown, or their range: quartiles would be guesses.
FEWEST_FOR_QUARTILES = 5
#: What :func:`spread_of` is, in the words that captions use.
SPREAD = "quartiles over the runs, or their range where there are fewer than five"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts."""
    return cast("list[dict[str, Any]]", frame.to_dict("records"))


def is_number(value: object) -> bool:
    """Whether a value of a record's JSON is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def json_object(text: str) -> dict[str, Any]:
    """The JSON object that a record holds as text; empty when it is not one."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


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
    return dict(Counter(zip(runs["task"], runs["solver"], strict=True)))


def first_known(values: pd.Series) -> float | None:
    """The first value that is not NaN; None if there is none."""
    present = values.dropna()
    return None if present.empty else float(present.iloc[0])


def medians(frame: pd.DataFrame, keys: Sequence[str], value: str) -> pd.DataFrame:
    """Median and :func:`spread_of` of a column for each combination of keys that has a value."""
    rows = []
    for key, group in frame.dropna(subset=value).groupby(list(keys), sort=False)[value]:
        low, high = spread_of(group.to_numpy(np.float64))
        rows.append((*key, float(group.median()), float(low), float(high), len(group)))
    return pd.DataFrame(rows, columns=[*keys, "median", "low", "high", "n_runs"])


def spread_of(values: npt.NDArray[np.float64]) -> tuple[Any, Any]:
    """The quartiles of values along their first axis; of too few, the least and the largest."""
    if len(values) >= FEWEST_FOR_QUARTILES:
        low, high = np.quantile(values, (0.25, 0.75), axis=0)
        return low, high
    return values.min(axis=0), values.max(axis=0)


def other_problem(runs: pd.DataFrame) -> str:
    """How the problem that these runs solve differs from their task's; empty if it does not."""
    if "other_problem" not in runs:
        return ""
    return next((str(words) for words in runs["other_problem"] if words), "")


def other_problem_solvers(runs: pd.DataFrame, task: str) -> dict[str, str]:
    """The solvers that solve another problem than this task's -> how it differs."""
    if "other_problem" not in runs:
        return {}
    chosen = (runs["task"] == task) & (runs["other_problem"] != "")
    pairs = runs.loc[chosen, ["solver", "other_problem"]].drop_duplicates("solver")
    return dict(zip(pairs["solver"], pairs["other_problem"], strict=True))
