"""The runs without a result: those that failed, and those that were skipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from ..analysis import Analysis
from ..formatting import plural
from ..frames import records
from ..tables import Cell, Heading, Table
from ..wording import KindWords, capitalised
from . import Section

_NO_REASON = "no reason given"


class Failures(Section):
    """Runs that did not end as planned, or of which no record can be read, with the reason."""

    anchor, title, place = "failures", "Failures", 40
    template = "outcomes.html"

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The table of failures, or that there are none."""
        if not analysis.failures.empty:
            return {"words": "", "table": _table("Failures", analysis.failures, analysis.words)}
        tried = "that was not skipped " if len(analysis.skipped) else ""
        return {"words": f"None: every planned run {tried}ended as planned.", "table": None}

    def terminal(self, analysis: Analysis) -> Iterable[RenderableType]:
        """A line for each reason."""
        seed = analysis.words.seed
        for row in records(analysis.failures):
            line = Text(f"{row['status']}: ", style="yellow")
            line.append(f"{row['task']}, {row['solver']}, {plural(row['n'], 'run')}")
            line.append(f" ({seed}{'s' if row['n'] > 1 else ''} {row['seeds']}): ")
            yield line.append(row["reason"] or _NO_REASON)


class Skipped(Section):
    """Runs that were not tried, with the reason."""

    anchor, title, place = "skipped", "Skipped", 50
    template = "outcomes.html"

    def applies(self, analysis: Analysis) -> bool:
        """Where a run was skipped."""
        return not analysis.skipped.empty

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The table of skipped runs."""
        words = (
            "These runs were not tried, for the reason given. They count neither as results nor "
            "as failures."
        )
        return {"words": words, "table": _table("Skipped runs", analysis.skipped, analysis.words)}

    def terminal(self, analysis: Analysis) -> Iterable[RenderableType]:
        """A line for each solver and reason."""
        for (solver, reason), group in analysis.skipped.groupby(["solver", "reason"], sort=False):
            tasks = ", ".join(dict.fromkeys(group["task"]))
            n = plural(int(group["n"].sum()), "run")
            yield Text(f"skipped: {solver} on {tasks}, {n}: {reason or _NO_REASON}")


def _table(label: str, runs: pd.DataFrame, words: KindWords) -> Table:
    headings = [
        Heading(capitalised(words.task), term="task"),
        Heading(capitalised(words.solver), term="solver"),
        Heading("Status", term="status"),
        Heading("Runs", "number", term="runs_of"),
        Heading(capitalised(f"{words.seed}s"), term="seed"),
        Heading("Reason", "reason", term="reason"),
    ]
    rows = [
        [
            Cell(row["task"]),
            Cell(row["solver"]),
            Cell(row["status"]),
            Cell(f"{row['n']} of {row['n_planned']}", number=row["n"]),
            Cell(row["seeds"]),
            Cell(row["reason"] or _NO_REASON),
        ]
        for row in records(runs)
    ]
    return Table(label, headings, rows, cards=True, numbers=runs)
