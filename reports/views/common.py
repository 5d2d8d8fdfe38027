"""What all kinds of studies have: runs without a result, solvers, machine, words, sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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
from ..view import Section
from .explorer import explorer_data, explorer_json


@dataclass(frozen=True)
class Definition:
    """An entry of the glossary."""

    title: str
    words: str
    # Unit, which way is better, and why a value may be absent: a sentence each.
    facts: tuple[str, ...] = ()


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
def glossary(results: Results) -> dict[str, Definition]:
    """The definitions of a page's terms by what headings call them, see ``tables.Heading``."""
    words = analysis.words(results)
    generated = results.kind == "feasibility"
    texts = {
        "task": (
            words.task,
            "Instances of one size and kind, generated from their number."
            if generated
            else "Data, a kernel and C to train on, with a reference optimum where it has one.",
        ),
        "solver": (words.solver, f"A configuration of a {words.solver} of the study."),
        "seed": (
            f"{words.seed}s",
            "The numbers that instances are generated from."
            if generated
            else "The numbers that fix the random choices of runs.",
        ),
        **(_FEASIBILITY if generated else _SVM),
        **_COMMON,
    }
    entries = {term: Definition(capitalised(title), said) for term, (title, said) in texts.items()}
    if generated:
        solved = analysis.solved(results)
        # Of solved instances the costs are ranked: all methods return the same certificate.
        shown = {name: replace(item, better="lower") for name, item in solved.costs.items()}
        table = solved.table
    else:
        shown, table = analysis.shown(results), analysis.table(results)
    absent = table[table["absent"] != ""].groupby("measure", sort=False)["absent"].unique()
    for name, measure in shown.items():
        title = capitalised(measure.words)
        said = measure.meaning or f"{title} of a run."
        facts = tuple(_facts(measure, absent.get(name, ())))
        if name not in _COMMON:
            entries[name] = Definition(title, said, facts)
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


_COMMON: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "status": (
            "Status",
            "How runs ended. As planned: “converged”, by the stopping rule of the solver; "
            "“budget”, at a limit on its work; “no_separator”, with a proof that there is none. "
            "Otherwise: “timeout” and “memory”, stopped at a limit; “crashed”, “failed” and "
            "“diverged”; “wrong”, with a result that a check refutes; “missing”, without a "
            "record. “Skipped” runs were not tried.",
        ),
        "runs_of": ("Runs without a result", "How many of the planned runs the row is about."),
        "setting": ("Setting", "A property of the machine or the software."),
        "environment": ("Runs of an environment", "How many runs took place with these settings."),
        "summary": ("Summary", "What the code says of itself."),
        "reason": ("Reason", "What the solver or the harness said when the run ended."),
        "parameters": ("Parameters", "What the study sets; the others have their defaults."),
        "certificate": (
            "Certificate",
            "What the solver itself proves on its result: a bound from the dual problem, or none.",
        ),
        "class": ("Class", "The solver's class, as module and name."),
        "version": (
            "Version",
            "The hash of the code that ran, with the commit that last changed it if known.",
        ),
    }
)
_SVM: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "runs": ("Runs", "Those that ended as planned, of those planned."),
        "sizes": ("Sizes n", "The numbers of training points that the solver has medians for."),
        "slope": (
            "Slope",
            "The exponent b in a·n^b, n the number of training points, with its 95 % interval.",
        ),
        "after": (
            "After",
            "A budget: so many evaluations or CPU seconds of each run. n is the number of training "
            "points, n² the size of the kernel matrix.",
        ),
        "dataset": ("Dataset", "The name of the data, with the parameters that choose a part."),
        "n_train": ("Train", "The number of training points."),
        "n_test": ("Test", "The number of test points."),
        "n_features": ("Features", "The number of features of a point."),
        "n_classes": ("Classes", "More than two are each trained against the rest."),
        "problem": (
            "Problem",
            "The kernel with its parameters, C, the weight of the summed loss, and whether the "
            "model has an unregularised bias.",
        ),
        "reference": (
            "Reference optimum",
            "The least objective ½‖w‖² + C Σ hinge loss of the task, computed once and frozen.",
        ),
        "reference_gap": (
            "Certified relative gap",
            "How far the reference can be from the true optimum, relative to it: from its duality "
            "gap, recomputed from scratch.",
        ),
        "reference_error": ("Its test error", "The test error of the reference optimum."),
        "fingerprint": ("Fingerprint", "The SHA-256 of the data's content, its first 12 digits."),
        "minimises": (
            "Minimises the objective",
            "Whether the method minimises the objective of the task; others reach a low test "
            "error by another rule, and have no suboptimality.",
        ),
        "instrumented": (
            "Counts evaluations",
            "Whether the kernel evaluations of the solver are counted. Other libraries do not.",
        ),
        "judged_by": (
            "Judged by",
            "What the scores are computed from where it is not the model: what it predicts.",
        ),
    }
)
_FEASIBILITY: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "runs": ("Runs", "Those that ended as planned, of those planned."),
        "solved": ("Solved", "Instances with the certificate that they have, of those planned."),
        "proven": (
            "Proven inseparable",
            "Instances of which it is proven that some convex combination of the columns is "
            "exactly 0, so that nothing separates.",
        ),
        "wall_mean": ("Wall time, mean", "Mean instead of median, as in published tables."),
        "published": ("Published mean", "A number from the study's source, on its machine."),
        "gamma": ("Width", "The kernel's width, chosen on validation points."),
        "stage_error": ("Error after iterations", "The test error after so many iterations."),
        "ended": ("At the end", "Why the runs ended."),
        "takes": ("Takes", "Whether the method works on columns or on a kernel matrix."),
    }
)


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
        # "libraries.numpy" is "numpy".
        [
            [
                Cell(_SETTINGS.get(name, name.removeprefix("libraries."))),
                *map(hash_cell if name == "commit" else Cell, row),
            ]
            for name, row in zip(names, values, strict=True)
        ],
        style="settings",
        name="environment",
        differing=frozenset(index for index, row in enumerate(values) if len(set(row)) > 1),
    )


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
    entries = sorted(glossary(results).items(), key=lambda item: item[1].title.lower())
    yield Section("definitions", "Definitions", "definitions.html", {"entries": entries})
