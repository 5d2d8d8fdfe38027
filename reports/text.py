"""The results in short, for the terminal after a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from marginbench.reports.analysis import Analysis
    from marginbench.reports.results import StudyResults

_COLUMNS = {
    "test_error": "test\nerror",
    "suboptimality": "subopt.",
    "n_support": "SVs",
    "kernel_evals": "kernel\nevals",
    "evals_to_target": "evals to\ntarget",
    "wall_s": "time",
}


def summary(results: StudyResults) -> RenderableType:
    """A table of medians per task, then the failures, to print with rich.

    Parameters
    ----------
    results : StudyResults
        Of :func:`marginbench.reports.results.load_results`.

    Returns
    -------
    RenderableType
        Medians over the runs that ended as planned, formatted as on the page.
    """
    # Imported here: pandas and matplotlib are slow to import, and most commands need neither.
    from marginbench.reports.analysis import analyse

    analysis = analyse(results)
    parts: list[RenderableType] = []
    for task in results.study.tasks:
        parts += [_task_table(analysis, task.label), Text()]
    return Group(*parts, *_outcome_lines(analysis))


def _task_table(analysis: Analysis, task: str) -> Table:
    from marginbench.reports.cells import make_cell
    from marginbench.reports.frames import of_task, records

    cells = {
        (row["solver"], row["measure"]): make_cell(row)
        for row in records(of_task(analysis.table, task))
    }
    table = Table(title=Text(task, style="bold"), title_justify="left", box=None)
    table.padding = (0, 2, 0, 0)
    table.add_column("solver")
    table.add_column("runs", justify="right")
    headings = dict(_COLUMNS)
    if analysis.results.counts_inner_products:
        headings["kernel_evals"] = "evals"
    for measure, heading in headings.items():
        # In a narrow terminal "not instrumented" breaks between its words, never inside one.
        words = [cell.value.split(" ") for (_, name), cell in cells.items() if name == measure]
        longest = max((len(word) for parts in words for word in parts), default=0)
        table.add_column(heading, justify="right", min_width=longest)
    for count in records(of_task(analysis.counts, task)):
        if count["n_skipped"] == count["n_planned"]:
            continue
        row = [
            Text(count["solver"]),
            Text(
                f"{count['n_ok']}/{count['n_planned']}", style="yellow" if count["n_failed"] else ""
            ),
        ]
        for measure in _COLUMNS:
            cell = cells[count["solver"], measure]
            style = "bold" if cell.best else "dim" if cell.absent else ""
            row.append(Text(cell.value, style=style))
        table.add_row(*row)
    return table


def _outcome_lines(analysis: Analysis) -> list[Text]:
    from marginbench.reports.formatting import plural
    from marginbench.reports.frames import records

    lines = [Text("Medians over seeds of the runs that ended as planned.", style="dim")]
    for row in records(analysis.failures):
        line = Text(f"{row['status']}: ", style="yellow")
        line.append(f"{row['task']}, {row['solver']}, {plural(row['n'], 'run')}")
        line.append(f" (seed{'s' if row['n'] > 1 else ''} {row['seeds']}): ")
        lines.append(line.append(row["reason"] or "no reason given"))
    for (solver, reason), group in analysis.skipped.groupby(["solver", "reason"], sort=False):
        tasks = ", ".join(dict.fromkeys(group["task"]))
        n = plural(int(group["n"].sum()), "run")
        lines.append(Text(f"skipped: {solver} on {tasks}, {n}: {reason or 'no reason given'}"))
    lines += [Text(f"note: {sentence}", style="yellow") for sentence in analysis.cautions]
    return lines
