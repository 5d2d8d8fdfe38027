"""What all kinds of studies have: runs without a result, solvers, machine, words, sources."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from .. import formatting, wording
from ..analysis import Analysis
from ..definitions import glossary
from ..described import Solver
from ..explorer import explorer_data, explorer_json
from ..formatting import plural
from ..frames import records
from ..statistics import integrity
from ..tables import Cell, Heading, Table
from ..view import Section
from ..wording import KindWords, capitalised

_NO_REASON = "no reason given"
_TERMS = {
    "Summary": "summary",
    "Parameters": "parameters",
    "Minimises the objective": "minimises",
    "Certificate": "certificate",
    "Counts evaluations": "instrumented",
    "Judged by": "judged_by",
    "Takes": "takes",
    "Class": "class",
    "Version": "version",
}
_SETTINGS = {
    "cores_logical": "logical cores",
    "dirty": "uncommitted changes",
    "memory_mb": "memory in MB",
    "blas": "BLAS",
}


def explore_section(analysis: Analysis) -> Iterator[Section]:
    """An interactive figure whose axes, targets, tasks and solvers a reader chooses.

    Where a run has a checkpoint to draw. It is hidden where no script runs: it shows nothing that
    is not elsewhere.
    """
    if analysis.ask(explorer_data) is not None:
        data = {"data": analysis.ask(explorer_json), "words": analysis.words}
        yield Section("explore", "Explore", "explore.html", data)


def failures_section(analysis: Analysis) -> Iterator[Section]:
    """Runs that did not end as planned, or of which no record can be read, with the reason."""
    failures, words, table = analysis.failures, "", None
    if failures.empty:
        tried = "that was not skipped " if len(analysis.skipped) else ""
        words = f"None: every planned run {tried}ended as planned."
    else:
        table = _outcomes_table("Failures", failures, analysis.words, "failures")
    yield Section(
        "failures", "Failures", "outcomes.html", {"words": words, "table": table, "folded": ""}
    )


def skipped_section(analysis: Analysis) -> Iterator[Section]:
    """Runs that were not tried, with the reason."""
    if not analysis.skipped.empty:
        words = (
            "These runs were not tried, for the reason given. They count neither as results nor "
            "as failures."
        )
        table = _outcomes_table("Skipped runs", analysis.skipped, analysis.words, "skipped")
        n = int(analysis.skipped["n"].sum())
        data = {"words": words, "table": table, "folded": f"{plural(n, 'run')} and the reasons"}
        yield Section("skipped", "Skipped", "outcomes.html", data)


def printed_outcomes(analysis: Analysis) -> Iterator[RenderableType]:
    """For the terminal: a line for each reason why runs have no result."""
    seed = analysis.words.seed
    for row in records(analysis.failures):
        line = Text(f"{row['status']}: ", style="yellow")
        line.append(f"{row['task']}, {row['solver']}, {plural(row['n'], 'run')}")
        line.append(f" ({seed}{'s' if row['n'] > 1 else ''} {row['seeds']}): ")
        yield line.append(row["reason"] or _NO_REASON)
    for (solver, reason), group in analysis.skipped.groupby(["solver", "reason"], sort=False):
        tasks = ", ".join(dict.fromkeys(group["task"]))
        n = plural(int(group["n"].sum()), "run")
        yield Text(f"skipped: {solver} on {tasks}, {n}: {reason or _NO_REASON}")


def _outcomes_table(title: str, runs: pd.DataFrame, words: KindWords, name: str) -> Table:
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
    return Table(title, headings, rows, cards=True, name=name, numbers=runs)


def solvers_section(analysis: Analysis) -> Iterator[Section]:
    """Summary, parameters, traits and class of each solver, under the kind's word for them."""
    word = capitalised(analysis.words.solver)
    solvers = [
        _described(solver) | {"Version": Cell(_versions(analysis, solver.label), code=True)}
        for solver in analysis.study.solvers
    ]
    names = list(dict.fromkeys(name for solver in solvers for name in solver))
    shown = [name for name in names if any(name in item and item[name].value for item in solvers)]
    headings = [
        Heading(
            name, "wide" if name in ("Summary", "Parameters") else "", term=_TERMS.get(name, "")
        )
        for name in shown
    ]
    rows = [
        [Cell(solver.label), *(item.get(name, Cell("")) for name in shown)]
        for solver, item in zip(analysis.study.solvers, solvers, strict=True)
    ]
    title = f"{word}s"
    named = [Heading(word, term="solver"), *headings]
    table = Table(title, named, rows, cards=True, name="solvers")
    folded = f"What the {len(rows)} {analysis.words.solver}s are, with parameters and versions"
    yield Section("solvers", title, "table.html", {"table": table, "folded": folded})


def _versions(analysis: Analysis, label: str) -> str:
    """The versions of a solver's code, each with its commit where that is known."""
    known = analysis.runs[analysis.runs["solver"] == label]["version"]
    return ", ".join(dict.fromkeys(version for version in known if version))


def _described(solver: Solver) -> dict[str, Cell]:
    """The cells of a solver by heading."""
    return {
        "Summary": Cell(solver.summary),
        "Parameters": Cell(wording.parameters(solver.params) or "defaults"),
        **{name: Cell(fact) for name, fact in solver.facts.items()},
        "Class": Cell(solver.class_, code=True),
    }


def environment_section(analysis: Analysis) -> Iterator[Section]:
    """The settings of each environment, side by side where there are several."""
    words, table = "No record tells its environment.", None
    if not analysis.environments.empty:
        words, table = "", _environment_table(analysis.environments)
    data = {"words": words, "table": table, "folded": integrity.machine(analysis.environments)}
    yield Section("environment", "Environment", "outcomes.html", data)


def _environment_table(distinct: pd.DataFrame) -> Table:
    columns = [
        row["environment"] | {"threads per run": row["threads"], "runs at a time": row["jobs"]}
        for row in records(distinct)
    ]
    names = list(dict.fromkeys(name for column in columns for name in column))
    values = [[column.get(name, formatting.DASH) for column in columns] for name in names]
    return Table(
        "Environment",
        [
            Heading("Setting", term="setting"),
            *(
                Heading(formatting.plural(n, "run"), "reason", term="environment")
                for n in distinct["n"]
            ),
        ],
        [[Cell(_label(name)), *map(Cell, row)] for name, row in zip(names, values, strict=True)],
        style="settings",
        name="environment",
        differing=frozenset(place for place, row in enumerate(values) if len(set(row)) > 1),
    )


def _label(name: str) -> str:
    """The name of a setting in words: "libraries.numpy" is "numpy"."""
    return _SETTINGS.get(name, name.removeprefix("libraries."))


def reproduce_section(analysis: Analysis) -> Iterator[Section]:
    """The command, the software with its version, and the sources of the data."""
    sources = {task.dataset: task for task in analysis.study.tasks if task.dataset}
    data = {
        "study": analysis.study,
        "commits": integrity.commits(analysis.environments),
        "year": integrity.period(analysis.runs)[-10:][:4],
        "sources": list(sources.values()),
    }
    yield Section("reproduce", "Reproduce and cite", "reproduce.html", data)


def definitions_section(analysis: Analysis) -> Iterator[Section]:
    """What the headings of tables mean, in alphabetical order; headings lead here."""
    entries = sorted(analysis.ask(glossary).values(), key=lambda entry: entry.title.lower())
    yield Section("definitions", "Definitions", "definitions.html", {"entries": entries})
