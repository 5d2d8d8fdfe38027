"""What all kinds of studies have: runs without a result, solvers, machine, words, sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import pandas as pd

from .. import analysis, described, formatting
from ..definitions import glossary
from ..described import KindWords, capitalised
from ..formatting import plural
from ..frames import records
from ..results import Results
from ..statistics import integrity
from ..tables import Cell, Column, Heading, Table, framed
from ..view import Section
from .explorer import explorer_data, explorer_json

NO_REASON = "no reason given"
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


def explore_section(results: Results) -> Iterator[Section]:
    """An interactive figure whose axes, targets, tasks and solvers a reader chooses.

    Where a run has a checkpoint to draw. It is hidden where no script runs: it shows nothing that
    is not elsewhere.
    """
    if explorer_data(results) is not None:
        data = {"data": explorer_json(results), "words": analysis.words(results)}
        yield Section("explore", "Explore", "explore.html", data)


def failures_section(results: Results) -> Iterator[Section]:
    """Runs that did not end as planned, or of which no record can be read, with the reason."""
    failures, words, table = analysis.failures(results), "", None
    if failures.empty:
        tried = "that was not skipped " if len(analysis.skipped(results)) else ""
        words = f"None: every planned run {tried}ended as planned."
    else:
        table = _outcomes_table("Failures", failures, analysis.words(results), "failures")
    yield Section(
        "failures", "Failures", "outcomes.html", {"words": words, "table": table, "folded": ""}
    )


def skipped_section(results: Results) -> Iterator[Section]:
    """Runs that were not tried, with the reason."""
    if not analysis.skipped(results).empty:
        words = (
            "These runs were not tried, for the reason given. They count neither as results nor "
            "as failures."
        )
        table = _outcomes_table(
            "Skipped runs", analysis.skipped(results), analysis.words(results), "skipped"
        )
        n = int(analysis.skipped(results)["n"].sum())
        data = {"words": words, "table": table, "folded": f"{plural(n, 'run')} and the reasons"}
        yield Section("skipped", "Skipped", "outcomes.html", data)


def _outcomes_table(title: str, runs: pd.DataFrame, words: KindWords, name: str) -> Table:
    columns = [
        Column(capitalised(words.task), term="task", of="task"),
        Column(capitalised(words.solver), term="solver", of="solver"),
        Column("Status", term="status", of="status"),
        Column(
            "Runs",
            "number",
            term="runs_of",
            of=lambda row: Cell(f"{row['n']} of {row['n_planned']}", number=row["n"]),
        ),
        Column(capitalised(f"{words.seed}s"), term="seed", of="seeds"),
        Column("Reason", "reason", term="reason", of=lambda row: Cell(row["reason"] or NO_REASON)),
    ]
    return framed(title, runs, columns, cards=True, name=name)


def solvers_section(results: Results) -> Iterator[Section]:
    """Summary, parameters, traits and class of each solver, under the kind's word for them."""
    word = capitalised(analysis.words(results).solver)
    rows = [
        {word: solver.label, "Summary": solver.summary}
        | {"Parameters": described.parameters(solver.params) or "defaults", **solver.facts}
        | {"Class": solver.class_, "Version": _versions(results, solver.label)}
        for solver in results.study.solvers
    ]
    frame = pd.DataFrame(rows).fillna("")
    columns = [
        Column(
            name,
            "wide" if name in ("Summary", "Parameters") else "",
            term="solver" if name == word else _TERMS.get(name, ""),
            of=partial(_fact, name),
        )
        for name in map(str, frame)
        if name == word or frame[name].any()
    ]
    table = framed(f"{word}s", frame, columns, cards=True, name="solvers", numbers=None)
    folded = f"What the {len(rows)} {analysis.words(results).solver}s are, with parameters and "
    data = {"table": table, "folded": f"{folded}versions"}
    yield Section("solvers", f"{word}s", "table.html", data)


def _fact(name: str, row: Mapping[str, Any]) -> Cell:
    return Cell(row[name], code=name in ("Class", "Version"))


def _versions(results: Results, label: str) -> str:
    """The versions of a solver's code, each with its commit where that is known."""
    known = results.runs[results.runs["solver"] == label]["version"]
    return ", ".join(dict.fromkeys(version for version in known if version))


def environment_section(results: Results) -> Iterator[Section]:
    """The settings of each environment, side by side where there are several."""
    words, table = "No record tells its environment.", None
    if not analysis.environments(results).empty:
        words, table = "", _environment_table(analysis.environments(results))
    data = {
        "words": words,
        "table": table,
        "folded": integrity.machine(analysis.environments(results)),
    }
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


def reproduce_section(results: Results) -> Iterator[Section]:
    """The command, the software with its version, the solvers' papers and the data's sources."""
    sources = {task.dataset: task for task in results.study.tasks if task.dataset}
    # Solvers may share papers; an entry of BibTeX ends with an empty line.
    cited = [solver.citation.split("\n\n") for solver in results.study.solvers]
    data = {
        "study": results.study,
        "papers": [paper for paper in dict.fromkeys(chain(*cited)) if paper],
        "commits": integrity.commits(analysis.environments(results)),
        "year": integrity.period(results.runs)[-10:][:4],
        "sources": list(sources.values()),
    }
    yield Section("reproduce", "Reproduce and cite", "reproduce.html", data)


def definitions_section(results: Results) -> Iterator[Section]:
    """What the headings of tables mean, in alphabetical order; headings lead here."""
    entries = sorted(glossary(results).values(), key=lambda entry: entry.title.lower())
    yield Section("definitions", "Definitions", "definitions.html", {"entries": entries})
