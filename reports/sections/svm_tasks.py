"""The results of SVM solvers on each task: panels and a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from marginbench.reports import formatting, wording
from marginbench.reports.analysis import Analysis
from marginbench.reports.derived import derived_measures
from marginbench.reports.derived.to_target import TARGET_FACTOR, target_errors
from marginbench.reports.described import SvmTask
from marginbench.reports.frames import first_known, of_task, records
from marginbench.reports.panels import gallery
from marginbench.reports.sections import Part, Section
from marginbench.reports.tables import Cell, Heading, Table, measure_cell, terminal_table

_AT_THE_END = "At the end of the run"
_NOTE = (
    "“Runs” counts those that ended as planned, of those planned. “≤” marks a suboptimality at "
    "the resolution of the reference certificate, or a cost seen only at the end of the run."
)


class SvmTasks(Section):
    """A part for each task: its problem, its panels, and the table of results."""

    anchor, title, place = "task", "Results", 30
    template = "task.html"
    kinds = ("svm",)

    def parts(self, analysis: Analysis) -> Iterable[Part]:
        """One for each task, in the order of the study."""
        for place, task in enumerate(analysis.tasks_of(SvmTask)):
            anchor = f"{self.anchor}-{place}"
            data = {
                "problem": _problem(analysis.runs, task),
                "decided": task.decided,
                "gallery": gallery(analysis, anchor, task.label),
                "table": results(analysis, task.label, of_task(analysis.counts, task.label)),
                "note": " ".join([_target_sentence(analysis, task.label), *_notes(analysis)]),
            }
            yield Part(anchor, task.label, data)

    def key_figures(self, analysis: Analysis) -> list[tuple[str, str]]:
        """How many runs ended as planned."""
        return [("ended as planned", str(analysis.counts["n_ok"].sum()))]

    def terminal(self, analysis: Analysis) -> Iterable[RenderableType]:
        """The tables, without solvers that were skipped, and what their numbers are."""
        for task in analysis.tasks_of(SvmTask):
            counts = of_task(analysis.counts, task.label)
            tried = counts[counts["n_skipped"] < counts["n_planned"]]
            yield terminal_table(results(analysis, task.label, tried), task.label)
            yield Text()
        yield Text("Medians over seeds of the runs that ended as planned.", style="dim")


def results(analysis: Analysis, task: str, counts: pd.DataFrame) -> Table:
    """The table of results of a task.

    Parameters
    ----------
    analysis : Analysis
    task : str
        Its label.
    counts : DataFrame
        The rows of ``analysis.counts`` to show, all of this task.
    """
    groups = {item.name: item.group for item in derived_measures(analysis.kind)}
    measures = analysis.shown
    cells = {
        (row["solver"], row["measure"]): measure_cell(row, measures[row["measure"]])
        for row in records(of_task(analysis.table, task))
    }
    rows = [
        [
            Cell(row["solver"]),
            Cell(f"{row['n_ok']} / {row['n_planned']}", incomplete=row["n_failed"] > 0),
            *(cells[row["solver"], name] for name in measures),
            Cell(_unbroken(row["statuses"])),
        ]
        for row in records(counts)
    ]
    headings = [
        Heading("Solver", short="solver"),
        Heading("Runs", "number", short="runs"),
        *(
            Heading(item.title, "number", groups.get(name) or _AT_THE_END, item.short)
            for name, item in measures.items()
        ),
        Heading("Status", "statuses"),
    ]
    return Table(f"Results on {task}", headings, rows, style="results")


def _notes(analysis: Analysis) -> list[str]:
    """What the columns of the table are, where their headings do not say."""
    shown = [item for item in derived_measures(analysis.kind) if item.name in analysis.shown]
    return [_NOTE, *(item.note for item in shown if item.note)]


def _unbroken(statuses: str) -> str:
    """Keep each count with its status when the line breaks."""
    return ", ".join(part.replace(" ", formatting.FIXED) for part in statuses.split(", "))


def _targets(analysis: Analysis) -> pd.DataFrame:
    return target_errors(analysis.runs)


def _target_sentence(analysis: Analysis, task: str) -> str:
    rows = records(of_task(analysis.ask(_targets), task))
    if not rows:
        return "No run ended as planned, so there is no target error."
    row: dict[str, Any] = rows[0]
    best = formatting.percent(row["best_error"])
    if row["best_error"] == 0:
        return f"Target: no test error at all, as the median of {row['solvers']} reaches."
    return (
        f"Target: a test error of {formatting.percent(row['target_error'])}, "
        f"{TARGET_FACTOR} times the best median ({best}, {row['solvers']})."
    )


def _problem(runs: pd.DataFrame, task: SvmTask) -> str:
    """The optimisation problem of a task in one line."""
    mine = of_task(runs, task.label)
    sizes = [
        f"{name} = {formatting.integer(value)}"
        for name, column in (("n", "n_train"), ("d", "n_features"))
        if (value := first_known(mine[column])) is not None
    ]
    n_classes = first_known(mine["n_classes"])
    if n_classes is not None and n_classes > 2:
        sizes.append(f"{formatting.integer(n_classes)} classes, each against the rest")
    unknown = [] if task.reference else ["no reference optimum"]
    return ", ".join([*_imitation(task), *sizes, *wording.kernel_words(task), *unknown])


def _imitation(task: SvmTask) -> list[str]:
    """What a reader must know of synthetic points, whatever the label says."""
    if not task.dataset.startswith("like:"):
        return []
    return [f"synthetic points in the shape of {task.dataset.removeprefix('like:')}"]
