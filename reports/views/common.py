"""What all kinds of studies have: runs without a result, solvers, machine, words, sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import pandas as pd

from ...harness.results.measures import Format, Measure
from .. import analysis, described, formatting
from ..analysis import once
from ..described import KindWords, capitalised
from ..formatting import plural
from ..frames import records
from ..measures import UNITS
from ..results import Results
from ..statistics import integrity, summary
from ..tables import Cell, Column, Heading, Table, framed, hash_cell
from ..view import Section, table_section
from .explorer import explorer_data, explorer_json

_BETTER = MappingProxyType({"lower": "Lower is better.", "higher": "Higher is better."})
_COSTS: frozenset[Format] = frozenset({"count", "seconds"})
_ABSENT: Mapping[str, str] = MappingProxyType(
    {
        "not instrumented": "the solver does not count its evaluations",
        "not minimised": "the solver does not minimise the objective of the task",
        "no target": "nothing that the target could be derived from, or compared with, is known",
        summary.NO_MODEL: "the solver returns predictions and no model",
        summary.OTHER_PROBLEM: "the solver solves another problem than the task's",
    }
)


@once
def glossary(results: Results) -> dict[str, tuple[str, str]]:
    """Titles and definitions of what headings of tables say, where they do not say it themselves.

    By the names of measures, and of other columns by the slugs of their headings.
    """
    if results.kind == "feasibility":
        solved = analysis.solved(results)
        # Of solved instances the costs are ranked: all methods return the same certificate.
        shown = {name: replace(item, better="lower") for name, item in solved.costs.items()}
        table = solved.table
    else:
        shown, table = analysis.shown(results), analysis.table(results)
    entries = {formatting.slug(title): (title, words) for title, words in _DEFINITIONS.items()}
    absent = table[table["absent"] != ""].groupby("measure", sort=False)["absent"].unique()
    for name, measure in shown.items():
        title = capitalised(measure.words)
        said = measure.meaning or f"{title} of a run."
        entries[name] = (title, " ".join([said, *_facts(measure, absent.get(name, ()))]))
    return entries


def _facts(measure: Measure, absent: Iterable[str]) -> Iterator[str]:
    yield UNITS[measure.format][1]
    if measure.better:
        yield _BETTER[measure.better]
    else:
        spent = ": solvers spend it on different results" if measure.format in _COSTS else ""
        yield f"Not ranked{spent}."
    for word in absent:
        if word in _ABSENT:
            yield f"“{word}”: {_ABSENT[word]}."
    if "to the target" in measure.words:
        yield f"“{formatting.NEVER}”: the run does not stay there to its end."


_DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        "Runs": "Those that ended as planned, of those planned.",
        "Status": (
            "How runs ended. As planned: “converged”, by the stopping rule of the solver; "
            "“budget”, at a limit on its work; “no_separator”, with a proof that there is none. "
            "Otherwise: “timeout” and “memory”, stopped at a limit; “crashed”, “failed” and "
            "“diverged”; “wrong”, with a result that a check refutes; “missing”, without a "
            "record. “Skipped” runs were not tried."
        ),
        "Certificate": (
            "What the solver itself proves on its result: a bound from the dual problem, or none."
        ),
        "Version": "The hash of the code that ran, with the commit that last changed it if known.",
        "Minimises the objective": (
            "Whether the method minimises the objective of the task; others reach a low test "
            "error by another rule, and have no suboptimality."
        ),
        "Counts evaluations": (
            "Whether the kernel evaluations of the solver are counted. Other libraries do not."
        ),
        "Judged by": (
            "What the scores are computed from where it is not the model: what it predicts."
        ),
        "After": (
            "A budget: so many evaluations or CPU seconds of each run. n is the number of training "
            "points, n² the size of the kernel matrix."
        ),
        "Reference optimum": (
            "The least objective ½‖w‖² + C Σ hinge loss of the task, computed once and frozen."
        ),
        "Certified relative gap": (
            "How far the reference can be from the true optimum, relative to it: from its duality "
            "gap, recomputed from scratch."
        ),
        "Fingerprint": "The SHA-256 of the data's content, its first 12 digits.",
        "Solved": "Instances with the certificate that they have, of those planned.",
        "Proven inseparable": (
            "Instances of which it is proven that some convex combination of the columns is "
            "exactly 0, so that nothing separates."
        ),
        "Wall time, mean": "Mean instead of median, as in published tables.",
        "Published mean": "A number from the study's source, on its machine.",
        "Width": "The kernel's width, chosen on validation points.",
        "At the end": "Why the runs ended.",
        "Takes": "Whether the method works on columns or on a kernel matrix.",
    }
)

NO_REASON = "no reason given"
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
    failures = analysis.failures(results)
    if failures.empty:
        yield table_section(
            "failures", "Failures", None, "None: every run that was tried ended as planned."
        )
    else:
        table = _outcomes_table("Failures", failures, analysis.words(results), "failures")
        yield table_section("failures", "Failures", table)


def skipped_section(results: Results) -> Iterator[Section]:
    """Runs that were not tried, with the reason."""
    skipped = analysis.skipped(results)
    if not skipped.empty:
        words = (
            "These runs were not tried, for the reason given. They count neither as results nor "
            "as failures."
        )
        table = _outcomes_table("Skipped runs", skipped, analysis.words(results), "skipped")
        folded = f"{plural(int(skipped['n'].sum()), 'run')} and the reasons"
        yield table_section("skipped", "Skipped", table, words, folded)


def _outcomes_table(title: str, runs: pd.DataFrame, words: KindWords, name: str) -> Table:
    columns = [
        Column(capitalised(words.task), of="task"),
        Column(capitalised(words.solver), of="solver"),
        Column("Status", of="status"),
        Column(
            "Runs affected",
            "number",
            of=lambda row: Cell(f"{row['n']} of {row['n_planned']}", number=row["n"]),
        ),
        Column(capitalised(f"{words.seed}s"), of="seeds"),
        Column("Reason", "reason", of=lambda row: Cell(row["reason"] or NO_REASON)),
    ]
    return framed(title, runs, columns, cards=True, name=name)


def solvers_section(results: Results) -> Iterator[Section]:
    """Summary, parameters, traits and class of each solver, under the kind's word for them."""
    word = capitalised(analysis.words(results).solver)
    # Of its code, each with its commit where that is known.
    recorded = results.runs[results.runs["version"] != ""]
    versions = dict(recorded.groupby("solver")["version"].unique())
    rows = [
        {word: solver.label, "Summary": solver.summary}
        | {"Parameters": described.parameters(solver.params) or "defaults"}
        | solver.facts(results.kind)
        | {"Class": solver.class_, "Version": ", ".join(versions.get(solver.label, ()))}
        for solver in results.study.solvers
    ]
    frame = pd.DataFrame(rows).fillna("")
    columns = [
        Column(
            name,
            "wide" if name in ("Summary", "Parameters") else "",
            of=name if name not in ("Class", "Version") else partial(_code, name),
        )
        for name in map(str, frame)
        if name == word or frame[name].any()
    ]
    table = framed(f"{word}s", frame, columns, cards=True, name="solvers", numbers=None)
    folded = f"What the {len(rows)} {word.lower()}s are, with parameters and versions"
    yield table_section("solvers", f"{word}s", table, folded=folded)


def _code(name: str, row: Mapping[str, Any]) -> Cell:
    return Cell(row[name], code=True)


def environment_section(results: Results) -> Iterator[Section]:
    """The settings of each environment, side by side where there are several."""
    distinct = analysis.environments(results)
    if distinct.empty:
        yield table_section("environment", "Environment", None, "No record tells its environment.")
    else:
        machine = integrity.machine(distinct)
        yield table_section("environment", "Environment", _environment_table(distinct), "", machine)


def _environment_table(distinct: pd.DataFrame) -> Table:
    columns = [
        row["environment"] | {"threads per run": row["threads"], "runs at a time": row["jobs"]}
        for row in records(distinct)
    ]
    rows = []
    for name in dict.fromkeys(chain(*columns)):
        values = [column.get(name, formatting.DASH) for column in columns]
        cells = [hash_cell(each) if name == "commit" else Cell(each) for each in values]
        if len(set(values)) > 1:
            cells = [replace(cell, incomplete=True) for cell in cells]
        # "libraries.numpy" is "numpy".
        rows.append([Cell(_SETTINGS.get(name, name.removeprefix("libraries."))), *cells])
    headings = [Heading(plural(n, "run"), "reason") for n in distinct["n"]]
    headings.insert(0, Heading("Setting"))
    return Table("Environment", headings, rows, style="settings", name="environment")


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
    entries = sorted(glossary(results).items(), key=lambda item: item[1][0].lower())
    yield Section("definitions", "Definitions", "definitions.html", {"entries": entries})
