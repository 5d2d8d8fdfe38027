"""Studies of feasibility methods: which runs solved their problem, and what they needed.

A run has solved its problem if it ended as planned with the certificate that the problem has: a
separator, or for a problem without one an epsilon-solution of the alternative (``||A x||`` at most
the tolerance of the cell, the margin is then at most this, too) or a proof that nothing separates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd

from ...harness.results.measures import Measure
from ..described import CellTask, Task
from ..frames import json_object, of_task
from .summary import results_table, run_values

#: What a method must have found to have solved a problem of each generator.
_ANSWERS = {"ldfp": ("separable",), "lap": ("inseparable", "margin_at_most_tol")}
_ANY = ("separable", "inseparable", "margin_at_most_tol")


def with_outcome(runs: pd.DataFrame, tasks: Iterable[Task]) -> pd.DataFrame:
    """Add whether each run solved its problem, and the seconds that it was allowed.

    A copy with ``solved`` (bool) and ``limit`` (NaN without a record).
    """
    answers = {
        task.label: _ANSWERS.get(task.generator, _ANY) if isinstance(task, CellTask) else _ANY
        for task in tasks
    }
    right = [
        found in answers[task] for task, found in zip(runs["task"], runs["found"], strict=True)
    ]
    limits = [json_object(text).get("timeout", math.nan) for text in runs["budget"]]
    return runs.assign(
        solved=runs["ok"] & pd.Series(right, index=runs.index, dtype=bool),
        limit=pd.Series(limits, index=runs.index, dtype=float),
    )


def solved_table(runs: pd.DataFrame, measures: Mapping[str, Measure]) -> pd.DataFrame:
    """What each method needed on the instances that it solved.

    All methods end with the same certificate, so that their costs can be ranked.

    Of :func:`marginbench.reports.statistics.summary.results_table`; best are medians of methods
    that solved every instance.
    """
    ranked = {name: replace(item, better="lower") for name, item in measures.items()}
    solved = runs[runs["solved"]]
    values = [run_values(solved, name) for name in measures if name in solved]
    return results_table(
        runs, pd.concat(values, ignore_index=True), ranked, success="solved", overlap=False
    )


def gap_ratio(traces: pd.DataFrame, columns: Mapping[str, int]) -> tuple[float, int]:
    """The largest ``t (phi_up - phi_lo) / sqrt(2 log n)``, and of how many checkpoints.

    At most 1 for mirror prox by its convergence theorem; NaN if nothing is recorded.
    """
    mine = traces[traces["task"].isin(columns)]
    if mine.empty:
        return math.nan, 0
    bound = (2 * mine["task"].map(columns).map(math.log)).map(math.sqrt) / mine["n_iter"]
    return float(((mine["phi_up"] - mine["phi_lo"]) / bound).max()), len(mine)


def fewest_iterations(runs: pd.DataFrame, task: str) -> tuple[dict[str, int], int]:
    """On how many instances of a task each method needed the fewest iterations.

    Methods that needed equally many both count. Only instances that some method solved do, and of
    these only the methods that solved them.
    """
    mine = of_task(runs, task)
    solved = mine[mine["solved"]]
    fewest = solved.groupby("seed")["n_iter"].transform("min")
    first = solved.loc[solved["n_iter"] == fewest, "solver"]
    counts = first.value_counts(sort=False).sort_values(ascending=False, kind="stable")
    return {str(name): int(count) for name, count in counts.items()}, solved["seed"].nunique()
