"""The results in short, for the terminal after a run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from . import analysis
from .described import SvmTask
from .formatting import plural
from .frames import of_task, records
from .measures import EVALUATIONS_TO_ERROR
from .results import Results
from .tables import TerminalTable
from .views import common, feasibility, findings, svm


def summary(results: Results) -> RenderableType:
    """The findings and tables, then what limits the comparison: the same numbers as on the page."""
    svm_study = results.kind == "svm"
    found = findings.findings(results) if svm_study else feasibility.findings(results)
    tables = _of_svm(results) if svm_study else _of_feasibility(results)
    conclusions = [Text(finding.sentence) for finding in found]
    notes = [Text(f"note: {sentence}", style="yellow") for sentence in analysis.cautions(results)]
    if conclusions:
        conclusions.append(Text())
    return Group(*conclusions, *tables, *_outcomes(results), *notes)


def _of_svm(results: Results) -> Iterator[RenderableType]:
    """For the terminal: tables without solvers that were skipped, and what they are."""
    for task in results.tasks_of(SvmTask):
        counts = of_task(analysis.counts(results), task.label)
        tried = counts[counts["n_skipped"] < counts["n_planned"]]
        yield TerminalTable(svm.results_table(results, task.label, tried), task.label)
        if tuning := svm.tuning(results.study, task, results.runs):
            yield Text(" ".join(tuning), style="dim")
        for sentence in svm.other_problems(results.runs, task.label):
            yield Text(sentence, style="dim")
        yield Text()
    words = "Medians over seeds of the runs that ended as planned (costs to targets: of all)."
    table = analysis.table(results)
    if table.loc[table["measure"] == EVALUATIONS_TO_ERROR, "upper_bound"].any():
        words += " ≤: at the target at the first checkpoint, perhaps before."
    yield Text(words, style="dim")


def _of_feasibility(results: Results) -> Iterator[RenderableType]:
    """For the terminal: tables, and how mirror prox compares with its bound."""
    for task in results.study.tasks:
        title = f"{task.label}: {feasibility.problem_words(task)}"
        yield TerminalTable(feasibility.results_table(results, task.label), title)
        yield Text()
    if gap := feasibility.gap_sentence(results):
        yield Text(gap)


def _outcomes(results: Results) -> Iterator[RenderableType]:
    """For the terminal: a line for each reason why runs have no result."""
    seed = analysis.words(results).seed
    for row in records(analysis.failures(results)):
        line = Text(f"{row['status']}: ", style="yellow")
        line.append(f"{row['task']}, {row['solver']}, {plural(row['n'], 'run')}")
        line.append(f" ({seed}{'s' if row['n'] > 1 else ''} {row['seeds']}): ")
        yield line.append(row["reason"] or common.NO_REASON)
    for (solver, reason), group in analysis.skipped(results).groupby(
        ["solver", "reason"], sort=False
    ):
        tasks = ", ".join(dict.fromkeys(group["task"]))
        n = plural(int(group["n"].sum()), "run")
        yield Text(f"skipped: {solver} on {tasks}, {n}: {reason or common.NO_REASON}")
