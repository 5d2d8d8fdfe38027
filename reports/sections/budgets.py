"""Who leads at a budget: a table of the findings."""

from __future__ import annotations

import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..described import SvmTask
from ..frames import first_known, of_task
from ..statistics import leading
from ..tables import NONE, Cell, Heading, Table, narrow
from .across_tables import costs

_SECONDS = (0.01, 0.1, 1.0, 10.0)
_SQUARES = (0.1, 1.0)
# More leaders than this are a crowd.
_MOST_NAMED = 2


def budget_table(analysis: Analysis) -> Table | None:
    """Who has the lowest test error after so many evaluations, or seconds."""
    parts = []
    for column in costs(analysis):
        budgets = _budgets(analysis, column)
        found = leading.leaders(analysis.runs, analysis.traces, column, budgets)
        parts.append((_told_apart(analysis, budgets, column), found))
    tasks = [task.label for task in analysis.tasks_of(SvmTask)]
    rows = []
    for names, found in parts:
        for budget in names:
            mine = found[found["budget"] == budget]
            if not mine.empty:
                cells = [_leader_cell(of_task(mine, task)) for task in tasks]
                rows.append([Cell(budget), *cells])
    if not rows:
        return None
    headings = [Heading("After", term="after"), *(Heading(task) for task in tasks)]
    table = Table(
        "Lowest median test error after a budget",
        headings,
        rows,
        name="budgets",
        caption="Of the solvers without a failed run.",
        numbers=pd.concat([found for _, found in parts], ignore_index=True),
    )
    return narrow(table)


def _budgets(analysis: Analysis, cost: str) -> pd.DataFrame:
    """The budgets of each task, and the names that they have in the table."""
    rows = []
    for task in analysis.tasks_of(SvmTask):
        if cost == "cpu_s":
            rows += [
                (task.label, f"{value:g}{formatting.THIN}s of CPU time", value)
                for value in _SECONDS
            ]
            continue
        n = first_known(of_task(analysis.runs, task.label)["n_train"])
        if n is not None:
            rows += [(task.label, f"{share:g} n² evaluations", share * n * n) for share in _SQUARES]
    return pd.DataFrame(rows, columns=["task", "budget", "amount"])


def _told_apart(analysis: Analysis, budgets: pd.DataFrame, column: str) -> list[str]:
    """The names of the budgets, without those that a smaller one exceeds all runs like."""
    ends = analysis.traces.groupby("task")[column].max()
    names = list(dict.fromkeys(budgets["budget"]))
    cut = budgets["amount"] < budgets["task"].map(ends)
    beyond = [name for name in names if not cut[budgets["budget"] == name].any()]
    return [name for name in names if name not in beyond[1:]]


def _leader_cell(found: pd.DataFrame) -> Cell:
    ahead = found[found["first"]]
    if ahead.empty:
        return NONE
    names = [str(name) for name in ahead["solver"]]
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return Cell(
        shown + (f" and {more} more" if more > 0 else ""),
        range=formatting.percent(float(ahead["error"].iloc[0])),
        number=float(ahead["error"].iloc[0]),
    )
