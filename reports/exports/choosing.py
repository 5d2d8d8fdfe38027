"""What of a study is exported: names that users give, and the mistakes that these can have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...data_loaders import suggest
from ...harness.study.names import find, split_names
from ..analysis import Analysis
from ..drawing.canvas import SolverStyle
from ..errors import ReportError
from ..results import Results


def chosen(what: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The known names among those given, each repeated or separated by commas, in their order.

    Raises
    ------
    ReportError
        If one is unknown; the message suggests the nearest.
    """
    known = list(known)
    found = []
    for name in split_names(names, known):
        match = find(name, known)
        if match is None:
            raise ReportError(f"unknown {what} {name!r}{_near(what, name, known)}")
        found.append(match)
    return list(dict.fromkeys(found))


def _near(what: str, name: str, known: list[str]) -> str:
    """The nearest name, or how to list them: they are many."""
    near = suggest(name, known)
    return near if near.startswith(" (did you mean") else f" (--list shows each {what})"


def selected(
    results: Results, tasks: Iterable[str], solvers: Iterable[str]
) -> tuple[Analysis, dict[str, SolverStyle]]:
    """The analysis of some tasks and solvers alone, and the styles that solvers have on the page.

    What is selected is compared among itself, as in a study without the others.

    Parameters
    ----------
    results : Results
    tasks, solvers : iterable of str
        Labels; all of them if there is none.
    """
    analysis = Analysis(results)
    study = results.study
    of_tasks = set(chosen("task", tasks, [item.label for item in study.tasks]))
    of_solvers = set(chosen("solver", solvers, [item.label for item in study.solvers]))
    if not of_tasks and not of_solvers:
        return analysis, analysis.styles
    of_tasks = of_tasks or {item.label for item in study.tasks}
    of_solvers = of_solvers or {item.label for item in study.solvers}
    part = study.model_copy(
        update={
            "tasks": tuple(item for item in study.tasks if item.label in of_tasks),
            "solvers": tuple(item for item in study.solvers if item.label in of_solvers),
            "planned": tuple(
                run for run in study.planned if run.task in of_tasks and run.solver in of_solvers
            ),
        }
    )
    runs, traces = (
        frame[frame["task"].isin(of_tasks) & frame["solver"].isin(of_solvers)].reset_index(
            drop=True
        )
        for frame in (results.runs, results.traces)
    )
    if runs.empty:
        raise ReportError("no run of these solvers on these tasks is planned")
    of_part = Analysis(replace(results, study=part, runs=runs, traces=traces))
    # Panels take their colours from there: they are those of the page.
    styles = {label: style for label, style in analysis.styles.items() if label in of_solvers}
    of_part.__dict__["styles"] = styles
    return of_part, styles
